//===- socket.h - TCP sockets with deadlines --------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the store and the transport need of TCP. Everything that waits has a
// deadline and throws `Error` (Communication), or Timeout where said, with the
// address in its message.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/error.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace takt::rt {

using Deadline = std::chrono::steady_clock::time_point;

inline Deadline deadlineIn(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::duration<double>(seconds));
}
/// Milliseconds for poll(2): 0 when past, rounded up otherwise.
int pollTime(Deadline deadline);

/// A host name or address, and a port.
struct Address {
  std::string host;
  uint16_t port = 0;

  /// "host:port", or "[host]:port" of an IPv6 address.
  std::string text() const;
  /// Reads that text; throws `Error` (Usage) that quotes it.
  static Address parse(const std::string &text);
};

/// The other end has reset the connection: it had gone, or closed with words of
/// ours unread. Code: Communication.
class ConnectionReset : public Error {
public:
  using Error::Error;
};

/// A socket that is closed when destroyed; not valid when default made.
class Socket {
public:
  Socket() = default;
  explicit Socket(int fd) : handle(fd) {}
  Socket(Socket &&other) noexcept;
  Socket &operator=(Socket &&other) noexcept;
  ~Socket();

  int fd() const { return handle; }
  bool isValid() const { return handle >= 0; }

  /// Listens; port 0: any that is free. Empty host: every interface. With
  /// `port` in use the message says so.
  static Socket listenOn(const Address &address);
  /// Connects, again and again until somebody listens there; throws `Error`
  /// (Timeout) when nobody does before the deadline.
  static Socket connectTo(const Address &address, Deadline deadline);

  /// Port of a socket that listens.
  uint16_t localPort() const;
  /// This machine's address as the other end of a connection sees it.
  std::string localHost() const;
  std::string peerName() const;

  void writeAll(const void *bytes, size_t count, Deadline deadline);
  /// Throws also when the other end closes.
  void readAll(void *bytes, size_t count, Deadline deadline);

  /// No waiting in reads and writes, small messages at once, and a dead
  /// machine at the other end noticed within half a minute.
  void prepare();

private:
  int handle = -1;
};

} // namespace takt::rt
