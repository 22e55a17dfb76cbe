//===- check_lanes.cpp - structural check of a role's lanes -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every instruction names something that exists and every wait can come true on
// its own rank; whether all ranks together run to the end is for the proof.
//
//===----------------------------------------------------------------------===//
#include "check.h"

#include "takt-rt/core/names.h"

#include <map>
#include <set>
#include <utility>

namespace takt::rt {

namespace {

class LaneChecker {
public:
  LaneChecker(const Plan &plan, size_t index, Faults &faults)
      : plan(plan), role(plan.roles[index]), index(index), faults(faults),
        where("role " + quoted(role.name) + ": ") {}
  void run();

private:
  void checkInstr(size_t lane, size_t at);
  void checkTarget(size_t lane, size_t number, const std::string &at);

  const Plan &plan;
  const Role &role;
  size_t index;
  Faults &faults;
  std::string where;
  /// The first use of a (kind, target), whose lane gives its messages their
  /// order.
  std::map<std::pair<InstrKind, uint16_t>, FaultPlace> firstUse;
};

void LaneChecker::checkTarget(size_t lane, size_t number,
                              const std::string &at) {
  const Instr &instr = role.lanes[lane].instrs[number];
  auto hasEndpoint = [&](const std::vector<Endpoint> &ends) {
    return findEndpoint(ends, instr.target) != nullptr;
  };
  // Messages of a channel are matched in order, so one lane must give it.
  auto checkOneLane = [&](const char *what) {
    const FaultPlace &first =
        firstUse.insert({{instr.kind, instr.target}, {index, lane, number}})
            .first->second;
    if (first.lane == lane)
      return;
    faults.add(at, "this {} is also used from lane {}", what,
               quoted(role.lanes[first.lane].name));
    faults.blame(first);
  };
  switch (instr.kind) {
  case InstrKind::Call:
    if (instr.target >= role.procedures.size())
      faults.add(at, "no procedure {}", instr.target);
    return;
  case InstrKind::Load:
    if (instr.target != 0 || instr.microBatch < 0)
      faults.add(at, "a load needs a micro-batch and no target");
    return;
  case InstrKind::Send:
  case InstrKind::Recv: {
    if (instr.target >= plan.channels.size() || !hasEndpoint(role.channels))
      return faults.add(at, "no endpoint of channel {}", instr.target);
    const Channel &channel = plan.channels[instr.target];
    bool sending = instr.kind == InstrKind::Send;
    if ((sending ? channel.srcRole : channel.dstRole) != index)
      faults.add(at, "this role is not the {} of channel {}",
                 sending ? "source" : "destination", quoted(channel.name));
    return checkOneLane("channel");
  }
  case InstrKind::AllReduce:
    if (instr.target >= plan.groups.size() || !hasEndpoint(role.groups))
      return faults.add(at, "no endpoint of group {}", instr.target);
    return checkOneLane("group");
  }
}

void LaneChecker::checkInstr(size_t lane, size_t at) {
  const Lane &code = role.lanes[lane];
  const Instr &instr = code.instrs[at];
  // Built only for a fault: a plan has many thousand instructions.
  auto place = [&] {
    return where + "lane " + quoted(code.name) +
           fmt::format(", instruction {}: ", at);
  };
  if (!isKnown(instr.kind))
    return faults.add(place(), "unknown kind");
  if (instr.microBatch < -1 || instr.microBatch >= plan.training.microBatches)
    faults.add(place(), "no micro-batch {}", instr.microBatch);
  size_t before = faults.list.size();
  checkTarget(lane, at, "");
  if (faults.list.size() > before)
    faults.list.back() = place() + faults.list.back();

  if (instr.waitBegin > instr.waitEnd || instr.waitEnd > code.waits.size() ||
      instr.waitEnd - instr.waitBegin > 255)
    return faults.add(place(), "bad range of waits");
  for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w) {
    const Wait &wait = code.waits[w];
    if (wait.lane >= role.lanes.size())
      faults.add(place(), "waits for no lane {}", wait.lane);
    else if (wait.count > role.lanes[wait.lane].instrs.size())
      faults.add(place(), "waits for {} instructions of lane {}, which has {}",
                 wait.count, quoted(role.lanes[wait.lane].name),
                 role.lanes[wait.lane].instrs.size());
    else if (wait.lane == lane && wait.count > at)
      faults.add(place(), "waits for itself or what comes after it");
  }
}

void LaneChecker::run() {
  std::set<std::string> names;
  for (const Lane &lane : role.lanes)
    if (lane.name.empty() || !isText(lane.name) ||
        !names.insert(lane.name).second)
      faults.add(where, "bad or repeated lane name {}", quoted(lane.name));
  if (role.lanes.size() > 255 || role.procedures.size() > 0xffff)
    return faults.add(where, "more than 255 lanes or 65535 procedures");
  for (size_t lane = 0; lane < role.lanes.size(); ++lane) {
    const Lane &code = role.lanes[lane];
    if (!isKnown(code.kind))
      faults.add(where, "lane {} is of unknown kind", quoted(code.name));
    if (code.instrs.size() > (1u << 30) || code.waits.size() > (1u << 30))
      faults.add(where, "lane {} is too long", quoted(code.name));
    if (!code.order.empty() && code.order.size() != code.instrs.size())
      faults.add(where, "lane {} has {} places of order for {} instructions",
                 quoted(code.name), code.order.size(), code.instrs.size());
    for (size_t i = 0; i < code.instrs.size() && !faults.full(); ++i) {
      size_t before = faults.list.size();
      checkInstr(lane, i);
      if (faults.list.size() > before)
        faults.blame({index, lane, i});
    }
  }
}

} // namespace

void checkLanes(const Plan &plan, size_t index, Faults &faults) {
  LaneChecker(plan, index, faults).run();
}

} // namespace takt::rt
