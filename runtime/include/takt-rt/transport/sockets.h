//===- sockets.h - messages over TCP ----------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A connection a mailbox, made by the sender. A message is a head with number,
// size and CRC-32C of the data, then the data; the receiver answers with a head
// once it has taken it. It does not read a message's data before the receive
// has begun, so that the stream itself holds the sender up.
//
// A thread of the process moves data while its rank computes. What does not
// check out ends the run: damage with `Error` (Communication) that names sender
// and message, the end of the connection with `Error` (PeerFailed).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/bootstrap/socket.h"
#include "takt-rt/transport/mailbox.h"

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace takt::rt {

/// What goes before a message's data, and back when it has been taken.
/// Little-endian; `check` covers the other fields.
struct MessageHead {
  uint32_t kind = 0;
  uint32_t dataCrc = 0; ///< of the data; of an answer 0
  uint64_t turn = 0;    ///< number of the message in its mailbox
  uint64_t size = 0;    ///< bytes; of an answer: nanoseconds it took to take
  uint32_t unused = 0;
  uint32_t check = 0;

  static constexpr uint32_t kData = 0x44474d54;   // "TMGD"
  static constexpr uint32_t kAnswer = 0x41474d54; // "TMGA"
  void seal();
  bool isSound() const;
};
static_assert(sizeof(MessageHead) == 32);

/// One end of a mailbox over a connection.
class SocketMailbox final : public Mailbox {
public:
  enum class End : uint8_t { Sends, Receives };
  /// `name` and `peer` are for messages; the bell is rung by the thread that
  /// moves data.
  SocketMailbox(Socket socket, End end, int32_t peer, std::string name,
                Bell *bell);

  int fd() const { return socket.fd(); }
  /// Moves what can be moved without waiting; rings when that changed anything.
  void move();

protected:
  bool send(uint64_t turn, const std::byte *data, Bytes bytes,
            MoveTime &moved) override;
  bool arrives(uint64_t turn, std::byte *data, Bytes bytes, Take take) override;
  MoveTime offeredAt() const override { return headAt; }
  bool receive(uint64_t turn, std::byte *data, Bytes bytes, Take take,
               MoveTime &moved) override;

private:
  enum class State : uint8_t { Head, Waits, Data, Whole };

  // All under `mutex`.
  bool moveOut();
  bool moveIn();
  void headCame();
  void answerCame();
  void checkData();
  /// Reads up to `count` bytes; 0: none there now. Throws at the end.
  size_t read(void *to, size_t count);
  size_t write(const void *head, size_t headBytes, const void *data,
               size_t dataBytes);
  void rethrow() const;

  Socket socket;
  const End end;
  const int32_t peer;
  const std::string name;
  Bell *bell;

  std::mutex mutex;
  std::exception_ptr failure;
  MessageHead in; ///< being read, or last read
  size_t inRead = 0;

  // Sending.
  uint64_t offered = 0, taken = 0;
  MessageHead out;
  const std::byte *outData = nullptr;
  size_t outSent = 0, outSize = 0; ///< of head and data
  MoveTime outBegan, lastMoved;

  // Receiving.
  State state = State::Head;
  uint64_t received = 0;
  bool isPosted = false;
  std::byte *inData = nullptr;
  Take inTake = Take::Copy;
  std::vector<std::byte> summand; ///< of a message that is to be added
  size_t dataRead = 0;
  uint32_t dataCrc = 0;
  MoveTime headAt, inBegan;
};

/// The thread that moves data over all connections of a process.
class SocketThread {
public:
  SocketThread();
  ~SocketThread();
  /// The mailbox must outlive the thread, or `stop`.
  void add(SocketMailbox &box);
  void stop();

private:
  void loop();

  int epoll = -1, wake = -1;
  std::thread thread;
};

} // namespace takt::rt
