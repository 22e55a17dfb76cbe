//===- shared_memory.h - messages between processes of a node ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A node's ranks share one segment of POSIX shared memory: a bell a rank and a
// window a mailbox. The sender copies into the window, the receiver out of it;
// a message longer than its window goes in parts. A send completes only when
// its receiver has taken the last of them.
//
// The segment has a name only until all have opened it, so that nothing is left
// behind however a process ends.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/transport/exchange.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace takt::rt {

/// The shared part of a mailbox. Positions count the bytes of all messages,
/// each rounded up to `kAlignment`.
struct SharedBox {
  // Written by the sender; `bytes` and `since` before `offered`, the window
  // before `put`.
  alignas(64) std::atomic<uint64_t> offered{0};
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> since{0}; ///< offered, as `moved`
  std::atomic<uint64_t> put{0};
  // Written by the receiver; `moved` before `taken`.
  alignas(64) std::atomic<uint64_t> taken{0};
  std::atomic<uint64_t> got{0};
  std::atomic<int64_t> moved{0}; ///< of the steady clock, in nanoseconds
};

/// One end of a mailbox in shared memory, or both.
class SharedMailbox final : public Mailbox {
public:
  /// `window` is a multiple of `kAlignment`.
  SharedMailbox(SharedBox &box, std::byte *data, uint64_t window, Bell *sender,
                Bell *receiver)
      : box(box), data(data), window(window), sender(sender),
        receiver(receiver) {}

protected:
  bool send(uint64_t turn, const std::byte *from, Bytes bytes,
            MoveTime &moved) override;
  bool arrives(uint64_t turn, std::byte *to, Bytes bytes, Take take) override;
  MoveTime offeredAt() const override;
  bool receive(uint64_t turn, std::byte *to, Bytes bytes, Take take,
               MoveTime &moved) override;

private:
  SharedBox &box;
  std::byte *data;
  uint64_t window;
  Bell *sender;
  Bell *receiver;
  Bytes putOfMessage = 0; ///< at the sending end
  Bytes gotOfMessage = 0; ///< at the receiving end
};

/// A mapped segment; unmapped when destroyed.
class Segment {
public:
  Segment() = default;
  /// Makes a segment of zeros that only this user can open. Until the name is
  /// taken away a lock says that this process lives. Throws `Error`: DoesNotFit
  /// when there is no room for it, which the message gives.
  static Segment create(const std::string &name, size_t bytes);
  /// Opens one as it was made; throws `Error` (Communication).
  static Segment open(const std::string &name);
  /// Takes away the name of a segment that was created; processes that have
  /// opened it keep it.
  void removeName();
  /// Takes away names that this user's processes left when they were killed.
  /// `prefix`: of the names, with the slash.
  static void removeAbandoned(const std::string &prefix);

  Segment(Segment &&other) noexcept;
  Segment &operator=(Segment &&other) noexcept;
  ~Segment();

  std::byte *begin() const { return bytes; }
  size_t size() const { return count; }

private:
  std::byte *bytes = nullptr;
  size_t count = 0;
  std::string name; ///< while it has one that is this process's to take away
  int lock = -1;
};

/// Where everything lies in the segment of a node.
class NodeLayout {
public:
  /// `ranks`: of this node, ascending. Windows hold the largest message of
  /// their mailbox, but no more than `mostWindow` bytes.
  NodeLayout(const std::vector<BoxSpec> &specs,
             const std::vector<int32_t> &ranks, uint64_t mostWindow);

  size_t bytes() const { return total; }
  /// Constructs everything in a new segment.
  void makeIn(Segment &segment) const;
  /// Throws `Error` (Communication) unless the segment was made by this layout.
  void checkIn(const Segment &segment) const;
  Bell *bell(const Segment &segment, int32_t rank) const;
  /// The mailboxes between ranks of this node.
  const std::vector<BoxSpec> &specs() const { return inside; }
  std::unique_ptr<Mailbox> mailbox(const Segment &segment, size_t index) const;

private:
  struct Place {
    size_t box = 0, window = 0, windowBytes = 0;
  };
  std::vector<int32_t> ranks;
  std::vector<BoxSpec> inside;
  std::vector<Place> places; ///< by `inside`
  size_t total = 0;
  uint64_t mostWindow = 0;
};

/// The largest windows for which a segment of `room` bytes suffices, down to a
/// page; the windows are never larger than the messages of the mailboxes.
uint64_t fittingWindow(const std::vector<BoxSpec> &specs,
                       const std::vector<int32_t> &ranks, uint64_t room);

} // namespace takt::rt
