//===- MemoryPlan.cpp - where a stage's tensors lie -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Offsets by first fit over decreasing sizes, saved tensors first: they are
// alive together in the gap, so no order of them could need less.
//
//===----------------------------------------------------------------------===//
#include "MemoryPlan.h"

#include <algorithm>

using namespace takt;

namespace {

using Kernels = std::vector<AbstractKernel>;

void touch(Lifetime &life, int32_t position, int8_t phase, bool external) {
  if (life.first < 0 && !external) {
    life.first = position;
    life.firstPhase = phase;
  }
  life.last = position;
  life.lastPhase = phase;
}

/// A free-list-less packer: placed tensors sorted by offset, scanned for the
/// first hole that is free over the whole lifetime.
class Packer {
public:
  /// Lowest offset where `bytes` fit during [first, last]; -1 if it would end
  /// past `limit` (no limit when negative).
  Bytes place(Bytes bytes, const Lifetime &life, Bytes limit) {
    Bytes at = 0;
    for (const Placed &p : placed) {
      if (p.last < life.first || life.last < p.first)
        continue;
      if (at + bytes <= p.begin)
        break;
      at = std::max(at, p.end);
    }
    if (limit >= 0 && at + bytes > limit)
      return -1;
    Placed entry{at, at + bytes, life.first, life.last};
    auto less = [](const Placed &a, const Placed &b) {
      return a.begin < b.begin;
    };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), entry, less),
                  entry);
    height = std::max(height, entry.end);
    return at;
  }
  Bytes height = 0;

private:
  struct Placed {
    Bytes begin, end;
    int32_t first, last;
  };
  std::vector<Placed> placed;
};

void findLifetimes(const Stage &stage, MemoryPlan &plan,
                   std::vector<int8_t> &phaseOf) {
  plan.lifetimes.assign(stage.tensors.size(), {});
  const Kernels *phases[kPhases] = {&stage.forward, &stage.inputGrad,
                                    &stage.weightGrad};
  int32_t position = 0;
  for (int8_t phase = 0; phase < kPhases; ++phase)
    for (const AbstractKernel &kernel : *phases[phase]) {
      auto use = [&](int32_t tensor) {
        TensorRole role = stage.tensors[tensor].role;
        bool external = role == TensorRole::Batch ||
                        role == TensorRole::Input ||
                        role == TensorRole::OutputGrad;
        touch(plan.lifetimes[tensor], position, phase, external);
      };
      for (const Operand &operand : kernel.operands)
        if (operand.kind == Operand::Tensor)
          use(operand.index);
      for (int32_t tensor : kernel.reads)
        use(tensor);
      for (int32_t tensor : kernel.makes)
        use(tensor);
      phaseOf.push_back(phase);
      ++position;
    }
}

/// Live bytes of internal tensors at every kernel, and what stays after each
/// phase.
void measure(const Stage &stage, const std::vector<int8_t> &phaseOf,
             MemoryPlan &plan) {
  std::vector<Bytes> change(phaseOf.size() + 1, 0);
  for (size_t t = 0; t < stage.tensors.size(); ++t) {
    const Lifetime &life = plan.lifetimes[t];
    if (stage.tensors[t].role != TensorRole::Internal || life.first < 0)
      continue;
    Bytes bytes = rt::alignUp(stage.tensors[t].bytes);
    change[life.first] += bytes;
    change[life.last + 1] -= bytes;
    for (int8_t phase = life.firstPhase; phase < life.lastPhase; ++phase)
      plan.held[phase] += bytes;
  }
  Bytes live = 0;
  for (size_t i = 0; i < phaseOf.size(); ++i) {
    live += change[i];
    plan.peak[phaseOf[i]] = std::max(plan.peak[phaseOf[i]], live);
  }
}

} // namespace

MemoryPlan takt::planMemory(const Stage &stage) {
  MemoryPlan plan;
  std::vector<int8_t> phaseOf;
  findLifetimes(stage, plan, phaseOf);
  measure(stage, phaseOf, plan);

  size_t count = stage.tensors.size();
  plan.offset.assign(count, 0);
  plan.inWorkspace.assign(count, false);
  std::vector<int32_t> saved, temporary;
  for (size_t t = 0; t < count; ++t) {
    const Lifetime &life = plan.lifetimes[t];
    if (stage.tensors[t].role != TensorRole::Internal || life.first < 0)
      continue;
    bool crosses = life.firstPhase != life.lastPhase;
    (crosses ? saved : temporary).push_back(int32_t(t));
    if (crosses)
      plan.savedUntil = std::max(plan.savedUntil, life.lastPhase);
  }
  auto larger = [&](int32_t a, int32_t b) {
    return stage.tensors[a].bytes > stage.tensors[b].bytes;
  };
  std::stable_sort(saved.begin(), saved.end(), larger);
  std::stable_sort(temporary.begin(), temporary.end(), larger);

  Packer slot, workspace;
  for (int32_t t : saved)
    plan.offset[t] =
        slot.place(rt::alignUp(stage.tensors[t].bytes), plan.lifetimes[t], -1);
  plan.savedBytes = slot.height;
  for (int32_t t : temporary) {
    Bytes bytes = rt::alignUp(stage.tensors[t].bytes);
    Bytes at = slot.place(bytes, plan.lifetimes[t], plan.savedBytes);
    if (at < 0) {
      plan.inWorkspace[t] = true;
      at = workspace.place(bytes, plan.lifetimes[t], -1);
    }
    plan.offset[t] = at;
  }
  plan.workspaceBytes = workspace.height;
  return plan;
}

int8_t takt::lastPhase(const MemoryPlan &plan, const std::vector<Crossing> &end,
                       bool gradients) {
  int8_t last = -1;
  for (const Crossing &crossing : end) {
    int32_t tensor = gradients ? crossing.gradient : crossing.tensor;
    if (tensor >= 0)
      last = std::max(
          {last, plan.lifetimes[tensor].lastPhase, int8_t(gradients ? 1 : 0)});
  }
  return last;
}
