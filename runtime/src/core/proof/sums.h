//===- sums.h - what has gone into the sums of gradients --------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A tied parameter has an accumulator for each use, on several roles perhaps.
// The instructions of the step move and add these; the update of the parameter
// must find one contribution of each use, replica and stage, and leave every
// accumulator at zero for the next step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "program.h"
#include "touches.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace takt::rt::proof {

class Sums {
public:
  /// `touches` by role; both must outlive the sums.
  Sums(const Program &program, const std::vector<Touches> &touches)
      : program(program), plan(program.plan), touches(touches) {}

  /// Follows an instruction of the step (no micro-batch); they come in an order
  /// that the plan allows.
  std::optional<ProofFailure> visit(Node node);
  /// What is missing once all have come.
  std::optional<ProofFailure> finish() const;

private:
  /// (role, parameter of the role, accumulator) -> how often it is in a sum.
  using Contributions = std::map<std::tuple<uint16_t, size_t, size_t>, int32_t>;
  using Key = std::tuple<uint16_t, uint16_t, uint16_t>; ///< role, pool, part

  Key keyOf(uint16_t role, const BufferRef &ref) const;
  Contributions sumOf(uint16_t role, const BufferRef &ref) const;
  Contributions wanted(int32_t param) const;
  void move(Node node);
  void add(uint16_t role, const Kernel &kernel);
  void clear(uint16_t role, const BufferRef &ref);
  std::optional<ProofFailure> call(Node node);
  std::optional<ProofFailure> update(Node node, const Kernel &kernel);

  const Program &program;
  const Plan &plan;
  const std::vector<Touches> &touches;
  std::map<Key, Contributions> sums;      ///< where not its own use alone
  std::map<Node, Contributions> messages; ///< sums under way, by send
  std::set<std::pair<uint16_t, size_t>> updated; ///< role and parameter
  std::optional<ProofFailure> incomplete; ///< counts if nothing else fails
};

} // namespace takt::rt::proof
