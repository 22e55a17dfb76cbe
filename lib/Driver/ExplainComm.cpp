//===- ExplainComm.cpp - what hides the reduction of gradients ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For every all-reduce of the plan: when its gradients are ready, when it runs,
// what is computed meanwhile, what is left, and why no more of it is hidden.
// Times are those of the simulated step on the first rank of the role. The
// facts are gathered once and told as text or as JSON.
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"

#include "takt/Support/Quantity.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

using namespace takt;

namespace {

/// One all-reduce of the plan.
struct BucketFacts {
  std::string action, lane;
  Bytes bytes = 0;
  Nanos ready = 0, begin = 0, end = 0;
  Nanos hidden = 0;                ///< something is computed meanwhile
  Nanos delayed = 0;               ///< its link or memory is shared
  std::vector<std::string> behind; ///< what is computed
  std::string why;                 ///< of what is not hidden; empty: all is
  Nanos exposed() const { return end - begin - hidden; }
};

struct StageFacts {
  std::string role, link;
  int32_t replicas = 1;
  const StageOverlap *decision = nullptr;
  std::vector<BucketFacts> buckets;
  std::string whyWhole; ///< why there is one all-reduce; empty: several
};

class Explainer {
public:
  Explainer(const rt::Plan &plan, const rt::Simulation &simulation,
            const std::optional<OverlapChoice> &choice)
      : plan(plan), simulation(simulation), choice(choice) {}
  std::vector<StageFacts> gather() const;

private:
  /// All-reduces of a stage by lane and instruction.
  using Reduces = std::vector<std::pair<uint16_t, uint32_t>>;
  StageFacts stageFacts(const rt::Role &role, int32_t stage,
                        const Reduces &reduces) const;
  BucketFacts bucketFacts(const rt::Role &role, uint16_t lane,
                          uint32_t instr) const;
  std::string whyExposed(const rt::Role &role, uint16_t lane, uint32_t instr,
                         const rt::Record &run, const rt::Record &last) const;
  std::string whyWhole(const rt::Role &role,
                       const StageOverlap *decision) const;
  void findHidden(const rt::Role &role, BucketFacts &facts) const;
  const rt::Record *find(const rt::Role &role, uint16_t lane,
                         uint32_t instr) const;
  /// The instruction of a lane of that kind whose end an instruction waits for.
  const rt::Record *waitedFor(const rt::Role &role, uint16_t lane,
                              uint32_t instr, rt::LaneKind kind) const;

