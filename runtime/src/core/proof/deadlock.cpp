//===- deadlock.cpp - which instructions a deadlock is about ----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every lane that is stuck waits for a node of another lane, whose own head is
// stuck: following that closes a circle. On each lane of the circle the head
// stands before the instruction that is needed. One of these pairs is in the
// wrong order; the best guess is the one where the head needs what the other
// makes, else where the two are of one micro-batch, else the first.
//
//===----------------------------------------------------------------------===//
#include "program.h"

#include "touches.h"

#include "../check.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt::proof {

namespace {

/// A lane's head and the instruction of that lane that another lane needs.
struct Hold {
  Node head = kNoNode;
  Node needed = kNoNode; ///< the head itself if it is the one needed
};

class Explainer {
public:
  Explainer(const Program &program,
            const std::vector<std::vector<uint32_t>> &heads)
      : program(program), heads(heads) {}
  std::optional<ProofFailure> explain();

private:
  Node headOf(Node node) const {
    const Site &site = program.sites[node];
    return program.node(site.role, site.lane,
                        heads[site.role][site.lane]);
  }
  Node neededBy(Node head) const;
  int score(const Hold &hold) const;
  bool needs(Node later, Node earlier) const;
  bool reads(Node reader, Node writer) const;

  const Program &program;
  const std::vector<std::vector<uint32_t>> &heads;
};

/// What a stuck head waits for.
Node Explainer::neededBy(Node head) const {
  const Site &site = program.sites[head];
  const Instr &instr = program.instr(head);
  const Lane &lane = program.lane(head);
  for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w) {
    const Wait &wait = lane.waits[w];
    if (heads[site.role][wait.lane] < wait.count)
      return program.node(site.role, wait.lane, wait.count - 1);
  }
  return program.mates[head];
}

bool Explainer::reads(Node reader, Node writer) const {
  const Role &role = program.role(reader);
  Touches touches(program.plan, role);
  int32_t m = program.instr(reader).microBatch;
  if (m < 0 || program.instr(writer).microBatch != m)
    return false;
  return touches.feeds(program.instr(writer), program.instr(reader));
}

/// True if what `later` waits for leads back to `earlier` on its own rank, so
/// that the lane has the two in the order they must have.
bool Explainer::needs(Node later, Node earlier) const {
  const Site &site = program.sites[later];
  std::vector<Node> open;
  std::vector<bool> seen(program.size());
  auto push = [&](Node node) {
    if (!seen[node])
      open.push_back(node);
    seen[node] = true;
  };
  auto pushWaits = [&](Node node) {
    const Lane &lane = program.lane(node);
    const Instr &instr = program.instr(node);
    for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w)
      if (lane.waits[w].count > 0)
        push(program.node(site.role, lane.waits[w].lane,
                          lane.waits[w].count - 1));
  };
  pushWaits(later);
  while (!open.empty()) {
    Node node = open.back();
    open.pop_back();
    if (node == earlier)
      return true;
    pushWaits(node);
    if (program.sites[node].instr > 0)
      push(node - 1);
  }
  return false;
}

int Explainer::score(const Hold &hold) const {
  if (hold.needed == hold.head)
    return 0;
  if (reads(hold.head, hold.needed))
    return 4;
  if (needs(hold.needed, hold.head))
    return 0;
  const Instr &head = program.instr(hold.head);
  const Instr &needed = program.instr(hold.needed);
  bool transfers = head.kind != InstrKind::Call;
  if (transfers && head.target != needed.target)
    return 3;
  return head.microBatch > needed.microBatch ? 2 : 1;
}

std::optional<ProofFailure> Explainer::explain() {
  Node at = kNoNode; // the first head
  for (size_t r = 0; r < heads.size() && at == kNoNode; ++r)
    for (size_t l = 0; l < heads[r].size() && at == kNoNode; ++l)
      if (heads[r][l] < program.plan.roles[r].lanes[l].instrs.size())
        at = program.node(static_cast<int32_t>(r), static_cast<int32_t>(l),
                          heads[r][l]);
  std::vector<Hold> seen;
  std::vector<bool> visited(program.size());
  while (at != kNoNode && !visited[at]) {
    visited[at] = true;
    Node needed = neededBy(at);
    if (needed == kNoNode)
      return std::nullopt;
    seen.push_back({headOf(needed), needed});
    at = seen.back().head;
  }
  if (at == kNoNode)
    return std::nullopt;
  // What came before the first visit of the closing head led into the circle;
  // the head it all began with was never reached before.
  auto first = std::find_if(seen.begin(), seen.end(),
                            [&](const Hold &h) { return h.head == at; });
  bool wholeWay = first + 1 == seen.end();
  std::vector<Hold> circle(wholeWay ? seen.begin() : first + 1, seen.end());

  const Hold *worst = &circle.front();
  int most = -1;
  for (const Hold &hold : circle)
    if (int value = score(hold); value > most) {
      most = value;
      worst = &hold;
    }
  // Where every head is itself what is needed the ends are two of the heads.
  Node other = worst->needed != worst->head ? worst->needed
               : circle.size() > 1          ? circle[1].head
                                            : kNoNode;
  std::string text =
      worst->needed != worst->head
          ? fmt::format("{} stands before {}, which must complete first: the "
                        "lanes wait for each other in a circle of {}",
                        program.text(worst->head), program.text(other),
                        circle.size())
          : fmt::format("{} waits for itself around a circle of {}",
                        program.text(worst->head), circle.size());
  ProofFailure failure =
      program.failure(ProofRule::Order, text, worst->head, other);
  // Long circles say the same thing over and over.
  constexpr size_t kMost = 64;
  for (size_t i = 0; i < circle.size() && i < kMost; ++i)
    failure.circle.push_back(program.end(circle[i].head));
  return failure;
}

} // namespace

std::optional<ProofFailure>
explainDeadlock(const Program &program,
                const std::vector<std::vector<uint32_t>> &heads) {
  return Explainer(program, heads).explain();
}

} // namespace takt::rt::proof

namespace takt::rt {

std::optional<ProofFailure>
explainStuck(const Plan &plan, const std::vector<const Interpreter *> &ranks) {
  proof::Program program(plan);
  if (auto failure = program.match())
    return failure;
  // The first replica that is not finished stands for its role.
  std::vector<std::vector<uint32_t>> heads;
  for (const Role &role : plan.roles) {
    int32_t rank = role.firstRank;
    while (rank + 1 < role.firstRank + role.replicas &&
           ranks[rank]->finished())
      ++rank;
    std::vector<uint32_t> counts;
    for (size_t lane = 0; lane < role.lanes.size(); ++lane)
      counts.push_back(ranks[rank]->count(static_cast<int>(lane)));
    heads.push_back(std::move(counts));
  }
  return proof::explainDeadlock(program, heads);
}

} // namespace takt::rt
