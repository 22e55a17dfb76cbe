//===- worker.cpp - one rank at work --------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The step loop of a rank is in the header: advance until nothing moves, then
// sleep until the rank's bell rings.
//
//===----------------------------------------------------------------------===//

#include "worker.h"

#include <fmt/format.h>

namespace takt::rt::host {

Worker::Worker(const Plan &plan, int32_t rank, Exchange &exchange,
               const Source &source)
    : plan(plan), number(rank), exchange(exchange), bell(exchange.bell(rank)),
      itsDevice(plan, rank, exchange, source),
      itsInterpreter(plan, rank, itsDevice) {}

std::string Worker::report() const {
  const Role &role = plan.roles[plan.roleOf(number)];
  std::string text;
  for (size_t i = 0; i < role.lanes.size(); ++i) {
    int64_t at = itsInterpreter.underWay(i);
    if (at < 0)
      continue;
    std::string peer = itsDevice.waitingFor(i);
    text += fmt::format("\n  rank {} lane '{}': {} ({} of {}) under way{}",
                        number, role.lanes[i].name,
                        actionText(plan, role, role.lanes[i].instrs[at]),
                        at + 1, role.lanes[i].instrs.size(),
                        peer.empty() ? "" : ", waits for " + peer);
  }
  return text.empty() ? fmt::format("\n  rank {}: nothing under way", number)
                      : text;
}

} // namespace takt::rt::host