  const rt::Plan &plan;
  const rt::Simulation &simulation;
  const std::optional<OverlapChoice> &choice;
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
                                       uint32_t instr,
                                       rt::LaneKind kind) const {
  const rt::Lane &code = role.lanes[lane];
  const rt::Instr &reduce = code.instrs[instr];
  for (uint32_t w = reduce.waitBegin; w < reduce.waitEnd; ++w) {
    const rt::Wait &wait = code.waits[w];
    if (role.lanes[wait.lane].kind == kind && wait.count > 0)
      return find(role, wait.lane, wait.count - 1);
  }
  return nullptr;
}

/// What was computed while an all-reduce ran, by its actions.
void Explainer::findHidden(const rt::Role &role, BucketFacts &facts) const {
  for (const rt::Record &record : simulation.records) {
    if (record.rank != role.firstRank ||
        role.lanes[record.lane].kind != rt::LaneKind::Compute)
      continue;
    Nanos shared =
        std::min(facts.end, record.end) - std::max(facts.begin, record.begin);
    if (shared <= 0)
      continue;
    facts.hidden += shared;
    facts.behind.push_back(rt::actionText(
        plan, role, role.lanes[record.lane].instrs[record.instr]));
  }
}

std::string Explainer::whyExposed(const rt::Role &role, uint16_t lane,
                                  uint32_t instr, const rt::Record &run,
                                  const rt::Record &last) const {
  const rt::Lane &compute = role.lanes[last.lane];
  const rt::Record *send = waitedFor(role, lane, instr, rt::LaneKind::SendGrad);
  std::string turn =
      send && send->end > last.end
          ? fmt::format(
                "its turn on the link after {}",
                rt::actionText(plan, role,
                               role.lanes[send->lane].instrs[send->instr]))
          : std::string("its lane or the other replicas");
  bool more = last.instr + 1 < compute.instrs.size() &&
              compute.instrs[last.instr + 1].microBatch >= 0;
  if (!more)
    return "no backward is left when its gradients are ready";
  if (run.begin > last.end)
    return fmt::format("it waits {} for {}, and outlasts the backward",
                       formatTime(run.begin - last.end), turn);
  return "it takes longer than the rest of the backward";
}

BucketFacts Explainer::bucketFacts(const rt::Role &role, uint16_t lane,
                                   uint32_t index) const {
  const rt::Instr &instr = role.lanes[lane].instrs[index];
  BucketFacts facts;
  facts.action = rt::actionText(plan, role, instr);
  facts.lane = role.lanes[lane].name;
  if (const rt::Endpoint *end = rt::findEndpoint(role.groups, instr.target))
    facts.bytes = end->buffer.bytes;
  const rt::Record *run = find(role, lane, index);
  const rt::Record *last = waitedFor(role, lane, index, rt::LaneKind::Compute);
  if (!run || !last)
    return facts;
  facts.ready = last->end;
  facts.begin = run->begin;
  facts.end = run->end;
  if (!simulation.delays.empty())
    facts.delayed = simulation.delays[run - simulation.records.data()];
  findHidden(role, facts);
  if (facts.exposed() > 0)
    facts.why = whyExposed(role, lane, index, *run, *last);
  return facts;
}

std::string Explainer::whyWhole(const rt::Role &role,
                                const StageOverlap *decision) const {
  if (!decision && choice && role.stages.size() > 1)
    return "other stages of its rank compute when its gradients are complete";
  if (!decision)
    return "overlap is off";
  if (decision->bucketBegins.size() < 2)
    return fmt::format("no division into buckets ends it sooner than {} after "
                       "the start of its last backward",
                       formatTime(decision->alone));
  return fmt::format("{} buckets would end it {} sooner, but the step would "
                     "not be shorter",
                     decision->bucketBegins.size(),
                     formatTime(decision->alone - decision->solution.makespan));
}

StageFacts Explainer::stageFacts(const rt::Role &role, int32_t stage,
                                 const Reduces &reduces) const {
  StageFacts facts;
  facts.role = role.stages.size() > 1
                   ? fmt::format("stage {} of {}", stage, role.name)
                   : role.name;
  facts.replicas = role.replicas;
  const auto [lane, first] = reduces.front();
  facts.link =
      plan.groups[role.lanes[lane].instrs[first].target].link.name;
  if (choice)
    for (const StageOverlap &s : choice->stages)
      if (s.stage == stage)
        facts.decision = &s;
  if (reduces.size() == 1)
    facts.whyWhole = whyWhole(role, facts.decision);
  for (const auto &[l, i] : reduces)
    facts.buckets.push_back(bucketFacts(role, l, i));
  return facts;
}

std::vector<StageFacts> Explainer::gather() const {
  std::vector<StageFacts> stages;
  for (const rt::Role &role : plan.roles) {
    std::map<int32_t, Reduces> ofStage;
    for (size_t l = 0; l < role.lanes.size(); ++l)
      for (size_t i = 0; i < role.lanes[l].instrs.size(); ++i) {
        const rt::Instr &instr = role.lanes[l].instrs[i];
        if (instr.kind != rt::InstrKind::AllReduce)
          continue;
        auto action = parseCommAction(rt::actionText(plan, role, instr));
        if (action)
          ofStage[action->stage].push_back({uint16_t(l), uint32_t(i)});
      }
    for (const auto &[stage, reduces] : ofStage)
      stages.push_back(stageFacts(role, stage, reduces));
  }
  return stages;
}

/// What goes over the link, by lane, in the order that was decided.
std::vector<std::vector<std::string>> orderOf(const StageOverlap &decision) {
  const OverlapProblem &problem = decision.sendProblem;
  int32_t count = int32_t(decision.bucketBegins.size());
  std::vector<std::vector<std::string>> lanes;
  for (const auto &lane : laneOrder(problem, decision.sendSolution)) {
    lanes.emplace_back();
    for (int32_t a : lane) {
      CommAction action;
      action.stage = decision.stage;
      action.kind = a == 2 * count ? CommKind::SendB : CommKind::Reduce;
      if (action.kind == CommKind::SendB)
        action.microBatch = decision.send->microBatch;
      else if (count > 1)
        action.part = a - count;
      lanes.back().push_back(toText(action));
    }
  }
  return lanes;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string listed(const std::vector<std::string> &actions,
                   size_t most = SIZE_MAX) {
  std::string text;
  for (size_t i = 0; i < actions.size() && i < most; ++i)
    text += (i ? " " : "") + actions[i];
  return actions.size() > most ? text + " ..." : text;
}

std::string stageText(const StageFacts &facts) {
  std::string out;
  auto line = [&](const std::string &text) { out += text + "\n"; };
  size_t buckets = facts.buckets.size();
  line(fmt::format("  {}: {} of gradients over {} replicas on link '{}'",
                   facts.role,
                   buckets == 1 ? std::string("one all-reduce")
                                : fmt::format("{} buckets", buckets),
                   facts.replicas, facts.link));
  auto proven = [](const OverlapSolution &solution) {
    return fmt::format("bound {}, gap {:.2f} % ({})",
                       formatTime(solution.bound), 100 * solution.gap(),
                       solution.method);
  };
  const StageOverlap *decision = facts.decision;
  if (buckets > 1 && decision)
    line(fmt::format("    from the start of its last backward {}, with one "
                     "all-reduce {}; {}",
                     formatTime(decision->solution.makespan),
                     formatTime(decision->alone), proven(decision->solution)));
  if (decision && decision->ordered) {
    for (const std::vector<std::string> &lane : orderOf(*decision))
      line("    in order on the link: " + listed(lane));
    line(fmt::format("      to the end of all that waits for them {}; {}",
                     formatTime(decision->sendSolution.makespan),
                     proven(decision->sendSolution)));
  }
  if (!facts.whyWhole.empty())
    line("    one: " + facts.whyWhole);
  for (const BucketFacts &bucket : facts.buckets) {
    line(fmt::format("    {}: {}, ready {}, {} .. {} on lane '{}'",
                     bucket.action, formatBytes(bucket.bytes),
                     formatTime(bucket.ready), formatTime(bucket.begin),
                     formatTime(bucket.end), bucket.lane));
    std::string behind =
        bucket.hidden > 0
            ? fmt::format("{} behind {}", formatTime(bucket.hidden),
                          listed(bucket.behind, 3))
            : std::string("nothing hidden");
    if (bucket.delayed > 0)
      behind +=
          fmt::format(", {} for what it shares", formatTime(bucket.delayed));
    line(fmt::format("      {}, {} exposed{}", behind,
                     formatTime(bucket.exposed()),
                     bucket.why.empty() ? "" : ": " + bucket.why));
  }
  return out;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

using Json = nlohmann::ordered_json;

Json solutionJson(const OverlapSolution &solution) {
  return {{"end_ns", solution.makespan},
          {"bound_ns", solution.bound},
          {"gap", solution.gap()},
          {"method", solution.method},
          {"work", solution.work}};
}

Json bucketJson(const BucketFacts &bucket) {
  return {{"action", bucket.action},
          {"bytes", bucket.bytes},
          {"lane", bucket.lane},
          {"ready_ns", bucket.ready},
          {"begin_ns", bucket.begin},
          {"end_ns", bucket.end},
          {"hidden_ns", bucket.hidden},
          {"exposed_ns", bucket.exposed()},
          {"delayed_ns", bucket.delayed},
          {"behind", bucket.behind},
          {"why", bucket.why.empty() ? Json() : Json(bucket.why)}};
}

Json stageJson(const StageFacts &facts) {
  Json json;
  json["role"] = facts.role;
  json["replicas"] = facts.replicas;
  json["link"] = facts.link;
  const StageOverlap *decision = facts.decision;
  json["alone_ns"] = decision ? Json(decision->alone) : Json();
  json["division"] = decision ? solutionJson(decision->solution) : Json();
  json["order"] = nullptr;
  if (decision && decision->ordered) {
    json["order"] = solutionJson(decision->sendSolution);
    json["order"]["lanes"] = orderOf(*decision);
  }
  json["why_one"] = facts.whyWhole.empty() ? Json() : Json(facts.whyWhole);
  json["buckets"] = Json::array();
  for (const BucketFacts &bucket : facts.buckets)
    json["buckets"].push_back(bucketJson(bucket));
  return json;
}

} // namespace

std::string takt::explainOverlap(const rt::Plan &plan,
                                 const rt::Simulation &simulation,
                                 const std::optional<OverlapChoice> &choice) {
  std::string out = "why this communication\n";
  if (choice && choice->pays())
    out += fmt::format("  step {}, with communication after compute {} "
                       "({:.2f} % longer)\n",
                       formatTime(choice->with), formatTime(choice->without),
                       100 * double(choice->without - choice->with) /
                           double(choice->with));
  std::vector<StageFacts> stages = Explainer(plan, simulation, choice).gather();
  for (const StageFacts &stage : stages)
    out += stageText(stage);
  if (stages.empty())
    out += "  no stage has replicas: no gradients are reduced\n";
  return out;
}

nlohmann::ordered_json
takt::overlapJson(const rt::Plan &plan, const rt::Simulation &simulation,
                  const std::optional<OverlapChoice> &choice) {
  Json json;
  json["step_ns"] = simulation.makespan;
  json["without_ns"] =
      choice && !choice->stages.empty() ? Json(choice->without) : Json();
  json["stages"] = Json::array();
  for (const StageFacts &stage : Explainer(plan, simulation, choice).gather())
    json["stages"].push_back(stageJson(stage));
  return json;
}
