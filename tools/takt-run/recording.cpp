//===- recording.cpp - flight recorders of a run --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Stragglers are looked for in the files, where the ranks of other processes
// are too.
//
//===----------------------------------------------------------------------===//

#include "recording.h"

#include "log.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/units.h"
#include "takt-rt/trace/why_hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>

#include <unistd.h>

namespace takt::run {

static std::string hostName() {
  char host[256] = {};
  return gethostname(host, sizeof(host) - 1) == 0 ? host : "";
}

Recording::Recording(const RunOptions &options, const rt::Plan &plan,
                     uint64_t planHash, const Share &share, rt::Nanos deadline,
                     rt::Nanos predicted)
    : options(options), plan(plan), ranks(share.ranks) {
  if (options.record.empty())
    return;
  rt::FlightInfo info;
  info.ranks = plan.numRanks();
  info.planHash = planHash;
  info.run = share.run;
  info.model = plan.model;
  std::error_code none;
  if (options.plan != "-")
    info.plan = std::filesystem::absolute(options.plan, none).string();
  info.host = hostName();
  info.pid = getpid();
  info.deadline = deadline;
  info.predicted = predicted;
  info.started = std::chrono::system_clock::now().time_since_epoch() /
                 std::chrono::nanoseconds(1);
  for (int32_t rank : ranks) {
    info.rank = rank;
    recorders.push_back(std::make_unique<rt::FlightRecorder>(
        options.record, info, plan.roles[plan.roleOf(rank)]));
  }
}

void Recording::begin(rt::Trainer &trainer) {
  for (size_t i = 0; i < recorders.size(); ++i)
    trainer.observe(ranks[i], recorders[i].get());
}

void Recording::stepDone(int64_t step) {
  // As often as the recordings' times are all of new steps.
  if (recorders.empty() || ranks.front() != 0 ||
      step % int64_t(rt::kFlightSteps) != 0)
    return;
  std::vector<std::vector<rt::Nanos>> busy(plan.numRanks());
  try {
    for (rt::Flight &flight : rt::readFlights(options.record).flights)
      if (flight.info.rank < plan.numRanks())
        busy[flight.info.rank] = std::move(flight.busy);
  } catch (const rt::Error &) {
    return; // a folder that is gone is no reason to end
  }
  for (const rt::Straggler &found : rt::findStragglers(plan, busy))
    if (slow.insert(found.rank).second)
      log().warn(fmt::format(
          "rank {} is a straggler since about step {}: {} in calls of a step, "
          "{} at the pace of the others",
          found.rank, step, rt::formatNanos(found.busy),
          rt::formatNanos(found.expected)));
}

void Recording::ended() {
  for (std::unique_ptr<rt::FlightRecorder> &recorder : recorders)
    recorder->end(rt::FlightEnd::InOrder, 0, "");
}

void Recording::failed(int exitCode, const std::string &message) {
  for (std::unique_ptr<rt::FlightRecorder> &recorder : recorders)
    recorder->end(rt::FlightEnd::Failed, exitCode, message);
}

} // namespace takt::run
