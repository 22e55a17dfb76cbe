//===- ring_all_reduce.cpp - sums over a ring of ranks --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Which chunk a member sends and receives in each step, and the steps.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/transport/ring_all_reduce.h"

namespace takt::rt {

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
} // namespace takt::rt
