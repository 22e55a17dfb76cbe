//===- SymbolicRun.cpp - what a plan computes, by symbols -------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Additions are sums of hashes, so that their order does not matter; everything
// else is a hash over operands in order.
//
//===----------------------------------------------------------------------===//
#include "SymbolicRun.h"

#include <algorithm>
#include <map>
#include <random>

namespace takt::test {

using namespace rt;

namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2)));
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 29);
}

class Symbolic {
public:
  Symbolic(const Plan &plan, uint32_t seed);
  std::optional<std::vector<uint64_t>> run();

private:
  struct LaneState {
    int32_t rank = 0;
    size_t lane = 0, done = 0;
    uint32_t eagerness = 0;
  };
  std::vector<uint64_t *> cells(int32_t rank, const BufferRef &ref, int32_t m);
  void kernel(int32_t rank, const Kernel &kernel, int32_t m);
  bool ready(const LaneState &state) const;
  const Instr &head(const LaneState &state) const;
  bool step(LaneState &state);
  bool transfer(LaneState &sender, const Instr &send);
  bool reduce(LaneState &state, const Instr &instr);
  LaneState *waiting(int32_t rank, InstrKind kind, uint16_t target);
  const Role &role(int32_t rank) const {
    return plan.roles[plan.roleOf(rank)];
  }

  const Plan &plan;
  std::vector<std::vector<uint64_t>> memory; ///< by rank and 64-byte piece
  std::vector<LaneState> lanes;
  std::vector<size_t> firstLane;
};

Symbolic::Symbolic(const Plan &plan, uint32_t seed) : plan(plan) {
  std::mt19937 random(seed);
  for (int32_t rank = 0; rank < plan.numRanks(); ++rank) {
    const Role &own = role(rank);
    memory.emplace_back(own.arenaBytes / kAlignment + 1, 0);
    firstLane.push_back(lanes.size());
    for (size_t l = 0; l < own.lanes.size(); ++l)
      lanes.push_back({rank, l, 0, uint32_t(random())});
    // A parameter is its name on every rank; sums begin at nothing.
    for (const RoleParam &param : own.params) {
      auto set = [&](const BufferRef &ref, uint64_t salt) {
        uint64_t i = 0;
        for (uint64_t *cell : cells(rank, ref, -1))
          *cell = mix(mix(salt, uint64_t(param.param)), i++);
      };
      set(param.weight, 1);
      for (const BufferRef &state : param.state)
        set(state, 2);
    }
  }
}

std::vector<uint64_t *> Symbolic::cells(int32_t rank, const BufferRef &ref,
                                        int32_t m) {
  const Pool &pool = role(rank).pools[ref.pool];
  Bytes begin = pool.base + pool.slot(m) * pool.slotBytes + ref.offset;
  std::vector<uint64_t *> out;
  for (Bytes at = begin; at < begin + ref.bytes; at += kAlignment)
    out.push_back(&memory[rank][at / kAlignment]);
  return out;
}

void Symbolic::kernel(int32_t rank, const Kernel &k, int32_t m) {
  // Only what each kind does to its last operands is needed here.
  size_t n = k.operands.size();
  size_t outputs = 1, sums = 0;
  bool update = false;
  switch (k.kind) {
  case KernelKind::EmbeddingWeightGrad:
  case KernelKind::PositionWeightGrad:
  case KernelKind::RmsNormWeightGrad:
  case KernelKind::Accumulate:
    sums = 1;
    break;
  case KernelKind::LinearWeightGrad:
    sums = n - 2;
    break;
  case KernelKind::LayerNormWeightGrad:
    sums = 2;
    break;
  case KernelKind::LayerNormForward:
  case KernelKind::AttentionForward:
    outputs = 3;
    break;
  case KernelKind::AttentionInputGrad:
  case KernelKind::RmsNormForward:
  case KernelKind::CrossEntropyForward:
    outputs = 2;
    break;
  case KernelKind::SgdUpdate:
  case KernelKind::MomentumUpdate:
  case KernelKind::AdamWUpdate:
    update = true;
    break;
  case KernelKind::Zero:
    for (uint64_t *cell : cells(rank, k.operands[0], m))
      *cell = 0;
    return;
  default:
    break;
  }
  uint64_t hash = mix(uint64_t(k.kind), uint64_t(k.layer));
  size_t inputs = update ? n : n - (sums ? sums : outputs);
  for (size_t i = 0; i < inputs; ++i)
    for (uint64_t *cell : cells(rank, k.operands[i], m))
      hash = mix(hash, *cell);
  // What a sample's rows become differs by replica.
  for (size_t i = update ? 0 : inputs; i < n; ++i) {
    uint64_t index = i << 32;
    for (uint64_t *cell : cells(rank, k.operands[i], m)) {
      uint64_t value = mix(hash, index++);
      if (sums)
        *cell += value;
      else
        *cell = update && i == 1 ? 0 : value;
    }
  }
}

