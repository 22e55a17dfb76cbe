//===- shared_memory.cpp - messages between processes of a node -----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Memory order: `offered` and `put` publish what the sender wrote, `got` and
// `taken` give the room back. Each end writes only its own words.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/transport/shared_memory.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace takt::rt {

static uint64_t rounded(uint64_t position) {
  return (position + kAlignment - 1) / kAlignment * kAlignment;
}

static int64_t nanos(MoveTime time) {
  return time.time_since_epoch() / std::chrono::nanoseconds(1);
}

static MoveTime timeOf(int64_t nanos) {
  return MoveTime(std::chrono::nanoseconds(nanos));
}

//===----------------------------------------------------------------------===//
// A mailbox
//===----------------------------------------------------------------------===//

bool SharedMailbox::send(uint64_t turn, const std::byte *from, Bytes bytes,
                         MoveTime &moved) {
  uint64_t taken = box.taken.load(std::memory_order_acquire);
  if (taken > turn) {
    moved = timeOf(box.moved.load(std::memory_order_relaxed));
    return true;
  }
  if (taken < turn)
    return false;
  bool news = box.offered.load(std::memory_order_relaxed) <= turn;
  if (news) {
    putOfMessage = 0;
    box.bytes.store(bytes, std::memory_order_relaxed);
    box.since.store(nanos(std::chrono::steady_clock::now()),
                    std::memory_order_relaxed);
    box.offered.store(turn + 1, std::memory_order_release);
  }
  uint64_t put = box.put.load(std::memory_order_relaxed);
  while (putOfMessage < bytes) {
    uint64_t room = window - (put - box.got.load(std::memory_order_acquire));
    uint64_t count =
        std::min({room, window - put % window, uint64_t(bytes - putOfMessage)});
    if (count == 0)
      break;
    std::memcpy(data + put % window, from + putOfMessage, count);
    putOfMessage += count;
    put += count;
    if (putOfMessage == bytes)
      put = rounded(put);
    box.put.store(put, std::memory_order_release);
    news = true;
  }
  if (news && receiver)
    receiver->ring();
  return false;
}

bool SharedMailbox::arrives(uint64_t turn, std::byte *, Bytes bytes, Take) {
  if (box.offered.load(std::memory_order_acquire) <= turn ||
      box.taken.load(std::memory_order_relaxed) != turn)
    return false;
  Bytes offered = box.bytes.load(std::memory_order_relaxed);
  if (offered != bytes)
    throw Error(fmt::format("a message of {} bytes meets a receive of {} bytes",
                            offered, bytes),
                ExitCode::Communication);
  return true;
}

MoveTime SharedMailbox::offeredAt() const {
  return timeOf(box.since.load(std::memory_order_relaxed));
}

bool SharedMailbox::receive(uint64_t turn, std::byte *to, Bytes bytes,
                            Take take, MoveTime &moved) {
  if (gotOfMessage == 0) {
    if (moved == MoveTime()) // else since its link has been at work on it
      moved = std::chrono::steady_clock::now();
    box.moved.store(nanos(moved), std::memory_order_relaxed);
  }
  uint64_t got = box.got.load(std::memory_order_relaxed);
  bool news = false;
  while (gotOfMessage < bytes) {
    uint64_t there = box.put.load(std::memory_order_acquire) - got;
    uint64_t count = std::min(
        {there, window - got % window, uint64_t(bytes - gotOfMessage)});
    if (count == 0)
      break;
    takeBytes(take, data + got % window, to + gotOfMessage, count);
    gotOfMessage += count;
    got += count;
    if (gotOfMessage == bytes)
      got = rounded(got);
    box.got.store(got, std::memory_order_release);
    news = true;
  }
  bool all = gotOfMessage == bytes;
  if (all) {
    gotOfMessage = 0;
    box.taken.store(turn + 1, std::memory_order_release);
  }
  if ((news || all) && sender)
    sender->ring();
  return all;
}

//===----------------------------------------------------------------------===//
// The segment of a node
//===----------------------------------------------------------------------===//

namespace {
/// What a process that opens a segment holds its own layout against.
struct SegmentHead {
  uint64_t magic = 0;
  uint64_t bytes = 0;
  uint64_t boxes = 0;
  uint64_t mostWindow = 0;
};
constexpr uint64_t kMagic = 0x314d48534b544154; // "TATKSHM1"
constexpr uint64_t kLeastWindow = 4096;
struct alignas(64) PaddedBell {
  Bell bell;
};
} // namespace

NodeLayout::NodeLayout(const std::vector<BoxSpec> &specs,
                       const std::vector<int32_t> &ranks, uint64_t mostWindow)
    : ranks(ranks), mostWindow(mostWindow) {
  auto isHere = [&](int32_t rank) {
    return std::binary_search(ranks.begin(), ranks.end(), rank);
  };
  total = rounded(sizeof(SegmentHead)) + ranks.size() * sizeof(PaddedBell);
  for (const BoxSpec &spec : specs)
    if (isHere(spec.key.from) && isHere(spec.key.to))
      inside.push_back(spec);
  for (const BoxSpec &spec : inside) {
    Place place;
    place.box = total;
    place.window = total + rounded(sizeof(SharedBox));
    place.windowBytes =
        std::min(mostWindow, std::max(rounded(spec.most), kLeastWindow));
    total = place.window + place.windowBytes;
    places.push_back(place);
  }
}

void NodeLayout::makeIn(Segment &segment) const {
  for (size_t r = 0; r < ranks.size(); ++r)
    new (segment.begin() + rounded(sizeof(SegmentHead)) +
         r * sizeof(PaddedBell)) PaddedBell();
  for (const Place &place : places)
    new (segment.begin() + place.box) SharedBox();
  SegmentHead head{kMagic, total, places.size(), mostWindow};
  std::memcpy(segment.begin(), &head, sizeof(head));
}

void NodeLayout::checkIn(const Segment &segment) const {
  SegmentHead head;
  if (segment.size() >= sizeof(head))
    std::memcpy(&head, segment.begin(), sizeof(head));
  if (segment.size() != total || head.magic != kMagic || head.bytes != total ||
      head.boxes != places.size() || head.mostWindow != mostWindow)
    throw Error("the ranks of this node disagree about their shared memory",
                ExitCode::Communication);
}

Bell *NodeLayout::bell(const Segment &segment, int32_t rank) const {
  size_t index =
      std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
  return &reinterpret_cast<PaddedBell *>(segment.begin() +
                                         rounded(sizeof(SegmentHead)))[index]
              .bell;
}

std::unique_ptr<Mailbox> NodeLayout::mailbox(const Segment &segment,
                                             size_t index) const {
  const Place &place = places[index];
  const BoxKey &key = inside[index].key;
  return std::make_unique<SharedMailbox>(
      *reinterpret_cast<SharedBox *>(segment.begin() + place.box),
      segment.begin() + place.window, place.windowBytes,
      bell(segment, key.from), bell(segment, key.to));
}

uint64_t fittingWindow(const std::vector<BoxSpec> &specs,
                       const std::vector<int32_t> &ranks, uint64_t room) {
  uint64_t window = kLeastWindow;
  for (const BoxSpec &spec : specs)
    window = std::max(window, rounded(spec.most));
  while (window > kLeastWindow &&
         NodeLayout(specs, ranks, window).bytes() > room)
    window = std::max(kLeastWindow, rounded(window / 2));
  return window;
}

} // namespace takt::rt
