//===- FaultTests.cpp - what is wrong is refused ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A random plan with one random fault. Whatever the proof accepts must compute
// the same as before under every order of events that the oracle tries; what it
// refuses must name the instruction at fault, or its partner.
//
//===----------------------------------------------------------------------===//
#include "RandomPlan.h"
#include "SymbolicRun.h"

#include "takt-rt/core/proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace takt;
using namespace takt::test;

namespace {

enum class Fault {
  Swap,
  Drop,
  Double,
  Early,
  WrongChannel,
  WrongSize,
  StaleSlot,
  Overlap,
  NoCredit,
};
constexpr int kFaults = 9;

/// Where a fault was put: actions whose names the proof may give.
struct Culprit {
  size_t role = 0;
  std::vector<std::string> actions; ///< empty: any action of the role
};

class Breaker {
public:
  Breaker(rt::Plan &plan, uint32_t seed) : plan(plan), random(seed) {}
  /// Nothing where the plan has no place for such a fault.
  std::optional<Culprit> apply(Fault fault);

private:
  size_t below(size_t n) { return n ? random() % n : 0; }
  rt::Lane *anyLane(size_t least);
  void erase(rt::Lane &lane, size_t at);
  void insert(rt::Lane &lane, size_t at, rt::Instr instr);
  std::string name(const rt::Instr &instr) const {
    return rt::actionText(plan, plan.roles[role], instr);
  }

  rt::Plan &plan;
  std::mt19937 random;
  size_t role = 0;
};

rt::Lane *Breaker::anyLane(size_t least) {
  for (int tries = 0; tries < 30; ++tries) {
    role = below(plan.roles.size());
    rt::Role &own = plan.roles[role];
    rt::Lane &lane = own.lanes[below(own.lanes.size())];
    if (lane.instrs.size() >= least)
      return &lane;
  }
  return nullptr;
}

void Breaker::erase(rt::Lane &lane, size_t at) {
  lane.instrs.erase(lane.instrs.begin() + at);
  size_t index = &lane - plan.roles[role].lanes.data();
  for (rt::Lane &other : plan.roles[role].lanes)
    for (rt::Wait &wait : other.waits)
      if (wait.lane == index && wait.count > at)
        --wait.count;
}

void Breaker::insert(rt::Lane &lane, size_t at, rt::Instr instr) {
  lane.instrs.insert(lane.instrs.begin() + at, instr);
  size_t index = &lane - plan.roles[role].lanes.data();
  for (rt::Lane &other : plan.roles[role].lanes)
    for (rt::Wait &wait : other.waits)
      if (wait.lane == index && wait.count > at)
        ++wait.count;
}

std::optional<Culprit> Breaker::apply(Fault fault) {
  using rt::InstrKind;
  switch (fault) {
  case Fault::Swap: {
    rt::Lane *lane = anyLane(2);
    if (!lane)
      return std::nullopt;
    size_t at = below(lane->instrs.size() - 1);
    std::swap(lane->instrs[at], lane->instrs[at + 1]);
    return Culprit{role,
                   {name(lane->instrs[at]), name(lane->instrs[at + 1])}};
  }
  case Fault::Drop: {
    rt::Lane *lane = anyLane(1);
    if (!lane)
      return std::nullopt;
    size_t at = below(lane->instrs.size());
    Culprit culprit{role, {name(lane->instrs[at])}};
    erase(*lane, at);
    return culprit;
  }
  case Fault::Double: {
    rt::Lane *lane = anyLane(1);
    if (!lane)
      return std::nullopt;
    size_t at = below(lane->instrs.size());
    insert(*lane, at, lane->instrs[at]);
    return Culprit{role, {name(lane->instrs[at])}};
  }
  case Fault::Early: {
    rt::Lane *lane = anyLane(3);
    if (!lane)
      return std::nullopt;
    size_t from = 1 + below(lane->instrs.size() - 1), to = below(from);
    rt::Instr moved = lane->instrs[from];
    lane->instrs.erase(lane->instrs.begin() + from);
    lane->instrs.insert(lane->instrs.begin() + to, moved);
    Culprit culprit{role, {}};
    for (size_t i = to; i <= from; ++i)
      culprit.actions.push_back(name(lane->instrs[i]));
    return culprit;
  }
  case Fault::WrongChannel:
    for (int tries = 0; tries < 30; ++tries) {
      rt::Lane *lane = anyLane(1);
      if (!lane || plan.channels.size() < 2)
        return std::nullopt;
      rt::Instr &instr = lane->instrs[below(lane->instrs.size())];
      if (instr.kind != InstrKind::Send && instr.kind != InstrKind::Recv)
        continue;
      instr.target = uint16_t((instr.target + 1 +
                               below(plan.channels.size() - 1)) %
                              plan.channels.size());
      return Culprit{role, {}};
    }
    return std::nullopt;
  case Fault::WrongSize: {
    role = below(plan.roles.size());
    rt::Role &own = plan.roles[role];
    if (own.channels.empty())
      return std::nullopt;
    rt::BufferRef &ref = own.channels[below(own.channels.size())].buffer;
    ref.bytes -= 4;
    return Culprit{role, {}};
  }
  case Fault::StaleSlot: {
    role = below(plan.roles.size());
    rt::Role &own = plan.roles[role];
    rt::Pool &pool = own.pools[below(own.pools.size())];
    if (pool.count < 2)
      return std::nullopt;
    size_t m = below(pool.slotOf.size());
    pool.slotOf[m] = uint16_t((pool.slotOf[m] + 1) % pool.count);
    return Culprit{role, {}};
  }
  case Fault::Overlap: {
    role = below(plan.roles.size());
    rt::Role &own = plan.roles[role];
    rt::Procedure &code = own.procedures[below(own.procedures.size())];
    if (code.kernels.empty())
      return std::nullopt;
    rt::Kernel &kernel = code.kernels[below(code.kernels.size())];
    rt::BufferRef &ref = kernel.operands[below(kernel.operands.size())];
    rt::Bytes slot = own.pools[ref.pool].slotBytes;
    if (ref.offset + 64 + ref.bytes > slot)
      ref.offset -= 64;
    else
      ref.offset += 64;
    if (ref.offset < 0)
      return std::nullopt;
    return Culprit{role, {}};
  }
  case Fault::NoCredit:
    for (int tries = 0; tries < 30; ++tries) {
      rt::Lane *lane = anyLane(1);
      if (!lane)
        return std::nullopt;
      rt::Instr &instr = lane->instrs[below(lane->instrs.size())];
      if (instr.waitBegin == instr.waitEnd)
        continue;
      uint32_t w =
          instr.waitBegin + uint32_t(below(instr.waitEnd - instr.waitBegin));
      lane->waits[w].count = 0;
      return Culprit{role, {name(instr)}};
    }
    return std::nullopt;
  }
  return std::nullopt;
}

/// An end, a member of the circle, or the sentence speaks of the culprit.
bool names(const rt::Plan &plan, const rt::ProofFailure &failure,
           const Culprit &culprit) {
  const std::string &own = plan.roles[culprit.role].name;
  if (failure.text.find("'" + own + "'") != std::string::npos &&
      culprit.actions.empty())
    return true;
  for (const rt::ProofEnd &end : failure.ends) {
    if (end.role == own && culprit.actions.empty())
      return true;
    if (end.role == own && end.action[0] == '(')
      return true; // what was dropped has no place to be named by
    for (const std::string &action : culprit.actions) {
      if (end.role == own && end.action == action)
        return true;
      // The other end of the message, or the rest of the micro-batch's work.
      std::string digits = action.substr(action.find_last_not_of("0123456789") +
                                         1);
      if (!digits.empty() && end.action.size() > digits.size() &&
          end.action.compare(end.action.size() - digits.size(),
                             digits.size(), digits) == 0)
        return true;
      if (digits.empty() && failure.text.find(own) != std::string::npos)
        return true;
    }
  }
  for (const std::string &action : culprit.actions)
    if (failure.text.find("'" + action + "'") != std::string::npos)
      return true;
  return failure.ends.empty() &&
         failure.text.find("'" + own + "'") != std::string::npos;
}

} // namespace

