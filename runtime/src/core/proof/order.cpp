//===- order.cpp - one order of all launches --------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Lets every lane go as far as it can. Beginning an instruction never takes
// anything from another, so the outcome does not depend on who goes first: the
// lanes either all reach their ends, and the order of completion is the one
// looked for, or none exists.
//
// Each node is visited once, each wait looked at once or twice.
//
// All replicas of a role follow its one program. A reduction among them is
// therefore one node, and a message of a role with several peers one pair: its
// pieces form one group, whose members are unordered among themselves. The
// order is asked of the roles even where some replica has no piece and would
// not have to wait, for NCCL's rule is about the order of launches, which that
// replica shares.
//
//===----------------------------------------------------------------------===//
#include "program.h"

#include <algorithm>

namespace takt::rt::proof {

namespace {

class Runner {
public:
  explicit Runner(const Program &program)
      : program(program), posted(program.size()),
        waiter(program.size(), kNoLane) {
    for (const std::vector<Node> &role : program.bases) {
      firstLane.push_back(lanes.size());
      for (size_t lane = 0; lane < role.size(); ++lane)
        lanes.push_back({static_cast<uint16_t>(firstLane.size() - 1),
                         static_cast<uint16_t>(lane), 0, kNoLane, false});
    }
    order.levels.assign(program.size(), 0);
    order.nodes.reserve(program.size());
  }
  Order run();

private:
  static constexpr uint32_t kNoLane = ~uint32_t(0);
  struct LaneState {
    uint16_t role = 0, lane = 0;
    uint32_t done = 0;
    uint32_t nextWaiter = kNoLane; ///< in the list of the node it waits for
    bool waiting = false;          ///< stands in such a list
  };

  void advance(uint32_t index);
  bool waits(uint32_t index, const Instr &instr, const Lane &code,
             uint32_t &level);
  void complete(uint32_t index, Node node, uint32_t level);

  const Program &program;
  Order order;
  std::vector<LaneState> lanes;
  std::vector<size_t> firstLane; ///< by role, into `lanes`
  std::vector<bool> posted;
  std::vector<uint32_t> waiter; ///< by node: lanes to look at when it is done
  std::vector<uint32_t> ready;
};

/// True if a count is not reached yet; the lane is then noted where it is.
bool Runner::waits(uint32_t index, const Instr &instr, const Lane &code,
                   uint32_t &level) {
  for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w) {
    const Wait &wait = code.waits[w];
    if (wait.count == 0)
      continue;
    LaneState &state = lanes[index];
    Node node = program.node(state.role, wait.lane, wait.count - 1);
    if (lanes[firstLane[state.role] + wait.lane].done < wait.count) {
      state.nextWaiter = waiter[node];
      waiter[node] = index;
      state.waiting = true;
      return true;
    }
    level = std::max(level, order.levels[node] + 1);
  }
  return false;
}

void Runner::complete(uint32_t index, Node node, uint32_t level) {
  order.levels[node] = level;
  order.nodes.push_back(node);
  ++lanes[index].done;
  for (uint32_t lane = waiter[node]; lane != kNoLane;
       lane = lanes[lane].nextWaiter) {
    lanes[lane].waiting = false;
    ready.push_back(lane);
  }
}

void Runner::advance(uint32_t index) {
  const LaneState &state = lanes[index];
  const Lane &code = program.plan.roles[state.role].lanes[state.lane];
  while (!state.waiting && state.done < code.instrs.size()) {
    const Instr &instr = code.instrs[state.done];
    Node node = program.node(state.role, state.lane, state.done);
    if (posted[node])
      return;
    uint32_t level = state.done > 0 ? order.levels[node - 1] + 1 : 0;
    if (waits(index, instr, code, level))
      return;
    Node mate = program.mates[node];
    if (mate == kNoNode) {
      complete(index, node, level);
      continue;
    }
    posted[node] = true;
    if (!posted[mate]) {
      order.levels[node] = level; // until the other end comes
      return;
    }
    level = std::max(level, order.levels[mate]);
    const Site &other = program.sites[mate];
    auto peer = static_cast<uint32_t>(firstLane[other.role] + other.lane);
    complete(index, node, level);
    complete(peer, mate, level);
    ready.push_back(peer);
  }
}

Order Runner::run() {
  for (uint32_t lane = 0; lane < lanes.size(); ++lane) {
    ready.push_back(lane);
    while (!ready.empty()) {
      uint32_t next = ready.back();
      ready.pop_back();
      advance(next);
    }
  }
  if (order.nodes.size() == program.size())
    return std::move(order);
  std::vector<std::vector<uint32_t>> heads;
  for (const std::vector<Node> &role : program.bases)
    heads.emplace_back(role.size());
  for (const LaneState &state : lanes)
    heads[state.role][state.lane] = state.done;
  order.failure = explainDeadlock(program, heads);
  return std::move(order);
}

} // namespace

Order findOrder(const Program &program) { return Runner(program).run(); }

} // namespace takt::rt::proof
