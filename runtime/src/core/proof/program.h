//===- program.h - the instructions of all roles as one graph ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every instruction of every role is a node, numbered role by role and lane by
// lane. Edges are the order within a lane, the waits, and the two ends of a
// message, which complete together.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../check.h"

#include "takt-rt/core/proof.h"

#include <cstdint>
#include <vector>

namespace takt::rt::proof {

using Node = uint32_t;
constexpr Node kNoNode = ~Node(0);

struct Site {
  uint16_t role = 0;
  uint16_t lane = 0;
  uint32_t instr = 0;
};

class Program {
public:
  /// The plan must pass `checkStructure` and outlive the program.
  explicit Program(const Plan &plan);

  const Plan &plan;
  std::vector<Site> sites;              ///< by node
  std::vector<std::vector<Node>> bases; ///< by role and lane: its first node
  std::vector<Node> mates; ///< of a send its receive and back; else kNoNode

  size_t size() const { return sites.size(); }
  const Role &role(Node node) const { return plan.roles[sites[node].role]; }
  const Lane &lane(Node node) const {
    return role(node).lanes[sites[node].lane];
  }
  const Instr &instr(Node node) const {
    return lane(node).instrs[sites[node].instr];
  }
  Node node(int32_t role, int32_t lane, uint32_t instr) const {
    return bases[role][lane] + instr;
  }
  ProofEnd end(Node node) const;
  /// The end of an instruction that a role lacks: "(no 1F3)", on the lane whose
  /// instructions are of its kind, after the last of them.
  ProofEnd gap(const Role &role, const Instr &missing) const;
  /// "'1F3' (role 'stage1', lane 'compute', instruction 4)"
  std::string text(Node node) const;
  ProofFailure failure(ProofRule rule, std::string text, Node one,
                       Node other = kNoNode) const;
  /// "procedure 'B' of role 'stage1': kernel 'x' of layer 'y' " and what is
  /// wrong, at the first call of the procedure; without a kernel it is the
  /// procedure that does.
  ProofFailure kernelFailure(ProofRule rule, size_t role, size_t procedure,
                             const Kernel *kernel,
                             const std::string &what) const;
  /// The first call of a procedure, which stands for all of them; kNoNode if
  /// there is none.
  Node firstCall(size_t role, size_t procedure) const;

  /// Pairs sends and receives; the first pair that does not fit is a failure.
  std::optional<ProofFailure> match();
  /// Messages between ranks and reductions; needs `match`.
  int64_t countMessages() const;
};

/// The order in which the nodes complete if each begins as soon as it may, and
/// the length of the longest chain of edges up to each.
struct Order {
  std::vector<Node> nodes;
  std::vector<uint32_t> levels; ///< by node
  std::optional<ProofFailure> failure;
};
Order findOrder(const Program &program);

/// What a deadlock is about: `heads[role][lane]` counts completed instructions.
/// Nothing if some head waits for nobody.
std::optional<ProofFailure>
explainDeadlock(const Program &program,
                const std::vector<std::vector<uint32_t>> &heads);

std::optional<ProofFailure> checkCalls(const Program &program);
/// Kernels are given the parameters of their layers.
std::optional<ProofFailure> checkParams(const Program &program);
struct GradientProof {
  std::optional<ProofFailure> failure;
  /// The buffers of the kernels are at odds: if `checkMemory` fails too, it
  /// says better where.
  bool isVague = false;
};
/// Every layer runs forward once, and gives each gradient once.
GradientProof checkGradients(const Program &program);
std::optional<ProofFailure> checkMemory(const Program &program,
                                        const Order &order);
/// True if versions, lifetimes and sums hold along the plan's certificate,
/// whose places must follow all edges; false: the whole proof has to decide.
bool recheckMemory(const Program &program);
std::optional<ProofFailure> checkCapacity(const Plan &plan);
/// Why `checkStructure` refused, with the instructions it is about.
ProofFailure explainStructure(const Plan &plan, const Faults &faults);
std::vector<ProofFailure> findWarnings(const Program &program);

} // namespace takt::rt::proof
