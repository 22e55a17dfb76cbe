//===- GradientTests.cpp - kernels that are missing or run twice ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every kernel of a plan is needed: without it some gradient, weight or loss is
// wrong. None may be there twice: even where it would write the same values
// again (a forward kernel, a zero), it is work that nobody asked for. Layers
// known by costs only name no buffers, so that one of their kernels is only
// missed where the others of the layer or its neighbours show it.
//
//===----------------------------------------------------------------------===//
#include "../Lower/TestModels.h"
#include "RandomPlan.h"

#include "takt-rt/core/names.h"
#include "takt-rt/core/proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace takt;
using namespace takt::test;

namespace {

/// `named`: the failure is that of the kernel's own layer, not of one that a
/// copy or a sum on the way to another stage fails.
void expectRefused(const rt::Plan &plan, const rt::Kernel &kernel,
                   const std::string &what, bool named) {
  rt::Proof proof = rt::prove(plan);
  ASSERT_FALSE(proof.holds()) << what;
  EXPECT_FALSE(rt::checkCertificate(plan).holds()) << what;
  if (!named)
    return;
  EXPECT_EQ(proof.failure->rule, rt::ProofRule::Completeness)
      << what << ": " << rt::proofText(proof);
  // Updates name the parameter, whose name begins with that of a layer.
  if (kernel.phase != rt::Phase::Update) {
    EXPECT_NE(proof.failure->text.find("'" + plan.layers[kernel.layer].name),
              std::string::npos)
        << what << ": " << rt::proofText(proof);
  }
}

/// A stage with I and W that every micro-batch passes as B never calls them.
bool isCalled(const rt::Role &role, const rt::Procedure &procedure) {
  auto index = size_t(&procedure - role.procedures.data());
  for (const rt::Lane &lane : role.lanes)
    for (const rt::Instr &instr : lane.instrs)
      if (instr.kind == rt::InstrKind::Call && instr.target == index)
        return true;
  return false;
}

/// Drops and doubles every kernel that runs, in turn.
void tryAll(rt::Plan plan, const std::string &name, bool named = true) {
  rt::Proof proof = rt::certify(plan);
  ASSERT_TRUE(proof.holds()) << name << ": " << rt::proofText(proof);
  for (rt::Role &role : plan.roles)
    for (rt::Procedure &procedure : role.procedures)
      for (size_t i = 0;
           i < procedure.kernels.size() && isCalled(role, procedure); ++i) {
        const std::vector<rt::Kernel> all = procedure.kernels;
        std::string what = name + ", kernel " + std::to_string(i) + " (" +
                           std::string(rt::nameOf(all[i].kind)) + ") of " +
                           procedure.name + " of " + role.name;
        procedure.kernels.erase(procedure.kernels.begin() + i);
        expectRefused(plan, all[i], what + " dropped", named);
        procedure.kernels = all;
        procedure.kernels.insert(procedure.kernels.begin() + i, all[i]);
        expectRefused(plan, all[i], what + " doubled", named);
        procedure.kernels = all;
      }
}

rt::Plan gptPlan(bool tied, bool frozen, int stages) {
  GptShape shape;
  shape.blocks = 2;
  shape.width = 8;
  shape.positions = 4;
  shape.vocab = 8;
  shape.tied = tied;
  shape.frozenPrefix = frozen;
  Graph graph = makeGpt(shape);
  auto segments = int(chainSegments(graph).size());
  std::vector<int64_t> cuts;
  for (int s = 1; s < stages; ++s)
    cuts.push_back(int64_t(segments) * s / stages);
  return lower(makeProblem(std::move(graph), cuts, 2,
                           std::vector<int32_t>(stages, 1), "1f1b",
                           /*microBatchSize=*/2));
}

/// A model with skip connections, cut before layers that are spread over it.
LoweringProblem skipProblem(uint64_t seed, int stages, const char *schedule) {
  Graph graph = makeSkips(seed, 9, 4);
  std::vector<int32_t> cuts;
  for (int s = 1; s < stages; ++s)
    cuts.push_back(int32_t(graph.layers.size()) * s / stages);
  return cutBefore(std::move(graph), cuts, 2, std::vector<int32_t>(stages, 1),
                   schedule, /*microBatchSize=*/2);
}

} // namespace

TEST(Gradients, EveryKernelIsNeededOnceWhereSeveralValuesCross) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    tryAll(lower(skipProblem(seed, 3, "1f1b")), "skips " + std::to_string(seed),
           false);
    LoweringProblem four = skipProblem(seed, 4, "1f1b");
    tryAll(lower(placeStages(four, interleaved(2, 2, 2, seed % 2))),
           "placed skips " + std::to_string(seed), false);
  }
}