bool Symbolic::ready(const LaneState &state) const {
  const Lane &code = role(state.rank).lanes[state.lane];
  if (state.done == code.instrs.size())
    return false;
  const Instr &instr = code.instrs[state.done];
  for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w)
    if (lanes[firstLane[state.rank] + code.waits[w].lane].done <
        code.waits[w].count)
      return false;
  return true;
}

const Instr &Symbolic::head(const LaneState &state) const {
  return role(state.rank).lanes[state.lane].instrs[state.done];
}

Symbolic::LaneState *Symbolic::waiting(int32_t rank, InstrKind kind,
                                       uint16_t target) {
  for (size_t l = 0; l < role(rank).lanes.size(); ++l) {
    LaneState &state = lanes[firstLane[rank] + l];
    if (ready(state) && head(state).kind == kind &&
        head(state).target == target)
      return &state;
  }
  return nullptr;
}

/// Moves a message once both ends are there; replica i speaks to replica i.
bool Symbolic::transfer(LaneState &sender, const Instr &send) {
  const Channel &channel = plan.channels[send.target];
  int32_t peer = sender.rank - plan.roles[channel.srcRole].firstRank +
                 plan.roles[channel.dstRole].firstRank;
  LaneState *receiver = waiting(peer, InstrKind::Recv, send.target);
  if (!receiver)
    return false;
  const Instr &recv = head(*receiver);
  std::vector<uint64_t *> from =
      cells(sender.rank,
            findEndpoint(role(sender.rank).channels, send.target)->buffer,
            send.microBatch);
  std::vector<uint64_t *> to =
      cells(peer, findEndpoint(role(peer).channels, recv.target)->buffer,
            recv.microBatch);
  for (size_t i = 0; i < from.size() && i < to.size(); ++i)
    *to[i] = *from[i];
  ++sender.done;
  ++receiver->done;
  return true;
}

bool Symbolic::reduce(LaneState &state, const Instr &instr) {
  const Role &own = role(state.rank);
  std::vector<LaneState *> members;
  for (int32_t i = 0; i < own.replicas; ++i)
    if (LaneState *member =
            waiting(own.firstRank + i, InstrKind::AllReduce, instr.target))
      members.push_back(member);
  if (members.size() < size_t(own.replicas))
    return false;
  const BufferRef &buffer = findEndpoint(own.groups, instr.target)->buffer;
  std::vector<uint64_t> sum(cells(state.rank, buffer, -1).size());
  for (LaneState *member : members) {
    size_t i = 0;
    for (uint64_t *cell : cells(member->rank, buffer, -1))
      sum[i++] += *cell;
  }
  for (LaneState *member : members) {
    size_t i = 0;
    for (uint64_t *cell : cells(member->rank, buffer, -1))
      *cell = sum[i++];
    ++member->done;
  }
  return true;
}

bool Symbolic::step(LaneState &state) {
  if (!ready(state))
    return false;
  const Instr &instr = head(state);
  const Role &own = role(state.rank);
  switch (instr.kind) {
  case InstrKind::Call:
    for (const Kernel &k : own.procedures[instr.target].kernels)
      kernel(state.rank, k, instr.microBatch);
    ++state.done;
    return true;
  case InstrKind::Load:
    for (const LoadField &load : own.loads) {
      uint64_t hash = 7, index = 0;
      for (char c : load.input)
        hash = mix(hash, uint64_t(c));
      hash = mix(mix(hash, uint64_t(instr.microBatch)),
                 uint64_t(state.rank - own.firstRank));
      for (uint64_t *cell : cells(state.rank, load.buffer, instr.microBatch))
        *cell = mix(hash, index++);
    }
    ++state.done;
    return true;
  case InstrKind::Send:
    return transfer(state, instr);
  case InstrKind::Recv:
    return false; // moved by the sender
  case InstrKind::AllReduce:
    return reduce(state, instr);
  }
  return false;
}

std::optional<std::vector<uint64_t>> Symbolic::run() {
  std::vector<LaneState *> eager;
  for (LaneState &state : lanes)
    eager.push_back(&state);
  std::sort(eager.begin(), eager.end(), [](LaneState *a, LaneState *b) {
    return a->eagerness < b->eagerness;
  });
  while (std::any_of(eager.begin(), eager.end(),
                     [&](LaneState *state) { return step(*state); })) {
  }
  std::vector<uint64_t> out;
  for (const LaneState &state : lanes)
    if (state.done < role(state.rank).lanes[state.lane].instrs.size())
      return std::nullopt;
  for (int32_t rank = 0; rank < plan.numRanks(); ++rank) {
    const Role &own = role(rank);
    for (const RoleParam &param : own.params)
      for (uint64_t *cell : cells(rank, param.weight, -1))
        out.push_back(*cell);
    for (size_t p = 0; p < own.pools.size(); ++p)
      for (int32_t m = 0; own.pools[p].kind == PoolKind::Loss &&
                          m < plan.training.microBatches;
           ++m)
        out.push_back(*cells(rank, {uint16_t(p), 0, 4}, m)[0]);
  }
  return out;
}

} // namespace

std::optional<std::vector<uint64_t>> runSymbolically(const Plan &plan,
                                                     uint32_t seed) {
  return Symbolic(plan, seed).run();
}

} // namespace takt::test
