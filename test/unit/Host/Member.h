//===- Member.h - a rank as a process has it --------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What takt-run sets up in each process of a run, for tests and benchmarks that
// keep several in one process.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/bootstrap/session.h"
#include "takt-rt/core/error.h"
#include "takt-rt/host/trainer.h"
#include "takt-rt/transport/processes.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

namespace takt::rt::test {

/// One process of a run: what tools/takt-run does about it.
class Member {
public:
  Member(const Plan &plan, int32_t rank, const std::string &where,
         TransportKind kind, bool otherNode, double patienceSeconds)
      : session(identityOf(plan, rank, where, otherNode), options()),
        patience(patienceSeconds) {
    session.watch(
        [this](const Abort &abort) {
          interrupt.raise(Error(abort.what, ExitCode::PeerFailed));
          if (Exchange *exchange = toWake)
            exchange->ringAll();
        },
        600, [](const Abort &) { std::abort(); });
    connected = connectProcesses(plan, session, kind);
    toWake = connected.exchange.get();
    team = std::make_unique<TeamOfMany>(*connected.exchange, rank,
                                        plan.numRanks(), interrupt,
                                        [this] { return patience.seconds(); });
    seats = {{rank},     {rank},     connected.exchange.get(),
             team.get(), &interrupt, &patience};
  }

  ~Member() { session.stopWatching(); }

  Session session;
  std::atomic<Exchange *> toWake{nullptr};
  Interrupt interrupt;
  Patience patience;
  ProcessExchange connected;
  std::unique_ptr<TeamOfMany> team;
  Seats seats;

private:
  static Identity identityOf(const Plan &plan, int32_t rank,
                             const std::string &where, bool otherNode) {
    Identity identity;
    identity.rank = rank;
    identity.world = plan.numRanks();
    identity.rendezvous = where;
    identity.address = "127.0.0.1";
    identity.node = otherNode ? 1 : 0;
    return identity;
  }
  static SessionOptions options() {
    SessionOptions options;
    options.startSeconds = 60;
    return options;
  }
};

/// A place to meet on this machine.
inline std::string freeAddress() {
  Socket listening = Socket::listenOn({"127.0.0.1", 0});
  return Address{"127.0.0.1", listening.localPort()}.text();
}

} // namespace takt::rt::test
