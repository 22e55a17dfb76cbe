//===- doorkeeper.h - who may connect ---------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Whoever listens asks each newcomer to prove that it knows the run's token, by
// a keyed hash over a number drawn for this one connection; and proves it in
// turn. The token itself never travels. A stranger costs a bounded number of
// bytes and at most a place among those that have not answered yet: it changes
// nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/bootstrap/digest.h"
#include "takt-rt/bootstrap/socket.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace takt::rt {

/// What a newcomer comes for. A proof for one purpose is none for another.
enum class Purpose : uint32_t { Store = 1, Mailbox = 2 };

/// Who is at the other end of a connection that was let in.
struct Visitor {
  Socket socket;
  int32_t rank = -1;  ///< as it says of itself, holding the token
  uint32_t index = 0; ///< of the mailbox
};

/// The visitor's side: proves that it knows the token and checks that the other
/// end does. Throws `Error` (Communication).
void introduce(Socket &socket, const std::string &token, Purpose purpose,
               int32_t rank, uint32_t index, Deadline deadline);

class Doorkeeper {
public:
  using Log = std::function<void(const std::string &)>;

  /// `log` is told of strangers: the first, the second, the fourth, ...
  Doorkeeper(Socket listening, std::string token, Purpose purpose, Log log);

  int fd() const { return listening.fd(); }
  uint16_t port() const { return listening.localPort(); }
  uint64_t strangers() const { return turnedAway; }
  /// Connections taken that have neither been let in nor turned away.
  size_t waiting() const { return newcomers.size(); }

  /// Takes whoever knocks and reads what they say, without waiting; returns
  /// those that were let in. Call when a descriptor of `watched` is ready, and
  /// now and then.
  std::vector<Visitor> look();
  /// The descriptors to wait for.
  void watched(std::vector<int> &fds) const;

private:
  struct Newcomer {
    Socket socket;
    std::string name; ///< its address
    Digest nonce;
    std::string said;
    Deadline patience;
  };
  enum class Verdict : uint8_t { Waits, Enters, Leaves };

  void greet(Socket socket);
  Verdict listenTo(Newcomer &newcomer, std::vector<Visitor> &in);
  void turnAway(const Newcomer &newcomer, const char *why);

  Socket listening;
  std::string token;
  Purpose purpose;
  Log log;
  std::vector<Newcomer> newcomers;
  std::atomic<uint64_t> turnedAway{0};
};

} // namespace takt::rt
