//===- analysis.cpp - where a step's time goes ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Everything follows from the records and from what each instruction needed. An
// instruction begins the moment the last of its needs has ended, so a walk back
// over last needs covers the step without a gap.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/analysis.h"

#include "channel_stage.h"
#include "step_graph.h"
#include "takt-rt/core/error.h"

#include <algorithm>
#include <map>

namespace takt::rt {

namespace {

class Analyzer {
public:
  Analyzer(const Plan &plan, const Simulation &run)
      : plan(plan), run(run), graph(plan), recordOf(graph.size()) {}
  Analysis analyze();

private:
  void index();
  void needsOf(const Node &node, bool withPeers);
  Nanos readyAt(const Node &node);
  void findPath();
  void findSlack();
  void splitLane(int32_t rank, uint16_t lane);
  void splitGap(const Node &call, Nanos from, Nanos until, bool first);
  void splitMove(IdleCause cause, int32_t stage, Node need, Nanos from,
                 Nanos until);
  void add(IdleCause cause, int32_t stage, Nanos waiting, Nanos moving,
           Nanos delayed = 0) {
    IdlePart &part = idle[{cause, stage}];
    part.waiting += waiting;
    part.moving += moving;
    part.delayed += delayed;
  }
  /// What sharing has cost an instruction.
  Nanos delayOf(const Node &node) const {
    return run.delays.empty() ? 0 : run.delays[recordOf[graph.index(node)]];
  }
  const Record &record(const Node &node) const {
    return run.records[recordOf[graph.index(node)]];
  }
  static Node nodeOf(const Record &r) { return {r.rank, r.lane, r.instr}; }
  int32_t stageAt(const Channel &channel, bool sending) const {
    const Role &r = plan.roles[sending ? channel.srcRole : channel.dstRole];
    return r.stages.empty() ? -1 : stageAtEnd(r, channel, sending);
  }

