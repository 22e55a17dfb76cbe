//===- recheck.cpp - memory along a certificate -----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The walk of memory.cpp for a plan whose order is known. Memory is a rank's own,
// so each role is gone through by itself, its lanes merged by their places, with
// no more than a row of counts an instruction and a few numbers a part. Only what
// lanes and waits decide is taken for granted, and nothing is explained: where
// the answer is no, the whole proof has to be made.
//
//===----------------------------------------------------------------------===//
#include "program.h"

#include "sums.h"

#include <algorithm>

namespace takt::rt::proof {

namespace {

class RoleRecheck {
public:
  RoleRecheck(const Plan &plan, const Role &role, const Touches &touches);
  bool holds();

private:
  /// A touch with what does not change from one instruction to the next.
  struct Use {
    Touch touch;
    const Pool *pool = nullptr;
    uint32_t first = 0;  ///< part of slot 0
    uint32_t stride = 0; ///< parts of a slot
    bool isPassing = false;
  };
  struct Part {
    uint32_t written = 0; ///< count of the writer's lane; 0: not written
    uint16_t lane = 0;    ///< of the writer
    uint16_t kind = 0;    ///< of the writer
    int32_t microBatch = 0;
    BufferId wroteAs = kAnyBuffer;
    int32_t added = 0;
    bool reduced = false, taken = false;
  };

  bool visit(size_t lane, uint32_t index, const uint32_t *known);
  bool readPassing(const Use &use, const Part &part, const Instr &instr,
                   size_t kind) const;
  bool accessGradient(const Use &use, Part &part, const Instr &instr) const;
  bool lossesWritten() const;
  void fillRow(size_t lane, uint32_t index);
  uint32_t *row(size_t lane, uint32_t index) {
    return rows.data() + (firstRow[lane] + index) * lanes;
  }

