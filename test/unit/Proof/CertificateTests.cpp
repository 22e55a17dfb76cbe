//===- CertificateTests.cpp - certificates of broken plans ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A certificate shows a plan in less time, never a plan that does not hold: a
// broken plan is refused with the certificate it had, with a right order of its
// own instructions, and with any other numbers.
//
//===----------------------------------------------------------------------===//
#include "Faults.h"
#include "RandomPlan.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace takt;
using namespace takt::test;

namespace {

RandomPlanLimits symmetric() {
  RandomPlanLimits limits;
  limits.stages = 4;
  limits.replicas = 2;
  limits.equalReplicas = true;
  return limits;
}

/// Lanes that lost or won instructions keep their places as far as they go.
void fitCertificate(rt::Plan &plan) {
  for (rt::Role &role : plan.roles)
    for (rt::Lane &lane : role.lanes) {
      while (lane.order.size() < lane.instrs.size())
        lane.order.push_back(lane.order.empty() ? 0 : lane.order.back() + 1);
      lane.order.resize(lane.instrs.size());
    }
}

/// An order that lanes, waits and messages follow, by relaxation; false if the
/// plan has none.
bool forge(rt::Plan &plan) {
  struct At {
    size_t role, lane, instr;
  };
  std::vector<std::vector<At>> sends(plan.channels.size());
  std::vector<std::vector<At>> recvs(plan.channels.size());
  size_t count = 0;
  for (size_t r = 0; r < plan.roles.size(); ++r)
    for (size_t l = 0; l < plan.roles[r].lanes.size(); ++l) {
      rt::Lane &lane = plan.roles[r].lanes[l];
      lane.order.assign(lane.instrs.size(), 0);
      count += lane.instrs.size();
      for (size_t i = 0; i < lane.instrs.size(); ++i) {
        if (lane.instrs[i].kind == rt::InstrKind::Send)
          sends[lane.instrs[i].target].push_back({r, l, i});
        if (lane.instrs[i].kind == rt::InstrKind::Recv)
          recvs[lane.instrs[i].target].push_back({r, l, i});
      }
    }
  auto place = [&](const At &at) -> uint32_t & {
    return plan.roles[at.role].lanes[at.lane].order[at.instr];
  };
  for (size_t round = 0; round <= count; ++round) {
    bool moved = false;
    auto raise = [&](uint32_t &own, uint32_t least) {
      moved |= own < least;
      own = std::max(own, least);
    };
    for (rt::Role &role : plan.roles)
      for (rt::Lane &lane : role.lanes)
        for (size_t i = 0; i < lane.instrs.size(); ++i) {
          if (i > 0)
            raise(lane.order[i], lane.order[i - 1] + 1);
          for (uint32_t w = lane.instrs[i].waitBegin;
               w < lane.instrs[i].waitEnd; ++w)
            if (const rt::Wait &wait = lane.waits[w]; wait.count > 0)
              raise(lane.order[i],
                    role.lanes[wait.lane].order[wait.count - 1] + 1);
        }
    for (size_t c = 0; c < sends.size(); ++c)
      for (size_t i = 0; i < std::min(sends[c].size(), recvs[c].size()); ++i) {
        raise(place(sends[c][i]), place(recvs[c][i]));
        raise(place(recvs[c][i]), place(sends[c][i]));
      }
    if (!moved)
      return true;
  }
  return false;
}

void expectRefusedOnReading(const rt::Plan &plan, uint32_t seed) {
  std::vector<uint8_t> bytes = rt::serialize(plan);
  EXPECT_THROW(rt::deserialize(bytes, "plan"), rt::Error) << seed;
}

} // namespace

TEST(Certificate, OfBrokenPlansIsRefused) {
  std::mt19937 random(1);
  std::vector<int> kept(kFaults), forged(kFaults);
  int harmless = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    rt::Plan plan = randomPlan(seed, symmetric());
    ASSERT_TRUE(rt::certify(plan).holds());
    auto fault = Fault(seed % kFaults);
    std::optional<Culprit> culprit = breakPlan(plan, fault, seed);
    if (!culprit)
      continue;
    fitCertificate(plan);
    if (!rt::checkStructure(plan).empty())
      continue; // never gets as far as its certificate
    bool holds = rt::prove(plan).holds();
    harmless += holds;
    std::string what =
        std::string(nameOf(fault)) + ": " + culprit->what;
    if (!holds) {
      ++kept[int(fault)];
      rt::Proof proof = rt::checkCertificate(plan);
      EXPECT_FALSE(proof.holds()) << seed << ", " << what;
      // The same as without a certificate is said.
      EXPECT_EQ(rt::proofText(proof), rt::proofText(rt::prove(plan))) << seed;
      expectRefusedOnReading(plan, seed);
    }
    rt::Plan other = plan;
    if (forge(other)) {
      forged[int(fault)] += !holds;
      EXPECT_EQ(rt::checkCertificate(other).holds(), holds)
          << seed << ", " << what;
      if (!holds)
        expectRefusedOnReading(other, seed);
    }
    for (rt::Role &role : other.roles)
      for (rt::Lane &lane : role.lanes) {
        for (uint32_t &place : lane.order)
          place = uint32_t(random() % (2 * lane.order.size()));
        if (random() % 2)
          std::sort(lane.order.begin(), lane.order.end());
      }
    if (!holds) {
      EXPECT_FALSE(rt::checkCertificate(other).holds()) << seed << ", " << what;
    }
  }
  // Every kind that leaves the structure whole was tried, and those that leave
  // an order had one forged.
  for (int f = 0; f < kFaults; ++f)
    if (Fault(f) != Fault::WrongSize && Fault(f) != Fault::WrongChannel) {
      EXPECT_GT(kept[f], 20) << nameOf(Fault(f));
    }
  for (Fault fault : {Fault::StaleSlot, Fault::Overlap, Fault::NoWait,
                      Fault::NoCredit, Fault::Double, Fault::Drop})
    EXPECT_GT(forged[int(fault)], 20) << nameOf(fault);
  EXPECT_GT(harmless, 20);
}

TEST(Certificate, DecidesAloneForPlansOfTheCompiler) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    rt::Plan plan = randomPlan(seed);
    ASSERT_TRUE(rt::certify(plan).holds());
    rt::Proof proof = rt::checkCertificate(plan);
    EXPECT_TRUE(proof.holds()) << seed;
    EXPECT_TRUE(proof.byCertificate) << seed;
  }
}

TEST(Certificate, OfAnArenaBeyondTheDeviceIsRefused) {
  rt::Plan plan = randomPlan(3);
  ASSERT_TRUE(rt::certify(plan).holds());
  plan.roles[0].capacity = plan.roles[0].arenaBytes - 1;
  rt::Proof proof = rt::checkCertificate(plan);
  ASSERT_FALSE(proof.holds());
  EXPECT_EQ(proof.failure->rule, rt::ProofRule::Capacity);
}
