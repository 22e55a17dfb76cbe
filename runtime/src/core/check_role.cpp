//===- check_role.cpp - structural check of one role ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// After these checks a device can run every instruction without looking: each
// buffer lies in its slot, each slot in the arena, and each kernel stays within
// its buffers.
//
//===----------------------------------------------------------------------===//
#include "check.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/kernel_shape.h"
#include "takt-rt/core/names.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace takt::rt {

namespace {

class RoleChecker {
public:
  RoleChecker(const Plan &plan, size_t index, Faults &faults)
      : plan(plan), role(plan.roles[index]), index(index), faults(faults),
        where("role " + quoted(role.name) + ": ") {}

  void run() {
    checkNumbers();
    checkPools();
    checkOverlap();
    checkProcedures();
    checkEndpoints();
    checkLoads();
    checkParams();
    if (role.hasLoss)
      checkLossPool();
    if (role.result.bytes != 0)
      checkResult();
  }

private:
  template <typename Things>
  void checkNames(const Things &things, const char *what) {
    std::set<std::string> seen;
    for (const auto &thing : things) {
      if (thing.name.empty() || !isText(thing.name))
        faults.add(where, "bad name {} of a {}", quoted(thing.name), what);
      else if (!seen.insert(thing.name).second)
        faults.add(where, "two {}s are named {}", what, quoted(thing.name));
    }
  }

  void checkNumbers();
  void checkPools();
  void checkOverlap();
  void checkBuffer(const BufferRef &buffer, const std::string &at);
  void checkProcedures();
  void checkKernel(const Kernel &kernel, const std::string &at);
  void checkEndpoints();
  void checkEndpointOrder(const std::vector<Endpoint> &ends, size_t count,
                          const char *what);
  void checkLoads();
  void checkParams();
  void checkUse(const RoleParam &use);
  void checkLossPool();
  void checkResult();
  void blameLosses(const Pool &loss);

