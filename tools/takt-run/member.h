//===- member.h - one process of a run --------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What a process of several adds to a run: it meets the others, exchanges
// messages with them, and ends with them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checkpointing.h"
#include "run.h"

#include "takt-rt/bootstrap/session.h"
#include "takt-rt/core/plan.h"
#include "takt-rt/host/trainer.h"
#include "takt-rt/transport/processes.h"

namespace takt::run {

/// Which rank this process is among so many that the plan or the command line
/// asks for; nothing when it was started alone, or shall have all.
std::optional<rt::Identity> identityAmong(const RunOptions &options,
                                          int32_t ranks);

/// The same of a plan, which has as many ranks as there are processes; nothing
/// when this process has all.
std::optional<rt::Identity> identityFor(const RunOptions &options,
                                        const rt::Plan &plan);

/// An error of another rank as this one says it: under a launcher of ours,
/// which hears it from that rank, without its reason. `failed`: -1 for the
/// launcher.
rt::Error inShort(const rt::Identity &identity, int32_t failed,
                  const rt::Error &error);

/// Processes of a run report to rank 0 through their store.
class GatherInStore final : public rt::Gather {
public:
  explicit GatherInStore(rt::Session &session) : session(session) {}
  bool commits() const override { return session.rank() == 0; }
  std::vector<std::string> gather(const std::string &topic,
                                  const std::string &report) override;

private:
  rt::Session &session;
};

class Member {
public:
  /// Meets the others; returns when all are there and begin at the same step.
  /// Throws `rt::Error`.
  Member(const RunOptions &options, const rt::Plan &plan,
         const rt::Identity &identity, int64_t firstStep);
  ~Member();

  /// Connects to the ranks that the plan exchanges messages with.
  /// `predictedStep`: 0 when not known.
  void connect(const rt::Plan &plan, rt::Nanos predictedStep);
  const rt::Seats &seats() const { return theSeats; }
  /// By what messages go, for people; after `connect`.
  const std::string &transport() const { return connected.summary; }
  /// What this process has of the run; after `connect`.
  Share share();
  /// Longest time without progress; likewise.
  double patienceSeconds() const { return patience->seconds(); }

  /// The error that a process ends with whose run has failed by `error`: that
  /// one, or the failure of another rank. Tells the others.
  rt::Error verdict(const rt::Error &error);
  /// The last word of a process that fails: throws its verdict, in short where
  /// a launcher hears the rest from another rank.
  [[noreturn]] void fail(const rt::Error &error);
  /// The end in order.
  void leave();

private:
  const RunOptions &options;
  rt::Identity identity;
  rt::Session session;
  GatherInStore gather;
  rt::ProcessExchange connected;
  std::atomic<rt::Exchange *> toWake{nullptr}; ///< when the run has failed
  rt::Interrupt interrupt;
  std::unique_ptr<rt::Patience> patience;
  std::unique_ptr<rt::Team> team;
  rt::Seats theSeats;
};

} // namespace takt::run
