//===- deadlock.cpp - which instructions a deadlock is about ----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every lane that is stuck waits for a node of another lane, whose own head is
// stuck: following that closes a circle. Its links are waits, messages, and
// lanes whose head stands before the instruction that is needed. A link is the
// more to blame the less the work itself asks for it: most where the head needs
// what the other makes, then a wait that neither data nor a slot calls for,
// then orders that the lane might as well have the other way round. Of the last
// kind there are usually two, on the two ranks that are at odds.
//
//===----------------------------------------------------------------------===//
#include "program.h"

#include "touches.h"

#include "../check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace takt::rt::proof {

namespace {

/// `second` cannot go before `first`, as a lane or a wait has it.
struct Link {
  enum Kind : uint8_t { Lane, Wait, Message };
  Node first = kNoNode, second = kNoNode;
  Kind kind = Lane;
  int blame = 0;
};

class Explainer {
public:
  Explainer(const Program &program,
            const std::vector<std::vector<uint32_t>> &heads)
      : program(program), heads(heads), seenBy(program.size()),
        searchLeft(kSearch * program.size()) {}
  std::optional<ProofFailure> explain();

private:
  Node headOf(Node node) const {
    const Site &site = program.sites[node];
    return program.node(site.role, site.lane, heads[site.role][site.lane]);
  }
  Link neededBy(Node head) const;
  bool findCircle();
  int blameLane(Node head, Node needed);
  int blameWait(Node waits, Node on);
  bool needs(Node later, Node earlier);
  bool overwrites(Node writer, Node other);
  const Touches &touchesOf(Node node);

  const Program &program;
  const std::vector<std::vector<uint32_t>> &heads;
  std::map<uint16_t, Touches> touches; ///< by role, where asked for
  std::vector<Node> stuck;             ///< heads of the circle
  std::vector<Link> links;
  /// A circle may have as many links as there are lanes, and a search may go
  /// through all instructions of a rank: together they look at this many times
  /// the plan's instructions. Beyond, an order counts as not asked for.
  static constexpr size_t kSearch = 32;
  std::vector<uint32_t> seenBy; ///< by node, the last search that saw it
  uint32_t searches = 0;
  size_t searchLeft;
};

const Touches &Explainer::touchesOf(Node node) {
  uint16_t role = program.sites[node].role;
  auto known = touches.find(role);
  if (known == touches.end())
    known =
        touches.emplace(role, Touches(program.plan, program.role(node))).first;
  return known->second;
}

/// What a stuck head waits for.
Link Explainer::neededBy(Node head) const {
  const Site &site = program.sites[head];
  const Instr &instr = program.instr(head);
  const Lane &lane = program.lane(head);
  for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w) {
    const Wait &wait = lane.waits[w];
    if (heads[site.role][wait.lane] < wait.count)
      return {program.node(site.role, wait.lane, wait.count - 1), head,
              Link::Wait};
  }
  return {program.mates[head], head, Link::Message};
}

