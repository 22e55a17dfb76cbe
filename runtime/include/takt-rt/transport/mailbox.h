//===- mailbox.h - messages from one rank to another ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Rendezvous between ranks, with the blocking semantics of NCCL: a send
// completes only when its receiver has taken the data, and messages of one
// mailbox pair up in the order they were begun. What would deadlock there
// deadlocks here.
//
// Nothing in here blocks. A rank polls its own ends from one thread; after a
// poll that found nothing the thread may sleep on its `Bell`, which every
// change at the other end of one of its mailboxes rings.
//
// A mailbox is one direction between two ranks on one channel or group. How the
// data gets across is the business of the classes that derive from it: threads
// (threads.h), memory that processes share (shared_memory.h), TCP (sockets.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"
#include "takt-rt/transport/bell.h"

#include <cstddef>
#include <cstdint>

namespace takt::rt {

/// What a receiver does with the data.
enum class Take : uint8_t { Copy, AddFloats };

/// Does what `take` says with a part of a message; of floats only whole ones.
void takeBytes(Take take, const std::byte *from, std::byte *to, Bytes bytes);

/// Time that a message is held up to stand for a link of the plan.
struct Emulation {
  Link link;
  double share = 1; ///< of the link's time for the bytes of the message
  Nanos fixed = 0;  ///< if not 0, for every message instead of that

  Nanos time(Bytes bytes) const {
    return fixed > 0 ? fixed : Nanos(double(link.time(bytes)) * share);
  }
};

class Mailbox {
public:
  Mailbox() = default;
  Mailbox(const Mailbox &) = delete;
  Mailbox &operator=(const Mailbox &) = delete;
  virtual ~Mailbox() = default;

  /// From now on no message is taken before its link could have brought it. The
  /// emulation must outlive the mailbox; asked at the receiving end.
  void emulate(const Emulation &what) { emulation = &what; }

protected:
  /// Moves message `turn` on if it is its turn; true once it has been taken,
  /// with the time at which its data began to move.
  virtual bool send(uint64_t turn, const std::byte *data, Bytes bytes,
                    MoveTime &moved) = 0;
  /// True once the sender has offered message `turn` and all before it have
  /// been taken; from then on data may move. Throws `Error` (Communication)
  /// when the sender offers another number of bytes.
  virtual bool arrives(uint64_t turn, std::byte *data, Bytes bytes,
                       Take take) = 0;
  /// After `arrives`: when the message was offered, by the clock of this machine;
  /// the epoch where that is not known. Asked of emulated links only.
  virtual MoveTime offeredAt() const { return {}; }
  /// After `arrives`: moves the message on; true once it has been taken. A time
  /// in `moved` is when its emulated link began to move it.
  virtual bool receive(uint64_t turn, std::byte *data, Bytes bytes, Take take,
                       MoveTime &moved) = 0;

private:
  friend class Sending;
  friend class Receiving;

  uint64_t sendsBegun = 0;
  uint64_t recvsBegun = 0;
  const Emulation *emulation = nullptr;
};

/// One message being sent.
class Sending {
public:
  /// Takes the next place in the order of the mailbox. The data must stay
  /// unchanged until `poll` returns true.
  Sending(Mailbox &box, const void *data, Bytes bytes);
  /// Offers the message when its turn has come; true once it has been taken.
  bool poll();
  /// When the data began to move; after `poll` has returned true.
  MoveTime movedAt() const { return moved; }

private:
  Mailbox *box;
  const std::byte *data;
  Bytes bytes;
  uint64_t turn;
  bool isTaken = false;
  MoveTime moved;
};

/// One message being received.
class Receiving {
public:
  Receiving(Mailbox &box, void *data, Bytes bytes, Take take);
  /// Takes the message if it has been offered; true once done. Throws `Error`
  /// (Communication) when the sender offers another number of bytes.
  bool poll();
  /// When the data began to move; after `poll` has returned true.
  MoveTime movedAt() const { return moved; }
  /// When to poll again though no bell rings; the end of time: never.
  MoveTime wakeAt() const { return isTaken ? MoveTime::max() : held; }

private:
  Mailbox *box;
  std::byte *data;
  Bytes bytes;
  uint64_t turn;
  Take take;
  bool isTaken = false;
  MoveTime moved;
  MoveTime begun;                  ///< of emulated links only
  MoveTime held = MoveTime::max(); ///< set once an emulated link is at work
};

} // namespace takt::rt
