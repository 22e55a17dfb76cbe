//===- memory_walk.h - the walk along the total order -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What is kept for each part of each slot while the instructions are gone
// through, and the checks of one instruction.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "program.h"
#include "reach.h"
#include "sums.h"

namespace takt::rt::proof {

struct Part {
  Node writer = kNoNode;
  BufferId wroteAs = kAnyBuffer;
  std::vector<Node> readers; ///< since the write, the last of each lane
  // Of gradients:
  int32_t added = 0;   ///< micro-batches that have accumulated
  Node lastAdd = kNoNode;
  Node reduced = kNoNode;
  Node taken = kNoNode; ///< first to take the sum
};

struct RoleState {
  RoleState(const Role &role, const Touches &touches) : touches(touches) {
    size_t size = 0;
    for (size_t p = 0; p < role.pools.size(); ++p) {
      firstPart.push_back(size);
      size += touches.parts(static_cast<uint16_t>(p)) * role.pools[p].count;
    }
    parts.resize(size);
  }
  Part &at(const Role &role, const Touch &touch, int32_t microBatch) {
    size_t slot = role.pools[touch.pool].slot(microBatch);
    return parts[firstPart[touch.pool] + slot * touches.parts(touch.pool) +
                 touch.part];
  }
  const Touches &touches;
  std::vector<size_t> firstPart; ///< by pool
  std::vector<Part> parts;
};

class Walker {
public:
  Walker(const Program &program, const Order &order)
      : program(program), plan(program.plan), order(order),
        reach(program, order), sums(program, touches) {
    touches.reserve(plan.roles.size()); // the states refer to them
    for (const Role &role : plan.roles)
      states.emplace_back(role, touches.emplace_back(plan, role));
  }
  std::optional<ProofFailure> run();

private:
  void visit(Node node);
  void readPassing(Node node, const Touch &touch, const Part &part);
  void readWrong(Node node, const Touch &touch, const Part &part);
  void accessGradient(Node node, const Touch &touch, Part &part);
  void notReduced(Node node, const Touch &touch);
  void readWeight(Node node, const Touch &touch, const Part &part);
  void orderAfter(Node node, const Touch &touch, Part &part);
  std::optional<ProofFailure> checkKernels() const;
  void checkLosses();
  Node writerFor(Node reader, const Touch &touch) const;
  std::string placeOf(Node node, const Touch &touch) const;
  void fail(ProofRule rule, std::string text, Node one,
            Node other = kNoNode) {
    if (!failure)
      failure = program.failure(rule, std::move(text), one, other);
  }

  const Program &program;
  const Plan &plan;
  const Order &order;
  Reach reach;
  std::vector<Touches> touches; ///< by role
  std::vector<RoleState> states;
  Sums sums;
  std::optional<ProofFailure> failure;
};

} // namespace takt::rt::proof
