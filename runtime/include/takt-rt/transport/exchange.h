//===- exchange.h - all mailboxes of a plan ---------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What mailboxes a plan needs, and who holds them. A process holds the ends of
// its own ranks; one process may hold all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"
#include "takt-rt/transport/mailbox.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace takt::rt {

/// What a mailbox serves: a channel or a group of the plan, or the team, over
/// which the processes of a run agree between steps.
enum class BoxOwner : uint8_t { Channel, Group, Team };

struct BoxKey {
  BoxOwner owner = BoxOwner::Channel;
  uint16_t index = 0; ///< of the channel or group
  int32_t from = 0, to = 0;
};
bool operator<(const BoxKey &a, const BoxKey &b);

struct BoxSpec {
  BoxKey key;
  Bytes most = 0; ///< largest message
  /// The link of the plan; team boxes have none and are not held up.
  Emulation link;
};

/// One for each ordered pair of ranks that a piece of a channel or a step of a
/// reduction crosses, in a fixed order. With `team`, also from each rank to
/// rank 0 and back.
std::vector<BoxSpec> boxesOf(const Plan &plan, bool team);

/// "channel 'act0' from rank 0 to rank 1", for messages.
std::string boxName(const Plan &plan, const BoxKey &key);

/// The mailboxes and bells of the ranks of one process.
class Exchange {
public:
  virtual ~Exchange() = default;

  /// The bell of a rank of this process.
  virtual Bell &bell(int32_t rank) = 0;
  /// The mailbox of a channel from one rank to another; it must carry a piece.
  Mailbox &channelBox(uint16_t channel, int32_t from, int32_t to) {
    return box({BoxOwner::Channel, channel, from, to});
  }
  /// The mailbox of a group from one rank to the next on its ring.
  Mailbox &groupBox(uint16_t group, int32_t from, int32_t to) {
    return box({BoxOwner::Group, group, from, to});
  }
  Mailbox &box(const BoxKey &key) { return *boxes.at(key); }
  /// Wakes every rank of this process.
  virtual void ringAll() = 0;
  /// When an idle rank must look again though nothing rang: at `until`, or
  /// before where the transport rings for nothing.
  virtual MoveTime lookBy(MoveTime until) const { return until; }
  /// The end in order of all messages; after it there are no others.
  virtual void finish() {}
  /// From now on no data moves but by a poll of this process.
  virtual void quiesce() {}
  /// From now on messages take no less time than over the links of the plan.
  void emulateLinks(const Plan &plan);

protected:
  std::map<BoxKey, std::unique_ptr<Mailbox>> boxes;

private:
  std::map<BoxKey, Emulation> links;
};

} // namespace takt::rt