/// True if what `later` waits for leads back to `earlier` on its own rank, so
/// that the lane has the two in the order they must have.
bool Explainer::needs(Node later, Node earlier) {
  const Site &site = program.sites[later];
  std::vector<Node> open;
  ++searches;
  auto push = [&](Node node) {
    // What is complete has nothing before it that is not.
    const Site &at = program.sites[node];
    if (seenBy[node] == searches || at.instr < heads[at.role][at.lane])
      return;
    seenBy[node] = searches;
    open.push_back(node);
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
  for (; !open.empty() && searchLeft > 0; --searchLeft) {
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

enum Blame { None, InOrder, Choice, Unusual, Needless, Wrong };

int Explainer::blameLane(Node head, Node needed) {
  const Instr &first = program.instr(head);
  const Instr &second = program.instr(needed);
  if (first.microBatch == second.microBatch) {
    const Touches &own = touchesOf(head);
    if (own.turn(second) < own.turn(first))
      return Wrong;
    if (own.turn(first) < own.turn(second))
      return None;
  }
  // The step's own work follows that of all micro-batches.
  bool isStep = first.microBatch < 0;
  if (isStep != (second.microBatch < 0))
    return isStep ? Wrong : None;
  if (needs(needed, head))
    return None;
  bool transfers = first.kind != InstrKind::Call;
  if (transfers && first.target != second.target &&
      program.lane(head).kind != LaneKind::Tie)
    return Needless;
  if (first.kind == second.kind && first.target == second.target &&
      first.microBatch < second.microBatch)
    return InOrder;
  return first.microBatch > second.microBatch ? Unusual : Choice;
}

/// The two use one slot, and the writer writes there.
bool Explainer::overwrites(Node writer, Node other) {
  const Role &role = program.role(writer);
  const Instr &one = program.instr(writer), &two = program.instr(other);
  for (const Touch &write : touchesOf(writer).of(one))
    for (const Touch &use : touchesOf(writer).of(two))
      if (write.writes && write.pool == use.pool && write.part == use.part &&
          role.pools[use.pool].slot(one.microBatch) ==
              role.pools[use.pool].slot(two.microBatch))
        return true;
  return false;
}

int Explainer::blameWait(Node waits, Node on) {
  const Instr &later = program.instr(waits), &earlier = program.instr(on);
  const Touches &own = touchesOf(waits);
  bool same = later.microBatch == earlier.microBatch;
  if (same ? own.turn(later) < own.turn(earlier) : earlier.microBatch < 0)
    return Wrong;
  // A lane may wait for what only a later one of its instructions reads.
  if (same && own.turn(earlier) < own.turn(later))
    return None;
  if ((same || later.microBatch < 0) && own.feeds(earlier, later))
    return None;
  return overwrites(waits, on) ? None : Needless;
}

/// Fills `stuck` and `links`; false if some head waits for nobody.
bool Explainer::findCircle() {
  Node at = kNoNode; // the first head
  for (size_t r = 0; r < heads.size() && at == kNoNode; ++r)
    for (size_t l = 0; l < heads[r].size() && at == kNoNode; ++l)
      if (heads[r][l] < program.plan.roles[r].lanes[l].instrs.size())
        at = program.node(static_cast<int32_t>(r), static_cast<int32_t>(l),
                          heads[r][l]);
  std::vector<Node> seen;
  std::vector<bool> visited(program.size());
  while (at != kNoNode && !visited[at]) {
    visited[at] = true;
    seen.push_back(at);
    Node needed = neededBy(at).first;
    if (needed == kNoNode)
      return false;
    at = headOf(needed);
  }
  if (at == kNoNode)
    return false;
  // What came before the first visit of the closing head led into the circle.
  stuck.assign(std::find(seen.begin(), seen.end(), at), seen.end());
  for (Node head : stuck) {
    Link link = neededBy(head);
    if (link.kind == Link::Wait)
      link.blame = blameWait(link.second, link.first);
    links.push_back(link);
    Node ahead = headOf(link.first);
    if (ahead != link.first)
      links.push_back(
          {ahead, link.first, Link::Lane, blameLane(ahead, link.first)});
  }
  return true;
}

std::optional<ProofFailure> Explainer::explain() {
  if (!findCircle())
    return std::nullopt;
  std::vector<Link> worst = links;
  std::stable_sort(
      worst.begin(), worst.end(),
      [](const Link &a, const Link &b) { return a.blame > b.blame; });
  const Link &most = worst[0];
  std::string round =
      fmt::format("the lanes wait for each other in a circle of "
                  "{}",
                  stuck.size());
  std::string text;
  Node one = most.first, other = most.second;
  if (most.blame == None) {
    one = stuck[0];
    other = stuck.size() > 1 ? stuck[1] : kNoNode;
    text = fmt::format("{} waits for itself: {}", program.text(one), round);
  } else if (most.kind == Link::Wait) {
    text = fmt::format("{} waits for {}, which cannot come before it: {}",
                       program.text(other), program.text(one), round);
  } else if (most.blame <= Unusual && worst.size() > 1 &&
             worst[1].kind == Link::Lane && worst[1].blame >= Choice) {
    // The two orders contradict each other; neither is wrong by itself.
    text = fmt::format("{} stands before {} but {} before {}: {}",
                       program.text(one), program.text(other),
                       program.text(worst[1].first),
                       program.text(worst[1].second), round);
    other = worst[1].first;
  } else {
    text = fmt::format("{} stands before {}, which must complete first: {}",
                       program.text(one), program.text(other), round);
  }
  ProofFailure failure = program.failure(ProofRule::Order, text, one, other);
  // Long circles say the same thing over and over.
  constexpr size_t kMost = 64;
  for (size_t i = 0; i < stuck.size() && i < kMost; ++i)
    failure.circle.push_back(program.end(stuck[i]));
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
    while (rank + 1 < role.firstRank + role.replicas && ranks[rank]->finished())
      ++rank;
    std::vector<uint32_t> counts;
    for (size_t lane = 0; lane < role.lanes.size(); ++lane)
      counts.push_back(ranks[rank]->count(static_cast<int>(lane)));
    heads.push_back(std::move(counts));
  }
  return proof::explainDeadlock(program, heads);
}

} // namespace takt::rt
