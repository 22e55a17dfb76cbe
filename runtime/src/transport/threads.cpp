//===- threads.cpp - messages between ranks that are threads --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Memory order: `offered` publishes the sender's buffer to the receiver,
// `taken` gives it back.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/transport/threads.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

namespace takt::rt {

bool ThreadMailbox::send(uint64_t turn, const std::byte *from, Bytes size,
                         MoveTime &movedAt) {
  uint64_t done = taken.load(std::memory_order_acquire);
  if (done > turn)
    movedAt = moved;
  if (done != turn || offered.load(std::memory_order_relaxed) > turn)
    return done > turn;
  data = from;
  bytes = size;
  since = std::chrono::steady_clock::now();
  offered.store(turn + 1, std::memory_order_release);
  if (receiver)
    receiver->ring();
  return false;
}

bool ThreadMailbox::arrives(uint64_t turn, std::byte *, Bytes size, Take) {
  if (offered.load(std::memory_order_acquire) <= turn ||
      taken.load(std::memory_order_relaxed) != turn)
    return false;
  if (bytes != size)
    throw Error(fmt::format("a message of {} bytes meets a receive of {} bytes",
                            bytes, size),
                ExitCode::Communication);
  return true;
}

bool ThreadMailbox::receive(uint64_t turn, std::byte *to, Bytes size, Take take,
                            MoveTime &movedAt) {
  if (movedAt == MoveTime()) // else since its link has been at work on it
    movedAt = std::chrono::steady_clock::now();
  moved = movedAt;
  takeBytes(take, data, to, size);
  taken.store(turn + 1, std::memory_order_release);
  if (sender)
    sender->ring();
  return true;
}

ThreadExchange::ThreadExchange(const Plan &plan) : bells(plan.numRanks()) {
  for (const BoxSpec &spec : boxesOf(plan, false))
    boxes[spec.key] = std::make_unique<ThreadMailbox>(&bells[spec.key.from],
                                                      &bells[spec.key.to]);
}

void ThreadExchange::ringAll() {
  for (Bell &bell : bells)
    bell.ring();
}

} // namespace takt::rt
