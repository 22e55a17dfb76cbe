//===- memory.cpp - versions, lifetimes and sums ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Goes through the instructions in the total order and keeps, for each part of
// each slot, who wrote it last and who has read it since. Of two accesses that
// meet in a part, one a write, the first must happen before the second. Where
// that holds throughout, the order of the walk is the only one there is for
// each part, and what a read sees in the walk it sees in every run.
//
// Data of a micro-batch must have been written for that micro-batch, as the
// buffer that is read, by the work that the read means.
//
//===----------------------------------------------------------------------===//
#include "memory_walk.h"

#include "../check.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt::proof {

std::string Walker::placeOf(Node node, const Touch &touch) const {
  const Pool &pool = program.role(node).pools[touch.pool];
  int32_t m = program.instr(node).microBatch;
  return pool.count == 1 && pool.slotOf.empty()
             ? fmt::format("pool {}", quoted(pool.name))
             : fmt::format("slot {} of pool {}", pool.slot(m),
                           quoted(pool.name));
}

/// The instruction whose data the read is meant to see; if none writes the
/// part, the last before the reader that writes to the pool at all.
Node Walker::writerFor(Node reader, const Touch &touch) const {
  const Site &site = program.sites[reader];
  const Role &role = program.role(reader);
  const Instr &instr = program.instr(reader);
  const Touches &own = touches[site.role];
  bool isTemporary = role.pools[touch.pool].kind == PoolKind::Workspace;
  Node near = kNoNode;
  for (size_t l = 0; l < role.lanes.size(); ++l)
    for (size_t i = 0; i < role.lanes[l].instrs.size(); ++i) {
      const Instr &other = role.lanes[l].instrs[i];
      Node node = program.node(site.role, static_cast<int32_t>(l),
                               static_cast<uint32_t>(i));
      if (other.microBatch != instr.microBatch || node == reader)
        continue;
      for (const Touch &write : own.of(other)) {
        if (!write.writes || write.pool != touch.pool)
          continue;
        if (write.part == touch.part && !touch.meant.isNone() &&
            own.isMeant(other, instr, touch))
          return node;
        bool before = isTemporary ? own.turn(other) < own.turn(instr)
                                  : own.turn(other).work < own.turn(instr).work;
        if (before && (near == kNoNode ||
                       own.turn(program.instr(near)) < own.turn(other)))
          near = node;
      }
    }
  return near;
}

void Walker::readPassing(Node node, const Touch &touch, const Part &part) {
  const Instr &instr = program.instr(node);
  bool isMeant = part.writer != kNoNode &&
                 program.instr(part.writer).microBatch == instr.microBatch &&
                 touches[program.sites[node].role].isMeant(
                     program.instr(part.writer), instr, touch);
  if (!isMeant)
    return readWrong(node, touch, part);
  if (!reach.before(part.writer, node))
    return fail(ProofRule::StaleRead,
                fmt::format("{} may read {} before {} has written it: no wait "
                            "orders them",
                            program.text(node), placeOf(node, touch),
                            program.text(part.writer)),
                node, part.writer);
  if (touch.readAs != part.wroteAs && touch.readAs != kAnyBuffer &&
      part.wroteAs != kAnyBuffer)
    fail(ProofRule::Lifetime,
         fmt::format("{} reads a buffer of {} that {} has written over with "
                     "another",
                     program.text(node), placeOf(node, touch),
                     program.text(part.writer)),
         node, part.writer);
}

/// The data that the read means is not there yet, or not any more.
void Walker::readWrong(Node node, const Touch &touch, const Part &part) {
  const Touches &own = touches[program.sites[node].role];
  const Instr &instr = program.instr(node);
  std::string place = placeOf(node, touch);
  Node meant = writerFor(node, touch);
  int32_t found = part.writer == kNoNode
                      ? instr.microBatch
                      : program.instr(part.writer).microBatch;
  bool isLater = part.writer != kNoNode && found == instr.microBatch &&
                 own.turn(instr) < own.turn(program.instr(part.writer));
  if (!isLater && (meant == kNoNode || touch.meant.isNone()))
    return fail(ProofRule::StaleRead,
                fmt::format("{} reads bytes of {} that nobody writes for it",
                            program.text(node), place),
                node, meant == kNoNode ? part.writer : meant);
  if (!isLater && reach.place(meant) > reach.place(node))
    return fail(ProofRule::StaleRead,
                fmt::format("{} reads {}, which {} has yet to write",
                            program.text(node), place, program.text(meant)),
                node, meant);
  // Micro-batches take turns in a slot; where a later one came first, it is the
  // one that is out of order.
  if (!isLater && found < instr.microBatch)
    return fail(ProofRule::Lifetime,
                fmt::format("{} writes {} for {} before {} is done with it",
                            program.text(meant), place, program.text(node),
                            program.text(part.writer)),
                meant, part.writer);
  fail(ProofRule::Lifetime,
       fmt::format("{} may write over {} before {} has read it: no credit "
                   "orders them",
                   program.text(part.writer), place, program.text(node)),
       part.writer, node);
}

