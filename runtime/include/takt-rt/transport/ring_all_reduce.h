//===- ring_all_reduce.h - sums over a ring of ranks ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The all-reduce of the host, over mailboxes of any transport.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/transport/mailbox.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace takt::rt {

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
  /// As of a message that is received.
  MoveTime wakeAt() const {
    return receiving.empty() ? MoveTime::max() : receiving.front().wakeAt();
  }

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

} // namespace takt::rt
