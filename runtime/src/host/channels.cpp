//===- channels.cpp - messages between ranks that are threads -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Memory order: `offered` publishes the sender's buffer to the receiver,
// `taken` gives it back. A bell pairs the count it raises with the number of
// sleepers it reads, both sequentially consistent, so that either the ringer
// sees the sleeper or the sleeper sees the ring.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/host/channels.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

namespace takt::rt {

//===----------------------------------------------------------------------===//
// Bell
//===----------------------------------------------------------------------===//

void Bell::ring() {
  count.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) == 0)
    return;
  // The lock keeps the ring from falling between a sleeper's last look and its
  // sleep.
  std::lock_guard<std::mutex> lock(mutex);
  changed.notify_all();
}

static void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void Bell::wait(uint64_t seen, Nanos spin) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLooksAClock = 32;
  constexpr int kYields = 4;
  if (spin > 0) {
    Clock::time_point end = Clock::now() + std::chrono::nanoseconds(spin);
    do {
      for (int i = 0; i < kLooksAClock; ++i) {
        if (rings() != seen)
          return;
        relax();
      }
    } while (Clock::now() < end);
  }
  for (int i = 0; i < kYields; ++i) {
    if (rings() != seen)
      return;
    std::this_thread::yield();
  }
  std::unique_lock<std::mutex> lock(mutex);
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  changed.wait(lock,
               [&] { return count.load(std::memory_order_seq_cst) != seen; });
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

Sending::Sending(Mailbox &box, const void *data, Bytes bytes)
    : box(&box), data(static_cast<const std::byte *>(data)), bytes(bytes),
      turn(box.sendsBegun++) {}

bool Sending::poll() {
  uint64_t taken = box->taken.load(std::memory_order_acquire);
  if (taken > turn)
    moved = box->moved;
  if (isOffered || taken < turn)
    return taken > turn;
  box->data = data;
  box->bytes = bytes;
  box->offered.store(turn + 1, std::memory_order_release);
  isOffered = true;
  if (box->receiver)
    box->receiver->ring();
  return false;
}

Receiving::Receiving(Mailbox &box, void *data, Bytes bytes, Take take)
    : box(&box), data(static_cast<std::byte *>(data)), bytes(bytes),
      turn(box.recvsBegun++), take(take) {}

static void addFloats(const std::byte *from, std::byte *to, Bytes bytes) {
  const float *src = reinterpret_cast<const float *>(from);
  float *dst = reinterpret_cast<float *>(to);
  for (int64_t i = 0; i < bytes / Bytes(sizeof(float)); ++i)
    dst[i] += src[i];
}

bool Receiving::poll() {
  if (isTaken)
    return true;
  if (box->offered.load(std::memory_order_acquire) <= turn ||
      box->taken.load(std::memory_order_relaxed) != turn)
    return false;
  if (box->bytes != bytes)
    throw Error(fmt::format("a message of {} bytes meets a receive of {} bytes",
                            box->bytes, bytes),
                ExitCode::Communication);
  moved = box->moved = std::chrono::steady_clock::now();
  if (take == Take::AddFloats)
    addFloats(box->data, data, bytes);
  else if (bytes > 0)
    std::memcpy(data, box->data, bytes);
  box->taken.store(turn + 1, std::memory_order_release);
  isTaken = true;
  if (box->sender)
    box->sender->ring();
  return true;
}

//===----------------------------------------------------------------------===//
// Ring all-reduce
//===----------------------------------------------------------------------===//

RingAllReduce::RingAllReduce(int32_t member, int32_t members, Mailbox *toNext,
                             Mailbox *fromPrevious)
    : member(member), members(members), toNext(toNext),
      fromPrevious(fromPrevious) {
  sending.reserve(1);
  receiving.reserve(1);
}

std::pair<float *, Bytes> RingAllReduce::range(int32_t chunk) const {
  int64_t begin = elements * chunk / members;
  int64_t end = elements * (chunk + 1) / members;
  return {data + begin, (end - begin) * Bytes(sizeof(float))};
}

void RingAllReduce::begin(float *buffer, int64_t count) {
  data = buffer;
  elements = count;
  step = 0;
  moved = MoveTime();
  if (members > 1)
    beginStep();
}

RingAllReduce::Message RingAllReduce::sentBy(int32_t sender) const {
  // Chunk c leaves member m as a partial sum in step c + m; the last member has
  // its sum in step c + last and sends it on to member 0, from where it leaves
  // member m in step c + members + m. The member before the last has no one to
  // give it to.
  int32_t last = members - 1;
  auto chunkSince = [&](int32_t first) {
    int32_t chunk = step - first;
    return chunk >= 0 && chunk < members ? chunk : -1;
  };
  if (sender == last)
    return {chunkSince(last), false};
  if (int32_t chunk = chunkSince(sender); chunk >= 0)
    return {chunk, true};
  return {sender + 1 < last ? chunkSince(members + sender) : -1, false};
}

void RingAllReduce::beginStep() {
  sending.clear();
  receiving.clear();
  if (Message out = sentBy(member); out.chunk >= 0) {
    auto [from, bytes] = range(out.chunk);
    sending.emplace_back(*toNext, from, bytes);
  }
  Message in = sentBy((member + members - 1) % members);
  if (in.chunk >= 0) {
    auto [to, bytes] = range(in.chunk);
    receiving.emplace_back(*fromPrevious, to, bytes,
                           in.partial ? Take::AddFloats : Take::Copy);
  }
}

bool RingAllReduce::poll() {
  while (members > 1 && step < steps()) {
    bool sent = sending.empty() || sending.front().poll();
    bool received = receiving.empty() || receiving.front().poll();
    if (!sent || !received)
      return false;
    if (moved == MoveTime() && !receiving.empty())
      moved = receiving.front().movedAt();
    if (++step < steps())
      beginStep();
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Exchange
//===----------------------------------------------------------------------===//

Exchange::Exchange(const Plan &plan) : bells(plan.numRanks()) {
  for (size_t c = 0; c < plan.channels.size(); ++c) {
    const Channel &channel = plan.channels[c];
    const Role &from = plan.roles[channel.srcRole];
    for (int32_t replica = 0; replica < from.replicas; ++replica)
      for (const Piece &piece : transferPieces(plan, channel, true, replica))
        add(Owner::Channel, c, from.firstRank + replica, piece.peer);
  }
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const Role &role = plan.roles[plan.groups[g].role];
    for (int32_t i = 0; role.replicas > 1 && i < role.replicas; ++i)
      add(Owner::Group, g, role.firstRank + i,
          role.firstRank + (i + 1) % role.replicas);
  }
}

void Exchange::add(Owner owner, uint16_t index, int32_t from, int32_t to) {
  boxes.try_emplace(Key(owner, index, from, to), &bells[from], &bells[to]);
}

Mailbox &Exchange::channelBox(uint16_t channel, int32_t from, int32_t to) {
  return boxes.at(Key(Owner::Channel, channel, from, to));
}

Mailbox &Exchange::groupBox(uint16_t group, int32_t from, int32_t to) {
  return boxes.at(Key(Owner::Group, group, from, to));
}

void Exchange::ringAll() {
  for (Bell &bell : bells)
    bell.ring();
}

} // namespace takt::rt
