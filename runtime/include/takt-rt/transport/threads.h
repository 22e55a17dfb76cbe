//===- threads.h - messages between ranks that are threads ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The data is copied (or added) by the receiver, straight out of the sender's
// buffer.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/transport/exchange.h"

#include <atomic>
#include <vector>

namespace takt::rt {

class ThreadMailbox final : public Mailbox {
public:
  /// Bells of the sending and of the receiving rank; null: nobody sleeps.
  ThreadMailbox(Bell *sender, Bell *receiver)
      : sender(sender), receiver(receiver) {}

protected:
  bool send(uint64_t turn, const std::byte *data, Bytes bytes,
            MoveTime &moved) override;
  bool arrives(uint64_t turn, std::byte *data, Bytes bytes, Take take) override;
  MoveTime offeredAt() const override { return since; }
  bool receive(uint64_t turn, std::byte *data, Bytes bytes, Take take,
               MoveTime &moved) override;

private:
  // Written by the sending thread, all before `offered`.
  alignas(64) std::atomic<uint64_t> offered{0};
  const std::byte *data = nullptr;
  Bytes bytes = 0;
  MoveTime since; ///< when it was offered
  // Written by the receiving thread; `moved` before `taken`.
  alignas(64) std::atomic<uint64_t> taken{0};
  MoveTime moved;

  Bell *sender;
  Bell *receiver;
};

/// All mailboxes and bells of a plan whose ranks are threads of this process.
class ThreadExchange final : public Exchange {
public:
  explicit ThreadExchange(const Plan &plan);
  Bell &bell(int32_t rank) override { return bells[rank]; }
  void ringAll() override;

private:
  std::vector<Bell> bells;
};

} // namespace takt::rt
