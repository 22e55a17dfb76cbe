//===- session.h - this process as one of a run -----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// From an identity to a process that has met all the others, holds the same
// plan as they, and hears at once when one of them fails.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/bootstrap/identity.h"
#include "takt-rt/bootstrap/store.h"
#include "takt-rt/core/error.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace takt::rt {

struct SessionOptions {
  // One word each.
  std::string planHash = "none";
  std::string start = "step-0"; ///< where training begins
  std::string version = "none"; ///< of this program; all must have the same
  /// Options that all must have the same, a line each ("--steps 3"): otherwise
  /// one would wait for what another never does.
  std::string agreed;
  double startSeconds = 300;    ///< until all must have come
  double patience = 60;         ///< seconds for an answer of the store
  double newsSeconds = 5;       ///< for news of a peer that is gone
  Doorkeeper::Log log;          ///< lines for standard error
};

class Session {
public:
  /// Meets the others. Throws `Error`: Timeout that names the missing ranks,
  /// DoesNotFit when another has another plan, start, version or option,
  /// Communication.
  Session(const Identity &identity, SessionOptions options);
  ~Session();

  int32_t rank() const { return identity.rank; }
  int32_t size() const { return identity.world; }
  Store &store() { return *theStore; }
  const std::string &token() const { return identity.token; }
  const SessionOptions &settings() const { return options; }
  Deadline startDeadline() const { return deadline; }

  /// Ranks that share memory with this one, ascending, itself among them.
  const std::vector<int32_t> &nodeRanks() const { return onThisNode; }
  bool isOneNode() const { return int32_t(onThisNode.size()) == size(); }
  /// Name or address by which the others reach this machine.
  std::string address() const;

  /// From now on `heard` is called, once and from another thread, when the run
  /// has failed anywhere. If the process still lives `graceSeconds` later,
  /// `overdue` is called; it should end the process.
  void watch(std::function<void(const Abort &)> heard, double graceSeconds,
             std::function<void(const Abort &)> overdue);
  /// Neither is called any more once this has returned.
  void stopWatching();

  /// Reports that this rank fails, and returns the failure that was first: this
  /// one, or that of another rank, which then is why this one fails. PeerFailed
  /// waits `newsSeconds` for the peer's own report, or a sign of its life; if
  /// it lives and reports nothing, this is Communication.
  Abort fail(const Error &error);
  /// The end in order: waits until all are here if they depend on this process.
  void leave();

private:
  void open();
  void meet();
  void lingerForOthers(bool late);
  void watchLoop();
  std::optional<Abort> newsOfPeer();
  std::optional<Abort> look();

  Identity identity;
  SessionOptions options;
  Deadline deadline;
  std::unique_ptr<StoreServer> server;
  std::unique_ptr<Store> theStore;
  TcpStore *tcp = nullptr;
  std::vector<int32_t> onThisNode;
  std::function<void(const Abort &)> heard, overdue;
  double grace = 0;
  std::atomic<bool> quit{false};
  std::thread watcher;
};

} // namespace takt::rt