  const Plan &plan;
  const Role &role;
  const Touches &touches;
  size_t lanes;
  std::vector<std::vector<Use>> uses; ///< by kind of instruction
  std::vector<uint32_t> firstPart;    ///< by pool
  std::vector<Part> parts;
  std::vector<uint32_t> readers; ///< by part and lane: count of its last reader
  std::vector<size_t> firstRow;  ///< by lane
  /// By instruction and lane: instructions of the lane that complete before the
  /// instruction begins.
  std::vector<uint32_t> rows;
};

RoleRecheck::RoleRecheck(const Plan &plan, const Role &role,
                         const Touches &touches)
    : plan(plan), role(role), touches(touches), lanes(role.lanes.size()) {
  uint32_t size = 0;
  for (size_t p = 0; p < role.pools.size(); ++p) {
    firstPart.push_back(size);
    size += static_cast<uint32_t>(touches.parts(static_cast<uint16_t>(p)) *
                                  role.pools[p].count);
  }
  parts.resize(size);
  readers.resize(size * lanes);
  size_t instrs = 0;
  for (const Lane &lane : role.lanes) {
    firstRow.push_back(instrs);
    instrs += lane.instrs.size();
  }
  rows.resize(instrs * lanes);
  uses.resize(touches.kinds());
  for (size_t kind = 0; kind < uses.size(); ++kind)
    for (const Touch &touch : touches.ofKind(kind)) {
      const Pool &pool = role.pools[touch.pool];
      uses[kind].push_back({touch, &pool, firstPart[touch.pool] + touch.part,
                            static_cast<uint32_t>(touches.parts(touch.pool)),
                            Touches::isPassing(pool.kind)});
    }
}

void RoleRecheck::fillRow(size_t lane, uint32_t index) {
  uint32_t *own = row(lane, index);
  auto take = [&](size_t from, uint32_t count) {
    // Rows are closed: what is known to be done brought all before it.
    if (own[from] >= count)
      return;
    const uint32_t *other = row(from, count - 1);
    for (size_t l = 0; l < lanes; ++l)
      own[l] = std::max(own[l], other[l]);
    own[from] = std::max(own[from], count);
  };
  const Lane &code = role.lanes[lane];
  const Instr &instr = code.instrs[index];
  take(lane, index);
  for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w)
    take(code.waits[w].lane, code.waits[w].count);
}

bool RoleRecheck::readPassing(const Use &use, const Part &part,
                              const Instr &instr, size_t kind) const {
  const Touch &touch = use.touch;
  return part.written > 0 && part.microBatch == instr.microBatch &&
         touches.isMeant(part.kind, kind, touch) &&
         (touch.readAs == part.wroteAs || touch.readAs == kAnyBuffer ||
          part.wroteAs == kAnyBuffer);
}

bool RoleRecheck::accessGradient(const Use &use, Part &part,
                                 const Instr &instr) const {
  bool reduces = instr.kind == InstrKind::AllReduce;
  bool isClosed = part.reduced || part.taken;
  if (use.touch.adds && instr.microBatch >= 0) {
    ++part.added;
    return !isClosed;
  }
  if (use.touch.reads && part.added > 0) {
    if (part.added != plan.training.microBatches || (reduces && isClosed) ||
        (!reduces && role.replicas > 1 && !part.reduced))
      return false;
  }
  part.reduced |= reduces;
  part.taken |= !reduces && use.touch.reads;
  return true;
}

bool RoleRecheck::visit(size_t lane, uint32_t index, const uint32_t *known) {
  const Instr &instr = role.lanes[lane].instrs[index];
  size_t kind = touches.kindOf(instr);
  for (const Use &use : uses[kind]) {
    size_t at = use.first + use.pool->slot(instr.microBatch) * use.stride;
    Part &part = parts[at];
    const Touch &touch = use.touch;
    PoolKind pool = use.pool->kind;
    if (pool == PoolKind::Gradients && !accessGradient(use, part, instr))
      return false;
    if (pool == PoolKind::Weights && touch.reads && instr.microBatch >= 0 &&
        part.written > 0)
      return false;
    if (use.isPassing && touch.reads && !readPassing(use, part, instr, kind))
      return false;
    if (part.written > known[part.lane])
      return false;
    uint32_t *last = readers.data() + at * lanes;
    if (!touch.writes) {
      last[lane] = index + 1;
      continue;
    }
    for (size_t l = 0; l < lanes; ++l) {
      if (last[l] > known[l])
        return false;
      last[l] = 0;
    }
    part.written = index + 1;
    part.lane = static_cast<uint16_t>(lane);
    part.kind = static_cast<uint16_t>(kind);
    part.microBatch = instr.microBatch;
    part.wroteAs = touch.wroteAs;
  }
  return true;
}

bool RoleRecheck::lossesWritten() const {
  for (size_t p = 0; role.hasLoss && p < role.pools.size(); ++p) {
    const Pool &pool = role.pools[p];
    size_t count = touches.parts(static_cast<uint16_t>(p));
    for (int32_t m = 0;
         pool.kind == PoolKind::Loss && m < plan.training.microBatches; ++m) {
      auto first = parts.begin() + firstPart[p] +
                   static_cast<int64_t>(pool.slot(m) * count);
      if (std::none_of(first, first + static_cast<int64_t>(count),
                       [](const Part &part) { return part.written > 0; }))
        return false;
    }
  }
  return true;
}

bool RoleRecheck::holds() {
  if (touches.fault() || uses.size() > 0xffff)
    return false;
  std::vector<uint32_t> next(lanes);
  for (size_t left = rows.size(); left > 0; left -= lanes) {
    size_t first = lanes;
    uint32_t place = 0;
    for (size_t l = 0; l < lanes; ++l) {
      const Lane &lane = role.lanes[l];
      if (next[l] < lane.instrs.size() &&
          (first == lanes || lane.order[next[l]] < place)) {
        first = l;
        place = lane.order[next[l]];
      }
    }
    uint32_t index = next[first]++;
    fillRow(first, index);
    if (!visit(first, index, row(first, index)))
      return false;
  }
  return lossesWritten();
}

/// The instructions of the step, of all roles, by their places.
bool sumsHold(const Program &program, const std::vector<Touches> &touches) {
  std::vector<std::pair<uint32_t, Node>> step;
  for (Node node = 0; node < program.size(); ++node)
    if (program.instr(node).microBatch < 0)
      step.push_back(
          {program.lane(node).order[program.sites[node].instr], node});
  std::sort(step.begin(), step.end());
  Sums sums(program, touches);
  for (const auto &[place, node] : step)
    if (sums.visit(node))
      return false;
  return !sums.finish();
}

} // namespace

bool recheckMemory(const Program &program) {
  const Plan &plan = program.plan;
  std::vector<Touches> touches;
  touches.reserve(plan.roles.size());
  for (const Role &role : plan.roles) {
    touches.emplace_back(plan, role);
    if (!RoleRecheck(plan, role, touches.back()).holds())
      return false;
  }
  return sumsHold(program, touches);
}

} // namespace takt::rt::proof
