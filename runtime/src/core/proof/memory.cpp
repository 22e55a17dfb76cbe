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
// buffer that is read. Sums of gradients carry what has gone into them; the
// update must find one contribution of each use, replica and stage.
//
//===----------------------------------------------------------------------===//
#include "program.h"

#include "reach.h"
#include "touches.h"

#include "../check.h"

#include "takt-rt/core/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace takt::rt::proof {

namespace {

/// (role, parameter of the role, accumulator) -> how often it is in a sum.
using Contributions = std::map<std::tuple<uint16_t, size_t, size_t>, int32_t>;

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
  explicit RoleState(const Plan &plan, const Role &role)
      : touches(plan, role) {
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
  Touches touches;
  std::vector<size_t> firstPart; ///< by pool
  std::vector<Part> parts;
  std::map<size_t, Contributions> sums; ///< by part, where not its own
};

class Walker {
public:
  Walker(const Program &program, const Order &order)
      : program(program), plan(program.plan), order(order),
        reach(program, order) {}
  std::optional<ProofFailure> run();

private:
  void visit(Node node);
  void readPassing(Node node, const Touch &touch, const Part &part);
  void accessGradient(Node node, const Touch &touch, Part &part);
  void readWeight(Node node, const Touch &touch, const Part &part);
  void orderAfter(Node node, const Touch &touch, Part &part);
  void moveSums(Node node);
  void checkUpdates(Node node);
  void checkLosses();
  Node writerFor(Node reader, const Touch &touch) const;
  std::string placeOf(Node node, const Touch &touch) const;
  Contributions sumOf(uint16_t role, const BufferRef &ref);
  size_t partIndex(uint16_t role, const BufferRef &ref);
  Contributions wanted(int32_t param) const;
  void fail(ProofRule rule, std::string text, Node one,
            Node other = kNoNode) {
    if (!failure)
      failure = program.failure(rule, std::move(text), one, other);
  }

  const Program &program;
  const Plan &plan;
  const Order &order;
  Reach reach;
  std::vector<RoleState> states;
  std::map<Node, Contributions> messages; ///< sums under way, by send
  std::set<std::pair<uint16_t, size_t>> updated; ///< role and parameter
  std::optional<ProofFailure> failure;
  std::optional<ProofFailure> incomplete; ///< counts if nothing else fails
};

std::string Walker::placeOf(Node node, const Touch &touch) const {
  const Pool &pool = program.role(node).pools[touch.pool];
  int32_t m = program.instr(node).microBatch;
  return pool.count == 1 && pool.slotOf.empty()
             ? fmt::format("pool {}", quoted(pool.name))
             : fmt::format("slot {} of pool {}", pool.slot(m),
                           quoted(pool.name));
}

/// The instruction whose data the read is meant to see.
Node Walker::writerFor(Node reader, const Touch &touch) const {
  const Site &site = program.sites[reader];
  const Role &role = program.role(reader);
  int32_t m = program.instr(reader).microBatch;
  Node found = kNoNode;
  for (size_t l = 0; l < role.lanes.size(); ++l)
    for (size_t i = 0; i < role.lanes[l].instrs.size(); ++i) {
      const Instr &instr = role.lanes[l].instrs[i];
      Node node = program.node(site.role, static_cast<int32_t>(l),
                               static_cast<uint32_t>(i));
      if (instr.microBatch != m || node == reader)
        continue;
      for (const Touch &other : states[site.role].touches.of(instr))
        if (other.pool == touch.pool && other.part == touch.part &&
            other.writes && (!other.reads || found == kNoNode))
          found = node;
    }
  return found;
}

void Walker::readPassing(Node node, const Touch &touch, const Part &part) {
  const Instr &instr = program.instr(node);
  Node meant = kNoNode;
  if (part.writer == kNoNode) {
    meant = writerFor(node, touch);
    std::string who =
        meant == kNoNode ? "nobody ever writes" : program.text(meant) +
                                                      " has yet to write";
    return fail(ProofRule::StaleRead,
                fmt::format("{} reads {}, which {}", program.text(node),
                            placeOf(node, touch), who),
                node, meant);
  }
  if (program.instr(part.writer).microBatch != instr.microBatch) {
    meant = writerFor(node, touch);
    return fail(ProofRule::StaleRead,
                fmt::format("{} reads {} but finds what {} wrote there{}",
                            program.text(node), placeOf(node, touch),
                            program.text(part.writer),
                            meant == kNoNode
                                ? ""
                                : ", not the data of " + program.text(meant)),
                node, meant == kNoNode ? part.writer : meant);
  }
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
    return fail(ProofRule::Completeness,
                fmt::format("{} takes a gradient that the {} replicas of role "
                            "{} have not summed",
                            program.text(node), role.replicas,
                            quoted(role.name)),
                node, part.lastAdd);
  if (part.taken == kNoNode)
    part.taken = node;
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
    moveSums(node);
}

//===----------------------------------------------------------------------===//
// Sums of tied parameters
//===----------------------------------------------------------------------===//

size_t Walker::partIndex(uint16_t role, const BufferRef &ref) {
  RoleState &state = states[role];
  return state.firstPart[ref.pool] +
         state.touches.partOf(ref).value_or(0);
}

/// An accumulator of the role holds its own use, until something is added to it
/// or put into it.
Contributions Walker::sumOf(uint16_t role, const BufferRef &ref) {
  auto known = states[role].sums.find(partIndex(role, ref));
  if (known != states[role].sums.end())
    return known->second;
  const Role &own = plan.roles[role];
  Contributions sum;
  if (own.pools[ref.pool].kind != PoolKind::Gradients)
    return sum;
  for (size_t p = 0; p < own.params.size(); ++p)
    for (size_t use = 0; use < own.params[p].grads.size(); ++use) {
      const BufferRef &grad = own.params[p].grads[use];
      if (grad.pool == ref.pool && grad.offset == ref.offset)
        sum[{role, p, use}] = 1;
    }
  return sum;
}

/// Every use of the parameter by every role that has an accumulator for it.
Contributions Walker::wanted(int32_t param) const {
  Contributions all;
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    const Role &role = plan.roles[r];
    for (size_t p = 0; p < role.params.size(); ++p)
      for (size_t use = 0; use < role.params[p].grads.size(); ++use)
        if (role.params[p].param == param &&
            role.pools[role.params[p].grads[use].pool].kind ==
                PoolKind::Gradients)
          all[{static_cast<uint16_t>(r), p, use}] = 1;
  }
  return all;
}