// Of several gradients that come back each must be that of its own value.
TEST(Gradients, GradientsOfSeveralValuesAreNotExchanged) {
  int tried = 0, missing = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const rt::Plan plan = lower(skipProblem(seed, 3, "1f1b"));
    for (size_t a = 0; a < plan.channels.size(); ++a)
      for (size_t b = a + 1; b < plan.channels.size(); ++b) {
        const rt::Channel &one = plan.channels[a], &other = plan.channels[b];
        if (one.kind != rt::ChannelKind::Gradient || other.kind != one.kind ||
            one.srcRole != other.srcRole)
          continue;
        rt::Plan broken = plan;
        auto endOf = [&](size_t channel) -> rt::BufferRef & {
          return const_cast<rt::Endpoint *>(
                     rt::findEndpoint(broken.roles[one.srcRole].channels,
                                      uint16_t(channel)))
              ->buffer;
        };
        std::swap(endOf(a), endOf(b));
        EXPECT_TRUE(rt::checkStructure(broken).empty());
        // Both are whole gradients, each of the other's value.
        ++tried;
        missing += !rt::prove(broken).holds();
      }
  }
  EXPECT_GT(tried, 0);
  EXPECT_EQ(missing, tried);
}

TEST(Gradients, EveryKernelIsNeededOnceInRandomPlans) {
  std::set<std::string> procedures;
  for (uint32_t seed = 0; seed < 24; ++seed) {
    rt::Plan plan = randomPlan(seed, {/*stages=*/4, /*microBatches=*/3});
    for (const rt::Role &role : plan.roles)
      for (const rt::Procedure &procedure : role.procedures)
        procedures.insert(procedure.name);
    tryAll(std::move(plan), "seed " + std::to_string(seed));
  }
  // The draw has whole and split backwards, pieces and sums of tied weights.
  for (const char *name : {"B", "I", "W", "B.0", "B.1", "T0"})
    EXPECT_TRUE(procedures.count(name)) << name;
}

TEST(Gradients, EveryKernelIsNeededOnceInTransformers) {
  for (bool tied : {false, true})
    for (bool frozen : {false, true})
      for (int stages : {1, 2, 3})
        tryAll(gptPlan(tied, frozen, stages),
               "tied " + std::to_string(tied) + ", frozen " +
                   std::to_string(frozen) + ", stages " +
                   std::to_string(stages));
}

// The gradient of a tensor that several layers read, taken before it is whole.
TEST(Gradients, ASumThatIsNotWhole) {
  rt::Plan plan = gptPlan(true, false, 2);
  for (rt::Role &role : plan.roles)
    for (rt::Procedure &procedure : role.procedures) {
      auto sum = std::find_if(procedure.kernels.begin(),
                              procedure.kernels.end(), [](const rt::Kernel &k) {
                                return k.kind == rt::KernelKind::Accumulate &&
                                       k.phase == rt::Phase::InputGrad;
                              });
      if (sum == procedure.kernels.end() || sum + 1 == procedure.kernels.end())
        continue;
      rt::Plan broken = plan;
      std::vector<rt::Kernel> &kernels =
          broken.roles[&role - plan.roles.data()]
              .procedures[&procedure - role.procedures.data()]
              .kernels;
      auto at = sum - procedure.kernels.begin();
      std::swap(kernels[at], kernels[at + 1]);
      rt::Proof proof = rt::prove(broken);
      ASSERT_FALSE(proof.holds());
      EXPECT_NE(proof.failure->text.find("the sum of the shares"),
                std::string::npos)
          << rt::proofText(proof);
    }
}

// What is trained must have a gradient, in the plan's own words.
TEST(Gradients, TrainedParametersHaveGradients) {
  rt::Plan plan = gptPlan(false, false, 1);
  rt::Role &role = plan.roles[0];
  std::string name = plan.params[role.params.back().param].name;
  rt::BufferRef weight = role.params.back().weight;
  for (rt::Procedure &procedure : role.procedures)
    procedure.kernels.erase(
        std::remove_if(procedure.kernels.begin(), procedure.kernels.end(),
                       [&](const rt::Kernel &k) {
                         return k.phase == rt::Phase::Update &&
                                k.operands[0].offset == weight.offset;
                       }),
        procedure.kernels.end());
  role.params.back().grads.clear();
  role.params.back().state.clear();
  rt::Proof proof = rt::prove(plan);
  ASSERT_FALSE(proof.holds());
}

// A value that later stages read, too, and whose gradient does not come back.
TEST(Gradients, EveryValueThatLearnsGetsItsGradientBack) {
  int tried = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const rt::Plan plan = lower(skipProblem(seed, 2, "gpipe"));
    std::vector<uint16_t> gradients;
    for (size_t c = 0; c < plan.channels.size(); ++c)
      if (plan.channels[c].kind == rt::ChannelKind::Gradient)
        gradients.push_back(uint16_t(c));
    if (gradients.size() < 2)
      continue;
    for (uint16_t lost : gradients) {
      rt::Plan broken = plan;
      for (rt::Role &role : broken.roles) {
        role.channels.erase(
            std::remove_if(role.channels.begin(), role.channels.end(),
                           [&](const auto &e) { return e.target == lost; }),
            role.channels.end());
        for (rt::Lane &lane : role.lanes) {
          std::vector<rt::Instr> kept;
          for (const rt::Instr &instr : lane.instrs)
            if (instr.kind == rt::InstrKind::Call || instr.target != lost ||
                instr.kind == rt::InstrKind::Load)
              kept.push_back(instr);
          lane.instrs = std::move(kept);
        }
      }
      ++tried;
      EXPECT_FALSE(rt::prove(broken).holds()) << "seed " << seed;
    }
  }
  EXPECT_GT(tried, 0);
}
