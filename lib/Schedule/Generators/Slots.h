//===- Slots.h - repeated patterns, moved to the front ----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A pattern of one micro-batch in slots of one action each, repeated at its
// interval, leaves slots empty while the pipeline fills and empties. Actions
// move into empty slots before them as far as their inputs and the memory
// limits allow ("reordering" of Qi et al. 2024, arXiv 2405.15362).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Orders.h"

namespace takt {

struct SlotRule {
  /// Actions between the first micro-batch's end and the last one's start stay.
  bool keepsSteadyState = true;
  /// A pass counts as held in full until its weight gradient is done.
  bool holdsInFull = true;
  /// Input gradients behind the last start move once more, through slots of
  /// weight gradients.
  bool squeezesEnd = true;
};

/// Lists of F, I and W. Nothing if the pattern's repetitions meet.
std::optional<Orders> reorderPattern(const BestOrder &of,
                                     const Pattern &pattern,
                                     const SlotRule &rule);

/// Offers a family's pattern in all ways.
void tryPattern(BestOrder &best, const Pattern &pattern);

} // namespace takt
