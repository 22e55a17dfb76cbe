//===- channels.h - messages between ranks that are threads -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Rendezvous between ranks of one process, with the blocking semantics of NCCL:
// a send completes only when its receiver has taken the data, and messages of
// one (sender, receiver) pair of a channel pair up in the order they were
// begun. What would deadlock there deadlocks here.
//
// Nothing in here blocks. A rank's single thread polls its own ends; the data
// is copied (or added) by the receiver, straight out of the sender's buffer.
// After a poll that found nothing a thread may sleep on its `Bell`, which every
// change at the other end of one of its mailboxes rings.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace takt::rt {

/// Tells one thread that something it may wait for has happened. The sleeper
/// reads `rings` before it polls and passes what it read to `wait`, so that a
/// ring in between is not lost.
class Bell {
public:
  uint64_t rings() const { return count.load(std::memory_order_acquire); }
  void ring();
  /// Returns when `rings()` differs from `seen`: spins for `spin` nanoseconds,
  /// gives way to other threads for a while, then sleeps.
  void wait(uint64_t seen, Nanos spin);

private:
  std::atomic<uint64_t> count{0};
  std::atomic<int> sleepers{0};
  std::mutex mutex;
  std::condition_variable changed;
};

using MoveTime = std::chrono::steady_clock::time_point;

/// One direction between two ranks on one channel or group: an ordered sequence
/// of messages, at most one of which is offered at a time.
class Mailbox {
public:
  /// Bells of the sending and of the receiving rank; null: nobody sleeps.
  Mailbox(Bell *sender, Bell *receiver) : sender(sender), receiver(receiver) {}
  Mailbox(const Mailbox &) = delete;

private:
  friend class Sending;
  friend class Receiving;

  // Written by the sending thread; `data` and `bytes` before `offered`.
  alignas(64) std::atomic<uint64_t> offered{0};
  const std::byte *data = nullptr;
  Bytes bytes = 0;
  uint64_t sendsBegun = 0;
  // Written by the receiving thread; `moved` before `taken`.
  alignas(64) std::atomic<uint64_t> taken{0};
  MoveTime moved;
  uint64_t recvsBegun = 0;

  Bell *sender;
  Bell *receiver;
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
  bool isOffered = false;
  MoveTime moved;
};

/// What a receiver does with the data.
enum class Take : uint8_t { Copy, AddFloats };

/// One message being received.
class Receiving {
public:
  Receiving(Mailbox &box, void *data, Bytes bytes, Take take);
  /// Takes the message if it has been offered; true once done. Throws `Error`
  /// (Communication) when the sender offers another number of bytes.
  bool poll();
  /// When the data began to move; after `poll` has returned true.
  MoveTime movedAt() const { return moved; }

private:
  Mailbox *box;
  std::byte *data;
  Bytes bytes;
  uint64_t turn;
  Take take;
  bool isTaken = false;
  MoveTime moved;
};

/// All-reduce of floats over a ring, in place. N elements go in n chunks, one
/// behind the other: the sum of each starts at member 0, collects every member
/// in order, and goes round once more from the last. Every element is thus
/// ((x0 + x1) + x2) + ... whatever its place and the size of the buffer, so
/// that gradients have the same bits in one reduction or in several buckets.
/// The bandwidth-optimal form (Patarasuk and Yuan 2009, doi
/// 10.1016/j.jpdc.2008.09.002) takes 2 (n - 1) steps instead of 3 (n - 1), but
/// starts each chunk at another member.
class RingAllReduce {
public:
  /// `toNext` and `fromPrevious` are unused when there is one member.
  RingAllReduce(int32_t member, int32_t members, Mailbox *toNext,
                Mailbox *fromPrevious);
  void begin(float *data, int64_t elements);
  /// True once this member holds the sums and its neighbours need it no more.
  bool poll();
  /// When this member took its first chunk; with more than one member, after
  /// `poll` has returned true.
  MoveTime movedAt() const { return moved; }

private:
  /// What a member sends in a step: a chunk, or none (-1), and whether it is a
  /// partial sum to add to.
  struct Message {
    int32_t chunk = -1;
    bool partial = false;
  };
  void beginStep();
  Message sentBy(int32_t sender) const;
  std::pair<float *, Bytes> range(int32_t chunk) const;
  int32_t steps() const { return 3 * (members - 1); }

  int32_t member, members;
  Mailbox *toNext, *fromPrevious;
  float *data = nullptr;
  int64_t elements = 0;
  int32_t step = 0;                 ///< of steps()
  std::vector<Sending> sending;     ///< at most one
  std::vector<Receiving> receiving; ///< at most one
  MoveTime moved;
};

/// All mailboxes and bells of a plan whose ranks are threads of this process.
class Exchange {
public:
  explicit Exchange(const Plan &plan);

  Bell &bell(int32_t rank) { return bells[rank]; }
  /// The mailbox of a channel from one rank to another; it must carry a piece.
  Mailbox &channelBox(uint16_t channel, int32_t from, int32_t to);
  /// The mailbox of a group from one rank to the next on its ring.
  Mailbox &groupBox(uint16_t group, int32_t from, int32_t to);
  /// Wakes every rank.
  void ringAll();

private:
  enum class Owner : uint8_t { Channel, Group };
  using Key = std::tuple<Owner, uint16_t, int32_t, int32_t>;
  void add(Owner owner, uint16_t index, int32_t from, int32_t to);

  std::vector<Bell> bells;
  std::map<Key, Mailbox> boxes;
};

} // namespace takt::rt
