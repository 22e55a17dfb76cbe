//===- Thresholds.h - the values that times can take ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The slowest time of an assignment is the time of some stage or transfer, its
// longest all-reduce that of some stage. Limits between two such values are the
// same limit; snapping to them makes the search over limits end. The values are
// found when asked for, in time linear in the chain, not listed: there are
// quadratically many.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Chain.h"

namespace takt::partition {

class Thresholds {
public:
  explicit Thresholds(const Chain &chain) : chain(chain) {}

  /// The smallest time of a stage or transfer that is not below `value`;
  /// kNever if there is none.
  Nanos timeAtLeast(Nanos value) const;
  /// The largest one that is not above `value`; -1 if there is none.
  Nanos timeAtMost(Nanos value) const;
  /// The same for all-reduce and update of a stage.
  Nanos reduceAtLeast(Nanos value) const;
  Nanos reduceAtMost(Nanos value) const;

private:
  template <typename F>
  Nanos atLeast(F cost, Nanos value) const;
  template <typename F>
  Nanos atMost(F cost, Nanos value) const;

  const Chain &chain;
};

} // namespace takt::partition
