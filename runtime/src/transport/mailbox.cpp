//===- mailbox.cpp - messages from one rank to another --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What all transports have in common: places in the order of a mailbox, and
// links that are slower than the machine's.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/transport/mailbox.h"

#include <algorithm>
#include <cstring>

namespace takt::rt {

void takeBytes(Take take, const std::byte *from, std::byte *to, Bytes bytes) {
  if (take == Take::Copy) {
    if (bytes > 0)
      std::memcpy(to, from, bytes);
    return;
  }
  const float *src = reinterpret_cast<const float *>(from);
  float *dst = reinterpret_cast<float *>(to);
  for (int64_t i = 0; i < bytes / Bytes(sizeof(float)); ++i)
    dst[i] += src[i];
}

Sending::Sending(Mailbox &box, const void *data, Bytes bytes)
    : box(&box), data(static_cast<const std::byte *>(data)), bytes(bytes),
      turn(box.sendsBegun++) {}

bool Sending::poll() {
  if (!isTaken)
    isTaken = box->send(turn, data, bytes, moved);
  return isTaken;
}

Receiving::Receiving(Mailbox &box, void *data, Bytes bytes, Take take)
    : box(&box), data(static_cast<std::byte *>(data)), bytes(bytes),
      turn(box.recvsBegun++), take(take) {
  if (box.emulation)
    begun = std::chrono::steady_clock::now();
}

bool Receiving::poll() {
  using Clock = std::chrono::steady_clock;
  if (isTaken)
    return true;
  if (!box->arrives(turn, data, bytes, take))
    return false;
  if (box->emulation) {
    if (held == MoveTime::max()) {
      // Since both ends were there, and not since a rank that computes looks.
      MoveTime offered = box->offeredAt();
      moved = offered == MoveTime() ? Clock::now() : std::max(offered, begun);
      held = moved + std::chrono::nanoseconds(box->emulation->time(bytes));
    }
    if (Clock::now() < held)
      return false;
  }
  MoveTime began = moved;
  isTaken = box->receive(turn, data, bytes, take, moved);
  if (box->emulation) // whatever the transport saw of it
    moved = began;
  return isTaken;
}

} // namespace takt::rt
