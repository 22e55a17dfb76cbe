//===- ExplainComm.cpp - what hides the reduction of gradients ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For every all-reduce of the plan: when its gradients are ready, when it runs,
// what is computed meanwhile, what is left, and why no more of it is hidden.
// Times are those of the simulated step on the first rank of the role.
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"

#include "takt/Support/Quantity.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

namespace {

class Explainer {
public:
  Explainer(const rt::Plan &plan, const rt::Simulation &simulation)
      : plan(plan), simulation(simulation) {}
  std::string run(const std::optional<OverlapChoice> &choice);

private:
  void line(const std::string &text) { out += text + "\n"; }
  void explainRole(size_t index, const StageOverlap *decision, bool pays);
  void explainBucket(const rt::Role &role, uint16_t lane, uint32_t instr);
  std::string whyWhole(size_t index, const StageOverlap *decision,
                       bool pays) const;
  const rt::Record *find(const rt::Role &role, uint16_t lane,
                         uint32_t instr) const;
  /// The instruction of the compute lane whose end an instruction waits for.
  const rt::Record *waitedFor(const rt::Role &role, uint16_t lane,
                              uint32_t instr) const;

  const rt::Plan &plan;
  const rt::Simulation &simulation;
  std::string out;
};

const rt::Record *Explainer::find(const rt::Role &role, uint16_t lane,
                                  uint32_t instr) const {
  for (const rt::Record &record : simulation.records)
    if (record.rank == role.firstRank && record.lane == lane &&
        record.instr == instr)
      return &record;
  return nullptr;
}

const rt::Record *Explainer::waitedFor(const rt::Role &role, uint16_t lane,
                                       uint32_t instr) const {
  const rt::Lane &code = role.lanes[lane];
  const rt::Instr &reduce = code.instrs[instr];
  for (uint32_t w = reduce.waitBegin; w < reduce.waitEnd; ++w) {
    const rt::Wait &wait = code.waits[w];
    if (role.lanes[wait.lane].kind == rt::LaneKind::Compute && wait.count > 0)
      return find(role, wait.lane, wait.count - 1);
  }
  return nullptr;
}

/// What was computed between two times, by its actions.
struct Hidden {
  Nanos time = 0;
  std::vector<std::string> actions;
};

Hidden computedIn(const rt::Plan &plan, const rt::Role &role,
                  const rt::Simulation &simulation, Nanos begin, Nanos end) {
  Hidden hidden;
  for (const rt::Record &record : simulation.records) {
    if (record.rank != role.firstRank ||
        role.lanes[record.lane].kind != rt::LaneKind::Compute)
      continue;
    Nanos shared = std::min(end, record.end) - std::max(begin, record.begin);
    if (shared <= 0)
      continue;
    hidden.time += shared;
    hidden.actions.push_back(rt::actionText(
        plan, role, role.lanes[record.lane].instrs[record.instr]));
  }
  return hidden;
}

std::string listed(const std::vector<std::string> &actions) {
  std::string text;
  for (size_t i = 0; i < actions.size() && i < 3; ++i)
    text += (i ? " " : "") + actions[i];
  return actions.size() > 3 ? text + " ..." : text;
}

void Explainer::explainBucket(const rt::Role &role, uint16_t lane,
                              uint32_t index) {
  const rt::Instr &instr = role.lanes[lane].instrs[index];
  const rt::Endpoint *end = rt::findEndpoint(role.groups, instr.target);
  const rt::Record *run = find(role, lane, index);
  const rt::Record *last = waitedFor(role, lane, index);
  if (!end || !run || !last)
    return;
  Hidden hidden = computedIn(plan, role, simulation, run->begin, run->end);
  Nanos exposed = run->end - run->begin - hidden.time;
  line(fmt::format("    {}: {}, ready {}, {} .. {} on lane '{}'",
                   rt::actionText(plan, role, instr),
                   formatBytes(end->buffer.bytes), formatTime(last->end),
                   formatTime(run->begin), formatTime(run->end),
                   role.lanes[lane].name));
  std::string behind =
      hidden.time > 0 ? fmt::format("{} behind {}", formatTime(hidden.time),
                                    listed(hidden.actions))
                      : std::string("nothing hidden");
  std::string why;
  if (exposed > 0) {
    const rt::Lane &compute = role.lanes[last->lane];
    bool more = last->instr + 1 < compute.instrs.size() &&
                compute.instrs[last->instr + 1].microBatch >= 0;
    if (!more)
      why = ": no backward is left when its gradients are ready";
    else if (run->begin > last->end)
      why = fmt::format(": it waits {} for its lane or the other replicas, and "
                        "outlasts the backward",
                        formatTime(run->begin - last->end));
    else
      why = ": it takes longer than the rest of the backward";
  }
  line(fmt::format("      {}, {} exposed{}", behind, formatTime(exposed), why));
}

std::string Explainer::whyWhole(size_t index, const StageOverlap *decision,
                                bool pays) const {
  if (!decision)
    return "overlap is off";
  if (decision->bucketBegins.size() < 2)
    return fmt::format("no division into buckets ends it sooner than {} after "
                       "the start of its last backward",
                       formatTime(decision->alone));
  std::string shorter = fmt::format(
      "{} buckets would end it {} sooner", decision->bucketBegins.size(),
      formatTime(decision->alone - decision->solution.makespan));
  if (!pays)
    return shorter + ", but the step would not be shorter";
  return shorter + fmt::format(", but stage {} does not end the step", index);
}

void Explainer::explainRole(size_t index, const StageOverlap *decision,
                            bool pays) {
  const rt::Role &role = plan.roles[index];
  size_t buckets = role.groups.size();
  const rt::Link &link = plan.groups[role.groups[0].target].link;
  line(fmt::format("  {}: {} of gradients over {} replicas on link '{}'",
                   role.name,
                   buckets == 1 ? std::string("one all-reduce")
                                : fmt::format("{} buckets", buckets),
                   role.replicas, link.name));
  if (buckets > 1 && decision)
    line(fmt::format(
        "    from the start of its last backward {}, with one "
        "all-reduce {}; bound {}, gap {:.2f} % ({})",
        formatTime(decision->solution.makespan), formatTime(decision->alone),
        formatTime(decision->solution.bound), 100 * decision->solution.gap(),
        decision->solution.method));
  if (buckets == 1)
    line("    one: " + whyWhole(index, decision, pays));
  for (size_t l = 0; l < role.lanes.size(); ++l)
    for (size_t i = 0; i < role.lanes[l].instrs.size(); ++i)
      if (role.lanes[l].instrs[i].kind == rt::InstrKind::AllReduce)
        explainBucket(role, uint16_t(l), uint32_t(i));
}

std::string Explainer::run(const std::optional<OverlapChoice> &choice) {
  line("why this communication");
  if (choice && choice->pays())
    line(fmt::format("  step {}, with communication after compute {} "
                     "({:.2f} % longer)",
                     formatTime(choice->with), formatTime(choice->without),
                     100 * double(choice->without - choice->with) /
                         double(choice->with)));
  bool any = false;
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    if (plan.roles[r].groups.empty())
      continue;
    any = true;
    const StageOverlap *decision = nullptr;
    if (choice)
      for (const StageOverlap &s : choice->stages)
        if (s.stage == int32_t(r))
          decision = &s;
    explainRole(r, decision, choice && choice->pays());
  }
  if (!any)
    line("  no stage has replicas: no gradients are reduced");
  return std::move(out);
}

} // namespace

std::string takt::explainOverlap(const rt::Plan &plan,
                                 const rt::Simulation &simulation,
                                 const std::optional<OverlapChoice> &choice) {
  return Explainer(plan, simulation).run(choice);
}
