//===- sharing.h - flows that share resources -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A flow would take `alone` nanoseconds by itself and then uses each of its
// resources at a given rate. Where the flows of a resource ask for more than it
// has, all of them slow down: speeds are max-min fair in shares of the speed a
// flow has alone (Bertsekas and Gallager 1992, section 6.5.2, weighted), worked
// out anew when a flow begins or ends, for the flows that it reaches through
// resources in short supply and for no others.
//
// Work left is kept in 2^-30 ns as an integer, so that the same flows give the
// same nanoseconds everywhere.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <vector>

namespace takt::rt {

struct Use {
  uint32_t resource = 0;
  double amount = 0; ///< per second at full speed, in the resource's unit
};

class Sharing {
public:
  uint32_t addResource(double capacity);

  /// A flow of `alone` > 0 ns; resources in `uses` differ. Returns its number.
  uint32_t begin(Nanos now, Nanos alone, std::vector<Use> uses);
  void end(Nanos now, uint32_t flow);

  /// Flows whose end moved since the last call; ends that were told before are
  /// void. `stamp` tells the ends of a flow apart.
  struct Change {
    uint32_t flow;
    uint32_t stamp;
    Nanos end;
  };
  std::vector<Change> takeChanges();
  bool isCurrent(uint32_t flow, uint32_t stamp) const {
    return flows[flow].running && flows[flow].stamp == stamp;
  }

private:
  struct Flow {
    bool running = false;
    uint32_t stamp = 0;
    int64_t speed = 0; ///< share of full speed in 2^-30
    __int128 left = 0; ///< in 2^-30 ns at full speed
    Nanos since = 0;   ///< `left` is that of this time
    std::vector<Use> uses;
    double share = 0; ///< while speeds are worked out; below 0: not yet
  };
  struct Resource {
    double capacity = 0;
    bool scarce = false;
    std::vector<uint32_t> flows;
  };

  void refresh(Nanos now, const std::vector<Use> &uses, uint32_t extra);
  bool isAmple(const std::vector<Use> &uses) const;
  std::vector<uint32_t> reach(const std::vector<Use> &uses, uint32_t extra);
  void fill(const std::vector<uint32_t> &group);
  void setSpeed(Nanos now, uint32_t flow);
  double demand(const Resource &resource) const;

  std::vector<Flow> flows;
  std::vector<uint32_t> unused; ///< numbers of flows that have ended
  std::vector<Resource> resources;
  std::vector<Change> changes;
};

} // namespace takt::rt
