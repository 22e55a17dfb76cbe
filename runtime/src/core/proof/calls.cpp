//===- calls.cpp - every piece of work done, and done once ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Counts calls by stage, phase and micro-batch, and looks for repetitions of
// anything else.
//
//===----------------------------------------------------------------------===//
#include "program.h"

#include "../check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace takt::rt::proof {

namespace {

class Counter {
public:
  explicit Counter(const Program &program) : program(program) {}
  std::optional<ProofFailure> run();

private:
  /// First calls of a micro-batch by what they do; kNoNode: none yet.
  struct Done {
    Node forward = kNoNode, input = kNoNode, weight = kNoNode;
  };
  void role(size_t index);
  void call(Node node, const Procedure &procedure);
  void once(Node &first, Node node);
  void stage(int32_t stage, const std::vector<Done> &done);
  void allPieces();
  const Procedure *lacking(int32_t stage, int32_t m, const Done &done) const;
  void failGap(std::string text, const Procedure *missing, int32_t m,
               Node near = kNoNode);
  void fail(std::string text, Node one, Node other = kNoNode) {
    if (!failure)
      failure =
          program.failure(ProofRule::Completeness, std::move(text), one, other);
  }

  const Program &program;
  const Role *own = nullptr;
  std::map<int32_t, std::vector<Done>> stages;
  /// Stages with procedures that make input gradients, and weight gradients.
  std::map<int32_t, std::pair<bool, bool>> backward;
  std::map<uint16_t, Node> stepCalls; ///< by procedure
  /// Calls of pieces by micro-batch and procedure.
  std::map<std::pair<int32_t, uint16_t>, Node> pieces;
  std::optional<ProofFailure> failure;
};

void Counter::once(Node &first, Node node) {
  if (first != kNoNode)
    fail(fmt::format("{} does again what {} has done", program.text(node),
                     program.text(first)),
         node, first);
  first = node;
}

void Counter::call(Node node, const Procedure &procedure) {
  const Instr &instr = program.instr(node);
  int32_t m = instr.microBatch;
  if (procedure.phase == Phase::Update) {
    if (m >= 0)
      return fail(fmt::format("{} belongs to the step, not to micro-batch {}",
                              program.text(node), m),
                  node);
    return once(stepCalls.insert({instr.target, kNoNode}).first->second, node);
  }
  if (m < 0)
    return fail(fmt::format("{} names no micro-batch", program.text(node)),
                node);
  // The pieces of a backward are together one action; the first marks it.
  int32_t piece = pieceOf(procedure);
  if (piece >= 0)
    once(pieces.insert({{m, instr.target}, kNoNode}).first->second, node);
  if (piece > 0)
    return;
  Done &done = stages[procedure.stage][m];
  if (procedure.phase == Phase::Forward)
    return once(done.forward, node);
  if (procedure.phase != Phase::WeightGrad)
    once(done.input, node);
  if (procedure.phase != Phase::InputGrad)
    once(done.weight, node);
}

/// The failure names the call that is not there as one of its ends.
void Counter::failGap(std::string text, const Procedure *missing, int32_t m,
                      Node near) {
  if (failure)
    return;
  failure = ProofFailure{ProofRule::Completeness, std::move(text), {}, {}};
  if (near != kNoNode)
    failure->ends.push_back(program.end(near));
  if (missing)
    failure->ends.push_back(program.gap(
        *own, {InstrKind::Call,
               static_cast<uint16_t>(missing - own->procedures.data()), m}));
}

/// The procedure that a micro-batch lacks, by what it has: a piece of one whose
/// other pieces are called, or the backward as a whole if all of it is missing.
const Procedure *Counter::lacking(int32_t stage, int32_t m,
                                  const Done &done) const {
  const Procedure *best = nullptr;
  int most = -1;
  std::set<Phase> inPieces;
  for (auto piece = pieces.lower_bound({m, 0});
       piece != pieces.end() && piece->first.first == m; ++piece)
    if (own->procedures[piece->first.second].stage == stage)
      inPieces.insert(own->procedures[piece->first.second].phase);
  for (const Procedure &code : own->procedures) {
    bool forward = code.phase == Phase::Forward;
    bool input = code.phase == Phase::InputGrad;
    bool weight = code.phase == Phase::WeightGrad;
    bool both = code.phase == Phase::Backward;
    if (code.stage != stage || (forward && done.forward != kNoNode) ||
        ((input || both) && done.input != kNoNode) ||
        ((weight || both) && done.weight != kNoNode) ||
        code.phase == Phase::Update)
      continue;
    int fits = forward ? 8 : both ? 4 : input ? 2 : 1;
    if (pieceOf(code) == 0 && inPieces.count(code.phase))
      fits += 16; // its other pieces are there
    if (pieceOf(code) <= 0 && fits > most) {
      most = fits;
      best = &code;
    }
  }
  return best;
}

/// Backward work is asked for where the stage has procedures for it.
void Counter::stage(int32_t stage, const std::vector<Done> &done) {
  const auto [input, weight] = backward[stage];
  for (size_t m = 0; m < done.size() && !failure; ++m) {
    auto lacks = [&](Node node, const char *what) {
      if (node != kNoNode)
        return;
      // The rest of the micro-batch's work is where to look.
      Node near = done[m].input != kNoNode    ? done[m].input
                  : done[m].weight != kNoNode ? done[m].weight
                                              : done[m].forward;
      std::string text =
          fmt::format("role {}: micro-batch {} never passes stage {} {}",
                      quoted(own->name), m, stage, what);
      if (near != kNoNode)
        text += ", as " + program.text(near) + " supposes";
      auto number = static_cast<int32_t>(m);
      failGap(text, lacking(stage, number, done[m]), number, near);
    };
    lacks(done[m].forward, "forward");
    if (input)
      lacks(done[m].input, "backward");
    if (weight)
      lacks(done[m].weight, "backward (weight gradients)");
  }
}

/// A micro-batch that has one piece of a procedure has all of them. The search
/// ends at the first that is missing, so that it takes as long as there are
/// calls.
void Counter::allPieces() {
  using Whole = std::pair<int32_t, std::string>; // stage, name of the whole
  auto whole = [](const Procedure &procedure) {
    return Whole{procedure.stage,
                 procedure.name.substr(0, procedure.name.find('.'))};
  };
  std::map<Whole, std::vector<uint16_t>> all;
  for (size_t p = 0; p < own->procedures.size(); ++p)
    if (pieceOf(own->procedures[p]) >= 0)
      all[whole(own->procedures[p])].push_back(static_cast<uint16_t>(p));
  std::set<std::pair<int32_t, const std::vector<uint16_t> *>> seen;
  for (const auto &[key, node] : pieces) {
    const std::vector<uint16_t> &others =
        all[whole(own->procedures[key.second])];
    if (failure || !seen.insert({key.first, &others}).second)
      continue;
    for (uint16_t p : others) {
      const Procedure &other = own->procedures[p];
      if (!failure && !pieces.count({key.first, p}))
        failGap(fmt::format("{} is a piece of a procedure whose piece {} is "
                            "never called for micro-batch {}",
                            program.text(node), pieceOf(other), key.first),
                &other, key.first, node);
    }
  }
}

void Counter::role(size_t index) {
  own = &program.plan.roles[index];
  stages.clear();
  backward.clear();
  for (const Procedure &procedure : own->procedures) {
    auto &[input, weight] = backward[procedure.stage];
    bool both = procedure.phase == Phase::Backward;
    input |= both || procedure.phase == Phase::InputGrad;
    weight |= both || procedure.phase == Phase::WeightGrad;
  }
  stepCalls.clear();
  pieces.clear();
  if (own->stages.empty())
    failure =
        ProofFailure{ProofRule::Completeness,
                     fmt::format("role {} has no stage", quoted(own->name)),
                     {},
                     {}};
  for (int32_t stage : own->stages)
    stages[stage].resize(program.plan.training.microBatches);
  std::map<std::tuple<InstrKind, uint16_t, int32_t>, Node> moved;
  size_t lanes = own->lanes.size();
  for (size_t l = 0; l < lanes && !failure; ++l)
    for (size_t i = 0; i < own->lanes[l].instrs.size() && !failure; ++i) {
      Node node =
          program.node(static_cast<int32_t>(index), static_cast<int32_t>(l),
                       static_cast<uint32_t>(i));
      const Instr &instr = program.instr(node);
      if (instr.kind == InstrKind::Call)
        call(node, own->procedures[instr.target]);
      else if (instr.kind == InstrKind::AllReduce)
        once(moved.insert({{instr.kind, instr.target, -1}, kNoNode})
                 .first->second,
             node);
      else if (instr.kind == InstrKind::Load)
        once(moved.insert({{instr.kind, 0, instr.microBatch}, kNoNode})
                 .first->second,
             node);
    }
  for (const auto &[number, done] : stages)
    stage(number, done);
  allPieces();
  for (size_t p = 0; p < own->procedures.size() && !failure; ++p)
    if (own->procedures[p].phase == Phase::Update &&
        !stepCalls.count(static_cast<uint16_t>(p)))
      failGap(fmt::format("role {} never calls procedure {}", quoted(own->name),
                          quoted(own->procedures[p].name)),
              &own->procedures[p], -1);
}

std::optional<ProofFailure> Counter::run() {
  for (size_t r = 0; r < program.plan.roles.size() && !failure; ++r)
    role(r);
  return failure;
}

} // namespace

std::optional<ProofFailure> checkCalls(const Program &program) {
  return Counter(program).run();
}

} // namespace takt::rt::proof