void Walker::orderAfter(Node node, const Touch &touch, Part &part) {
  if (touch.writes) {
    for (Node reader : part.readers)
      if (reader != node && !reach.before(reader, node))
        return fail(ProofRule::Lifetime,
                    fmt::format("{} may write over {} while {} still reads it: "
                                "no credit orders them",
                                program.text(node), placeOf(node, touch),
                                program.text(reader)),
                    node, reader);
    if (part.writer != kNoNode && !reach.before(part.writer, node))
      return fail(ProofRule::Lifetime,
                  fmt::format("{} and {} both write {} and nothing orders them",
                              program.text(node), program.text(part.writer),
                              placeOf(node, touch)),
                  node, part.writer);
    part.readers.clear();
    part.writer = node;
    part.wroteAs = touch.wroteAs;
    return;
  }
  if (part.writer != kNoNode && !reach.before(part.writer, node))
    return fail(ProofRule::StaleRead,
                fmt::format("{} may read {} before {} has written it: no wait "
                            "orders them",
                            program.text(node), placeOf(node, touch),
                            program.text(part.writer)),
                node, part.writer);
  uint16_t lane = program.sites[node].lane;
  for (Node &reader : part.readers)
    if (program.sites[reader].lane == lane) {
      reader = node;
      return;
    }
  part.readers.push_back(node);
}

void Walker::visit(Node node) {
  const Role &role = program.role(node);
  const Instr &instr = program.instr(node);
  RoleState &state = states[program.sites[node].role];
  for (const Touch &touch : state.touches.of(instr)) {
    Part &part = state.at(role, touch, instr.microBatch);
    PoolKind kind = role.pools[touch.pool].kind;
    if (kind == PoolKind::Gradients)
      accessGradient(node, touch, part);
    else if (touch.reads && kind == PoolKind::Weights)
      readWeight(node, touch, part);
    else if (touch.reads && Touches::isPassing(kind))
      readPassing(node, touch, part);
    orderAfter(node, touch, part);
    if (failure)
      return;
  }
  if (instr.microBatch < 0)
    failure = sums.visit(node);
}

//===----------------------------------------------------------------------===//
// The end of the step
//===----------------------------------------------------------------------===//

void Walker::checkLosses() {
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    const Role &role = plan.roles[r];
    for (size_t p = 0; role.hasLoss && p < role.pools.size(); ++p) {
      const Pool &pool = role.pools[p];
      for (int32_t m = 0; pool.kind == PoolKind::Loss &&
                          m < plan.training.microBatches && !failure;
           ++m) {
        size_t parts = states[r].touches.parts(static_cast<uint16_t>(p));
        size_t first = states[r].firstPart[p] + pool.slot(m) * parts;
        bool written = false;
        for (size_t i = 0; i < parts; ++i)
          written |= states[r].parts[first + i].writer != kNoNode;
        if (!written)
          failure = ProofFailure{
              ProofRule::Completeness,
              fmt::format("role {} never writes the loss of micro-batch {}",
                          quoted(role.name), m),
              {},
              {}};
      }
    }
  }
}

/// Kernels of one call must not disturb one another.
std::optional<ProofFailure> Walker::checkKernels() const {
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    const std::optional<KernelFault> &fault = touches[r].fault();
    if (!fault)
      continue;
    return program.kernelFailure(ProofRule::Lifetime, r, fault->procedure,
                                 nullptr, fault->text);
  }
  return std::nullopt;
}

std::optional<ProofFailure> Walker::run() {
  if (auto fault = checkKernels())
    return fault;
  for (Node node : order.nodes) {
    visit(node);
    if (failure)
      return failure;
  }
  failure = sums.finish();
  checkLosses();
  return failure;
}

std::optional<ProofFailure> checkMemory(const Program &program,
                                        const Order &order) {
  return Walker(program, order).run();
}

} // namespace takt::rt::proof
