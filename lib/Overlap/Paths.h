//===- Paths.h - heads and tails of an overlap problem ------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Longest paths through what must follow what, the order of compute included.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Overlap/Overlap.h"

namespace takt {

struct Paths {
  explicit Paths(const OverlapProblem &problem);
  std::vector<std::vector<int32_t>> before; ///< direct predecessors
  std::vector<Nanos> head;                  ///< no action can start earlier
  std::vector<Nanos> tail; ///< least time from its end to the step's end
};

} // namespace takt