void Walker::moveSums(Node node) {
  const Instr &instr = program.instr(node);
  uint16_t role = program.sites[node].role;
  const Role &own = plan.roles[role];
  RoleState &state = states[role];
  if (instr.kind == InstrKind::Send || instr.kind == InstrKind::Recv) {
    const BufferRef &buffer = findEndpoint(own.channels, instr.target)->buffer;
    bool sends = instr.kind == InstrKind::Send;
    // Whichever end comes first in the walk, the sum is the sender's.
    Node send = sends ? node : program.mates[node];
    uint16_t source = program.sites[send].role;
    auto [entry, isNew] = messages.insert({send, {}});
    if (isNew)
      entry->second = sumOf(
          source,
          findEndpoint(plan.roles[source].channels, instr.target)->buffer);
    if (!sends)
      state.sums[partIndex(role, buffer)] = entry->second;
    return;
  }
  if (instr.kind != InstrKind::Call)
    return;
  for (const Kernel &kernel : own.procedures[instr.target].kernels)
    if (kernel.kind == KernelKind::Accumulate) {
      Contributions sum = sumOf(role, kernel.operands[1]);
      for (const auto &[use, count] : sumOf(role, kernel.operands[0]))
        sum[use] += count;
      state.sums[partIndex(role, kernel.operands[1])] = std::move(sum);
    }
  checkUpdates(node);
}

void Walker::checkUpdates(Node node) {
  const Instr &instr = program.instr(node);
  uint16_t role = program.sites[node].role;
  const Role &own = plan.roles[role];
  for (const Kernel &kernel : own.procedures[instr.target].kernels) {
    bool updates = kernel.kind == KernelKind::SgdUpdate ||
                   kernel.kind == KernelKind::MomentumUpdate ||
                   kernel.kind == KernelKind::AdamWUpdate;
    for (size_t p = 0; updates && p < own.params.size(); ++p) {
      const RoleParam &param = own.params[p];
      const BufferRef &weight = kernel.operands[0];
      Bytes into = param.weight.offset - weight.offset;
      if (param.weight.pool != weight.pool || into < 0 ||
          into >= kernel.dims[0] * 4)
        continue;
      const std::string name = quoted(plan.params[param.param].name);
      if (!updated.insert({role, p}).second)
        return fail(ProofRule::Completeness,
                    fmt::format("{} updates parameter {} a second time",
                                program.text(node), name),
                    node);
      BufferRef grad = kernel.operands[1];
      grad.offset += into;
      if (param.grads.empty() || grad.offset != param.grads[0].offset ||
          grad.pool != param.grads[0].pool)
        return fail(ProofRule::Completeness,
                    fmt::format("{} updates parameter {} from a buffer that is "
                                "not its gradient",
                                program.text(node), name),
                    node);
      // The walk goes on: what went wrong may lie on another role.
      if (!incomplete && sumOf(role, grad) != wanted(param.param))
        incomplete = program.failure(
            ProofRule::Completeness,
            fmt::format("{} updates parameter {} without the sum of all its "
                        "uses, each once",
                        program.text(node), name),
            node);
    }
  }
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
    for (size_t p = 0; p < role.params.size() && !failure; ++p)
      if (!role.params[p].grads.empty() &&
          !updated.count({static_cast<uint16_t>(r), p}))
        failure = ProofFailure{
            ProofRule::Completeness,
            fmt::format("role {} never updates parameter {}",
                        quoted(role.name),
                        quoted(plan.params[role.params[p].param].name)),
            {},
            {}};
  }
}

std::optional<ProofFailure> Walker::run() {
  for (const Role &role : plan.roles) {
    states.emplace_back(plan, role);
    const std::optional<KernelFault> &fault = states.back().touches.fault();
    if (!fault)
      continue;
    const Procedure &procedure = role.procedures[fault->procedure];
    ProofFailure found{ProofRule::Lifetime,
                       fmt::format("procedure '{}' of role {}: {}",
                                   procedure.name, quoted(role.name),
                                   fault->text),
                       {},
                       {}};
    // The first call stands for all of them.
    for (Node n = 0; n < program.size() && found.ends.empty(); ++n)
      if (&program.role(n) == &role &&
          program.instr(n).kind == InstrKind::Call &&
          program.instr(n).target == fault->procedure)
        found.ends.push_back(program.end(n));
    return found;
  }
  for (Node node : order.nodes) {
    visit(node);
    if (failure)
      return failure;
  }
  if (incomplete)
    return incomplete;
  checkLosses();
  return failure;
}

} // namespace

std::optional<ProofFailure> checkMemory(const Program &program,
                                        const Order &order) {
  return Walker(program, order).run();
}

} // namespace takt::rt::proof