  const Plan &plan;
  const Simulation &run;
  StepGraph graph;
  std::vector<size_t> recordOf; ///< of each node
  Analysis result;
  std::vector<Node> needs, others; ///< of the node at hand
  std::map<std::pair<IdleCause, int32_t>, IdlePart> idle; ///< of the rank
};

void Analyzer::index() {
  if (run.records.size() != graph.size())
    throw Error("the records are not those of the whole plan",
                ExitCode::Internal);
  for (size_t i = 0; i < run.records.size(); ++i)
    recordOf[graph.index(nodeOf(run.records[i]))] = i;
}

void Analyzer::needsOf(const Node &node, bool withPeers) {
  needs.clear();
  graph.local(node, needs);
  if (!withPeers)
    return;
  others.clear();
  graph.peers(node, others);
  for (const Node &peer : others)
    graph.local(peer, needs);
}

/// When the instruction and its other ends had all they needed.
Nanos Analyzer::readyAt(const Node &node) {
  needsOf(node, true);
  Nanos ready = 0;
  for (const Node &need : needs)
    ready = std::max(ready, record(need).end);
  return ready;
}

//===----------------------------------------------------------------------===//
// Critical path and slack
//===----------------------------------------------------------------------===//

void Analyzer::findPath() {
  if (run.records.empty())
    return;
  // The first record to end last: later ones have the same end.
  size_t at = run.records.size() - 1;
  while (at > 0 && run.records[at - 1].end == run.records[at].end)
    --at;
  while (true) {
    Node node = nodeOf(run.records[at]);
    needsOf(node, true);
    const Node *last = nullptr;
    for (const Node &need : needs)
      if (!last || record(need).end > record(*last).end)
        last = &need;
    result.criticalPath.push_back({at, last ? record(*last).end : 0});
    // What began with the step needs nothing before it.
    if (!last || record(*last).end == 0)
      break;
    at = recordOf[graph.index(*last)];
  }
  std::reverse(result.criticalPath.begin(), result.criticalPath.end());
}

/// Backwards over the records: whatever an instruction needs is recorded before
/// it. Both ends of a transfer slip together.
void Analyzer::findSlack() {
  std::vector<Nanos> &slack = result.slack;
  slack.resize(run.records.size());
  for (size_t i = 0; i < slack.size(); ++i)
    slack[i] = result.makespan - run.records[i].end;
  auto merge = [&](size_t i) {
    others.clear();
    graph.peers(nodeOf(run.records[i]), others);
    for (const Node &peer : others) {
      size_t p = recordOf[graph.index(peer)];
      slack[i] = slack[p] = std::min(slack[i], slack[p]);
    }
  };
  for (size_t i = slack.size(); i-- > 0;) {
    merge(i);
    Node node = nodeOf(run.records[i]);
    Nanos ready = readyAt(node);
    for (const Node &need : needs) {
      size_t n = recordOf[graph.index(need)];
      slack[n] = std::min(slack[n], slack[i] + ready - run.records[n].end);
    }
  }
}

//===----------------------------------------------------------------------===//
// Idle time
//===----------------------------------------------------------------------===//

/// Of a gap that ends with a transfer: until data begins to move the rank waits
/// for the other end, or for its own buffer if that came last. Messages that
/// went before it on its lane without a pause count as on the way too.
void Analyzer::splitMove(IdleCause cause, int32_t stage, Node need, Nanos from,
                         Nanos until) {
  Nanos begin = record(need).begin;
  Nanos delayed = delayOf(need);
  while (begin > from && need.instr > 0) {
    Node before{need.rank, need.lane, need.instr - 1};
    if (record(before).end != begin || record(before).begin == begin)
      break;
    need = before;
    begin = record(need).begin;
    delayed += delayOf(need);
  }
  begin = std::clamp(begin, from, until);
  Nanos posted = 0;
  needsOf(need, false);
  for (const Node &own : needs)
    posted = std::max(posted, record(own).end);
  bool held = begin > from && posted == begin &&
              (cause == IdleCause::Activation || cause == IdleCause::Gradient);
  add(held ? IdleCause::SlotCredit : cause, stage, begin - from, 0);
  add(cause, stage, 0, until - begin, std::min(delayed, until - begin));
}

void Analyzer::splitGap(const Node &call, Nanos from, Nanos until, bool first) {
  if (until == from)
    return;
  needsOf(call, false);
  const Node *last = nullptr;
  for (const Node &need : needs)
    if (need.lane != call.lane &&
        (!last || record(need).end > record(*last).end))
      last = &need;
  if (!last)
    return add(first ? IdleCause::StartUp : IdleCause::Lane, -1, until - from,
               0);
  Node need = *last;
  const Instr &code = graph.instr(need);
  switch (code.kind) {
  case InstrKind::Call:
    return add(first ? IdleCause::StartUp : IdleCause::Lane, -1, until - from,
               0);
  case InstrKind::Load:
    return add(first ? IdleCause::StartUp : IdleCause::Load, -1, until - from,
               0);
  case InstrKind::AllReduce:
    return splitMove(first ? IdleCause::StartUp : IdleCause::AllReduce, -1,
                     need, from, until);
  case InstrKind::Send:
    // The call overwrites what is being sent.
    return splitMove(IdleCause::SlotCredit,
                     stageAt(plan.channels[code.target], false), need, from,
                     until);
  case InstrKind::Recv: {
    const Channel &channel = plan.channels[code.target];
    IdleCause cause =
        channel.kind == ChannelKind::Activation ? IdleCause::Activation
        : channel.kind == ChannelKind::Gradient ? IdleCause::Gradient
                                                : IdleCause::Tie;
    if (first)
      return splitMove(IdleCause::StartUp, -1, need, from, until);
    return splitMove(cause, stageAt(channel, true), need, from, until);
  }
  }
}

void Analyzer::splitLane(int32_t rank, uint16_t lane) {
  const Lane &code = graph.role(rank).lanes[lane];
  Nanos at = 0;
  for (uint32_t i = 0; i < code.instrs.size(); ++i) {
    Node node{rank, lane, i};
    const Record &r = record(node);
    splitGap(node, at, r.begin, i == 0);
    result.ranks[rank].busy += r.end - r.begin;
    result.ranks[rank].slowed += delayOf(node);
    at = r.end;
  }
  if (at < result.makespan)
    add(IdleCause::Drain, -1, result.makespan - at, 0);
}

Analysis Analyzer::analyze() {
  result.makespan = run.makespan;
  index();
  findPath();
  findSlack();
  int32_t ranks = plan.numRanks();
  result.ranks.resize(ranks);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const Role &role = graph.role(rank);
    idle.clear();
    for (uint16_t l = 0; l < role.lanes.size(); ++l)
      if (role.lanes[l].kind == LaneKind::Compute)
        splitLane(rank, l);
    RankTimes &times = result.ranks[rank];
    for (auto &[key, part] : idle) {
      if (part.waiting + part.moving == 0)
        continue;
      times.bubble += part.waiting;
      times.exposed += part.moving;
      times.delayed += part.delayed;
      times.parts.push_back(
          {key.first, key.second, part.waiting, part.moving, part.delayed});
    }
  }
  result.memory = memoryCurves(plan, run.records);
  return std::move(result);
}

} // namespace

const char *nameOf(IdleCause cause) {
  static const char *const names[] = {"start-up",    "activation", "gradient",
                                      "all-reduce",  "tie",        "load",
                                      "slot credit", "lane",       "drain"};
  return names[static_cast<size_t>(cause)];
}

double Analysis::bubbleShare() const {
  double busy = 0, all = 0;
  for (const RankTimes &rank : ranks) {
    busy += static_cast<double>(rank.busy);
    all += static_cast<double>(rank.busy + rank.bubble + rank.exposed);
  }
  return all > 0 ? 1 - busy / all : 0;
}

Analysis analyze(const Plan &plan, const Simulation &run) {
  return Analyzer(plan, run).analyze();
}

} // namespace takt::rt