  const Plan &plan;
  const Role &role;
  size_t index;
  Faults &faults;
  std::string where;
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void RoleChecker::checkNumbers() {
  if (role.arenaBytes < 0 || role.arenaBytes > kMostBytes ||
      role.livenessBytes < 0 || role.livenessBytes > kMostBytes ||
      role.capacity < 0)
    faults.add(where, "bad arena, liveness or capacity size");
  if (role.peakInFlight < 0)
    faults.add(where, "{} micro-batches in flight", role.peakInFlight);
  for (int32_t stage : role.stages)
    if (stage < 0)
      faults.add(where, "stage {}", stage);
}

void RoleChecker::checkPools() {
  checkNames(role.pools, "pool");
  for (const Pool &pool : role.pools) {
    std::string at = where + "pool " + quoted(pool.name) + ": ";
    if (!isKnown(pool.kind))
      faults.add(at, "unknown kind");
    Bytes bytes = 0;
    if (pool.base < 0 || pool.slotBytes < 0 || pool.count < 1 ||
        __builtin_mul_overflow(pool.slotBytes, Bytes(pool.count), &bytes) ||
        bytes > role.arenaBytes || pool.base > role.arenaBytes - bytes)
      faults.add(at, "{} x {} bytes at {} leave the arena of {} bytes",
                 pool.count, pool.slotBytes, pool.base, role.arenaBytes);
    if (pool.base % kAlignment != 0 || pool.slotBytes % kAlignment != 0)
      faults.add(at, "base {} or slot size {} is not a multiple of {} bytes",
                 pool.base, pool.slotBytes, kAlignment);
    if (pool.slotOf.empty())
      continue;
    if (pool.slotOf.size() != static_cast<size_t>(plan.training.microBatches))
      faults.add(at, "slots of {} micro-batches, the step has {}",
                 pool.slotOf.size(), plan.training.microBatches);
    for (uint16_t slot : pool.slotOf)
      if (slot >= pool.count) {
        faults.add(at, "slot {} of {}", slot, pool.count);
        break;
      }
  }
}

void RoleChecker::checkOverlap() {
  // Sizes are only safe to add when checkPools found no fault.
  if (!faults.list.empty())
    return;
  std::vector<const Pool *> byBase;
  for (const Pool &pool : role.pools)
    if (pool.bytes() > 0)
      byBase.push_back(&pool);
  std::sort(byBase.begin(), byBase.end(), [](const Pool *a, const Pool *b) {
    return std::tie(a->base, a->name) < std::tie(b->base, b->name);
  });
  for (size_t i = 1; i < byBase.size(); ++i)
    if (byBase[i - 1]->base + byBase[i - 1]->bytes() > byBase[i]->base)
      faults.add(where, "pools {} and {} overlap", quoted(byBase[i - 1]->name),
                 quoted(byBase[i]->name));
}

void RoleChecker::checkBuffer(const BufferRef &buffer, const std::string &at) {
  if (buffer.pool >= role.pools.size())
    return faults.add(at, "no pool {}", buffer.pool);
  const Pool &pool = role.pools[buffer.pool];
  if (buffer.offset < 0 || buffer.bytes < 0 || buffer.bytes > pool.slotBytes ||
      buffer.offset > pool.slotBytes - buffer.bytes)
    faults.add(at, "{} bytes at {} leave a slot of pool {} of {} bytes",
               buffer.bytes, buffer.offset, quoted(pool.name), pool.slotBytes);
  else if (buffer.offset % kAlignment != 0)
    faults.add(at, "offset {} in pool {} is not a multiple of {} bytes",
               buffer.offset, quoted(pool.name), kAlignment);
}

//===----------------------------------------------------------------------===//
// Procedures
//===----------------------------------------------------------------------===//

void RoleChecker::checkKernel(const Kernel &kernel, const std::string &at) {
  if (!isKnown(kernel.kind) || !isKnown(kernel.phase) ||
      kernel.phase == Phase::Backward)
    return faults.add(at, "unknown kind or phase");
  if (kernel.layer < -1 ||
      kernel.layer >= static_cast<int64_t>(plan.layers.size()))
    faults.add(at, "no layer {}", kernel.layer);
  std::vector<Bytes> needs;
  try {
    needs = operandBytes(kernel);
  } catch (const Error &error) {
    return faults.add(at, "{}", error.what());
  }
  for (size_t i = 0; i < needs.size(); ++i) {
    checkBuffer(kernel.operands[i], at);
    if (kernel.operands[i].bytes < needs[i])
      faults.add(at, "operand {} of '{}' has {} bytes, needs {}", i,
                 nameOf(kernel.kind), kernel.operands[i].bytes, needs[i]);
  }
}

void RoleChecker::checkProcedures() {
  std::set<std::pair<int32_t, std::string>> seen;
  for (const Procedure &procedure : role.procedures) {
    std::string at = where + "procedure " + quoted(procedure.name) + ": ";
    if (procedure.name.empty() || !isText(procedure.name))
      faults.add(at, "bad name");
    if (!seen.insert({procedure.stage, procedure.name}).second)
      faults.add(at, "stage {} has two of this name", procedure.stage);
    if (!isKnown(procedure.phase))
      faults.add(at, "unknown phase");
    if (std::find(role.stages.begin(), role.stages.end(), procedure.stage) ==
        role.stages.end())
      faults.add(at, "stage {} is not one of the role's", procedure.stage);
    if (procedure.cost < 0)
      faults.add(at, "cost of {} ns", procedure.cost);
    for (size_t i = 0; i < procedure.kernels.size() && !faults.full(); ++i)
      checkKernel(procedure.kernels[i], at + fmt::format("kernel {}: ", i));
  }
}

//===----------------------------------------------------------------------===//
// Endpoints, loads, parameters
//===----------------------------------------------------------------------===//

void RoleChecker::checkEndpointOrder(const std::vector<Endpoint> &ends,
                                     size_t count, const char *what) {
  for (size_t i = 0; i < ends.size(); ++i) {
    std::string at =
        where + fmt::format("endpoint of {} {}: ", what, ends[i].target);
    if (ends[i].target >= count)
      faults.add(at, "no such {}", what);
    if (i > 0 && ends[i - 1].target >= ends[i].target)
      faults.add(at, "endpoints are not in ascending order");
    checkBuffer(ends[i].buffer, at);
  }
}

void RoleChecker::checkEndpoints() {
  checkEndpointOrder(role.channels, plan.channels.size(), "channel");
  checkEndpointOrder(role.groups, plan.groups.size(), "group");
  if (faults.full())
    return;
  for (const Endpoint &end : role.channels) {
    if (end.target >= plan.channels.size())
      continue;
    const Channel &channel = plan.channels[end.target];
    std::string at = where + "channel " + quoted(channel.name) + ": ";
    if (channel.srcRole != index && channel.dstRole != index)
      faults.add(at, "this role is at neither end");
    Bytes share = channel.kind == ChannelKind::Tie
                      ? channel.bytes
                      : channel.bytes / role.replicas;
    if (end.buffer.bytes != share)
      faults.add(at, "endpoint has {} bytes, its pieces have {}",
                 end.buffer.bytes, share);
  }
  for (const Endpoint &end : role.groups) {
    if (end.target >= plan.groups.size())
      continue;
    std::string at =
        where + "group " + quoted(plan.groups[end.target].name) + ": ";
    if (plan.groups[end.target].role != index)
      faults.add(at, "this role is not a member");
    if (end.buffer.bytes < 4 || end.buffer.bytes % 4 != 0)
      faults.add(at, "{} bytes are not floats", end.buffer.bytes);
  }
}

/// Bytes of a tensor of 4-byte elements; its shape has passed the plan's check.
Bytes shapeBytes(const std::vector<int64_t> &shape) {
  Bytes bytes = 4;
  for (int64_t dim : shape)
    bytes *= dim;
  return bytes;
}

void RoleChecker::checkLoads() {
  std::map<std::string_view, const InputInfo *> inputs;
  if (!role.loads.empty())
    for (const InputInfo &input : plan.inputs)
      inputs.emplace(input.name, &input);
  for (const LoadField &load : role.loads) {
    std::string at = where + "load of " + quoted(load.input) + ": ";
    checkBuffer(load.buffer, at);
    auto input = inputs.find(load.input);
    if (input == inputs.end()) {
      faults.add(at, "no such input");
      continue;
    }
    Bytes bytes = 0;
    if (__builtin_mul_overflow(shapeBytes(input->second->shape),
                               plan.training.microBatchSize() / role.replicas,
                               &bytes) ||
        load.buffer.bytes != bytes)
      faults.add(at, "buffer has {} bytes, this rank's samples have {}",
                 load.buffer.bytes, bytes);
  }
}

/// The result is there when a forward call ends: some kernel of it names the
/// buffer, or a message or a load has brought it.
void RoleChecker::checkResult() {
  const std::string at = where + "result: ";
  checkBuffer(role.result, at);
  Bytes bytes = 0;
  if (__builtin_mul_overflow(shapeBytes(plan.output.shape),
                             plan.training.microBatchSize() / role.replicas,
                             &bytes) ||
      role.result.bytes != bytes)
    return faults.add(at, "buffer has {} bytes, this rank's samples have {}",
                      role.result.bytes, bytes);
  for (const Procedure &procedure : role.procedures)
    for (const Kernel &kernel : procedure.kernels)
      for (const BufferRef &operand : kernel.operands)
        if (procedure.phase == Phase::Forward &&
            operand.pool == role.result.pool &&
            operand.offset == role.result.offset &&
            operand.bytes == role.result.bytes)
          return;
  faults.add(at, "no forward kernel names its buffer");
}

void RoleChecker::checkUse(const RoleParam &use) {
  if (use.param < 0 || use.param >= static_cast<int64_t>(plan.params.size()))
    return faults.add(where, "no parameter {}", use.param);
  const Param &param = plan.params[use.param];
  std::string at = where + "parameter " + quoted(param.name) + ": ";
  size_t states = plan.training.optimizer == OptimizerKind::Sgd        ? 0
                  : plan.training.optimizer == OptimizerKind::Momentum ? 1
                                                                       : 2;
  if (!param.trainable && (!use.grads.empty() || !use.state.empty()))
    faults.add(at, "is frozen but has gradients or optimizer state");
  if (!use.state.empty() && use.state.size() != states)
    faults.add(at, "{} optimizer states, '{}' keeps {}", use.state.size(),
               nameOf(plan.training.optimizer), states);
  Bytes bytes = shapeBytes(param.shape);
  auto check = [&](const BufferRef &buffer, const char *what) {
    checkBuffer(buffer, at);
    if (buffer.bytes != bytes)
      faults.add(at, "{} has {} bytes, its shape {}", what, buffer.bytes,
                 bytes);
  };
  check(use.weight, "weight");
  for (const BufferRef &grad : use.grads)
    check(grad, "gradient");
  for (const BufferRef &state : use.state)
    check(state, "optimizer state");
}

void RoleChecker::checkParams() {
  for (const RoleParam &use : role.params)
    if (!faults.full())
      checkUse(use);
}

void RoleChecker::checkLossPool() {
  const Pool *loss = nullptr;
  for (const Pool &pool : role.pools)
    if (pool.kind == PoolKind::Loss) {
      if (loss)
        return faults.add(where, "two loss pools");
      loss = &pool;
    }
  if (!loss)
    return faults.add(where, "has the loss but no loss pool");
  std::set<uint16_t> slots(loss->slotOf.begin(), loss->slotOf.end());
  bool hasSlots =
      plan.training.microBatches == 1 ||
      slots.size() == static_cast<size_t>(plan.training.microBatches);
  if (loss->slotBytes >= 4 && hasSlots)
    return;
  faults.add(where, "the loss pool has no slot for each micro-batch");
  blameLosses(*loss);
}

/// The forward calls of the first two micro-batches that share a slot.
void RoleChecker::blameLosses(const Pool &loss) {
  std::map<uint16_t, size_t> first;
  size_t one = 0, other = 0;
  for (size_t m = 0; m < loss.slotOf.size() && other == 0; ++m) {
    one = first.insert({loss.slotOf[m], m}).first->second;
    other = one < m ? m : 0;
  }
  for (size_t lane = 0; other > 0 && lane < role.lanes.size(); ++lane)
    for (size_t i = 0; i < role.lanes[lane].instrs.size(); ++i) {
      const Instr &instr = role.lanes[lane].instrs[i];
      bool calls = instr.kind == InstrKind::Call && instr.microBatch >= 0 &&
                   instr.target < role.procedures.size();
      auto m = static_cast<size_t>(instr.microBatch);
      if (calls && (m == one || m == other) &&
          role.procedures[instr.target].phase == Phase::Forward)
        faults.blame({index, lane, i});
    }
}

} // namespace

void checkRole(const Plan &plan, size_t index, Faults &faults) {
  RoleChecker(plan, index, faults).run();
  checkLanes(plan, index, faults);
}

} // namespace takt::rt
