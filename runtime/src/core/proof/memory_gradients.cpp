//===- memory_gradients.cpp - weights and open sums -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Weights are read until the step updates them, and gradients added to until
// their sum is taken.
//
//===----------------------------------------------------------------------===//
#include "memory_walk.h"

#include "../check.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt::proof {

void Walker::readWeight(Node node, const Touch &touch, const Part &part) {
  if (program.instr(node).microBatch >= 0 && part.writer != kNoNode)
    fail(ProofRule::StaleRead,
         fmt::format("{} reads {} after {} has updated it",
                     program.text(node), placeOf(node, touch),
                     program.text(part.writer)),
         node, part.writer);
}

/// A sum is open while micro-batches add to it; then the replicas reduce it;
/// then the tied sums and the update take it.
void Walker::accessGradient(Node node, const Touch &touch, Part &part) {
  const Instr &instr = program.instr(node);
  const Role &role = program.role(node);
  if (touch.adds && instr.microBatch >= 0) {
    Node closed = part.reduced != kNoNode ? part.reduced : part.taken;
    if (closed != kNoNode)
      return fail(ProofRule::Completeness,
                  fmt::format("{} adds to a gradient whose sum {} has taken "
                              "already",
                              program.text(node), program.text(closed)),
                  node, closed);
    ++part.added;
    part.lastAdd = node;
    return;
  }
  // Sums that come over a channel, or that are set to zero for the next step.
  if (!touch.reads || part.added == 0) {
    if (instr.kind == InstrKind::AllReduce)
      part.reduced = node;
    else if (touch.reads)
      part.taken = node;
    return;
  }
  if (part.added != plan.training.microBatches)
    return fail(ProofRule::Completeness,
                fmt::format("{} takes a gradient that {} of {} micro-batches "
                            "have added to",
                            program.text(node), part.added,
                            plan.training.microBatches),
                node, part.lastAdd);
  if (instr.kind == InstrKind::AllReduce) {
    if (part.reduced != kNoNode || part.taken != kNoNode)
      return fail(ProofRule::Completeness,
                  fmt::format("{} reduces a gradient after {}",
                              program.text(node),
                              program.text(part.reduced != kNoNode
                                               ? part.reduced
                                               : part.taken)),
                  node,
                  part.reduced != kNoNode ? part.reduced : part.taken);
    part.reduced = node;
    return;
  }
  if (role.replicas > 1 && part.reduced == kNoNode)
    return notReduced(node, touch);
  if (part.taken == kNoNode)
    part.taken = node;
}

/// A sum is taken before its reduction, or without any.
void Walker::notReduced(Node node, const Touch &touch) {
  const Role &role = program.role(node);
  const Touches &own = touches[program.sites[node].role];
  fail(ProofRule::Completeness,
       fmt::format("{} takes a gradient that the {} replicas of role {} have "
                   "not summed",
                   program.text(node), role.replicas, quoted(role.name)),
       node);
  for (const Endpoint &end : role.groups) {
    Instr reduces{InstrKind::AllReduce, end.target};
    const std::vector<Touch> &parts = own.of(reduces);
    if (std::none_of(parts.begin(), parts.end(), [&](const Touch &t) {
          return t.pool == touch.pool && t.part == touch.part;
        }))
      continue;
    Node found = kNoNode;
    for (Node n = 0; n < program.size(); ++n)
      if (&program.role(n) == &role &&
          program.instr(n).kind == reduces.kind &&
          program.instr(n).target == reduces.target)
        found = n;
    failure->ends.push_back(found == kNoNode ? program.gap(role, reduces)
                                             : program.end(found));
    return;
  }
}

} // namespace takt::rt::proof