TEST(Proof, AThousandFaultsAreRefused) {
  constexpr uint32_t kOrders = 6;
  int refused = 0, harmless = 0, tried = 0;
  std::vector<int> byFault(kFaults), refusedBy(kFaults);
  RandomPlanLimits limits;
  limits.stages = 4;
  limits.replicas = 2;
  limits.equalReplicas = true;
  for (uint32_t seed = 0; tried < 1000; ++seed) {
    rt::Plan plan = randomPlan(seed, limits);
    auto fault = Fault(seed % kFaults);
    rt::Plan broken = plan;
    std::optional<Culprit> culprit = Breaker(broken, seed).apply(fault);
    if (!culprit)
      continue;
    ++tried;
    ++byFault[int(fault)];
    rt::Proof proof = rt::prove(broken);
    if (proof.holds()) {
      // Accepted: then nothing can be told from the plan without the fault.
      ++harmless;
      auto expected = runSymbolically(plan, 0);
      ASSERT_TRUE(expected);
      for (uint32_t order = 0; order < kOrders; ++order)
        ASSERT_TRUE(runSymbolically(broken, order) == expected)
            << "seed " << seed << " fault " << int(fault) << " order "
            << order << ": "
            << (culprit->actions.empty() ? "" : culprit->actions[0]) << " in "
            << plan.roles[culprit->role].name;
      continue;
    }
    ++refused;
    ++refusedBy[int(fault)];
    EXPECT_TRUE(names(broken, *proof.failure, *culprit))
        << "seed " << seed << " fault " << int(fault) << " in "
        << plan.roles[culprit->role].name << ": "
        << (culprit->actions.empty() ? "" : culprit->actions[0]) << "\n"
        << rt::proofText(proof);
  }
  for (int f = 0; f < kFaults; ++f) {
    RecordProperty("tried" + std::to_string(f), byFault[f]);
    RecordProperty("refused" + std::to_string(f), refusedBy[f]);
    EXPECT_GT(refusedBy[f], byFault[f] / 3) << "fault " << f;
  }
  std::cout << refused << " refused, " << harmless << " harmless\n";
}

TEST(Proof, TheOracleAgreesWithItself) {
  RandomPlanLimits limits;
  limits.equalReplicas = true;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    rt::Plan plan = randomPlan(seed, limits);
    auto first = runSymbolically(plan, 0);
    ASSERT_TRUE(first) << seed;
    for (uint32_t order = 1; order < 6; ++order)
      EXPECT_EQ(runSymbolically(plan, order), first) << seed;
  }
}
