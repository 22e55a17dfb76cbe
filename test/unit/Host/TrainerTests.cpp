//===- TrainerTests.cpp - training a small plan ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A plan made by hand, trained by threads: against a plain implementation of
// the same model, across layouts, and what becomes of plans that fail or hang.
//
//===----------------------------------------------------------------------===//

#include "TinyPlan.h"

#include "takt-rt/core/error.h"
#include "takt-rt/data/init.h"
#include "takt-rt/host/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace takt::rt::test {
namespace {

std::vector<double> train(const Plan &plan, int steps,
                          TensorMap *weights = nullptr,
                          const TensorMap *first = nullptr) {
  std::unique_ptr<Source> source = syntheticSource(plan);
  TrainerOptions options;
  options.weights = first;
  Trainer trainer(plan, *source, options);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(trainer.step().loss);
  if (weights)
    *weights = trainer.weights();
  return losses;
}

/// The model of TinyPlan.h with momentum, in double and without any of the code
/// under test but the data and the first weights.
class Reference {
public:
  explicit Reference(const Plan &plan)
      : plan(plan), source(syntheticSource(plan)) {
    for (const Param &param : plan.params) {
      std::vector<float> values = initParam(param, plan.training.seed);
      weights.emplace_back(values.begin(), values.end());
      velocity.emplace_back(values.size());
    }
  }

  double step(int64_t index) {
    int64_t n = plan.training.globalBatch;
    std::vector<float> x(n * kTinyIn), target(n * kTinyOut);
    source->fill(plan.inputs[0], index * n, n, x.data());
    source->fill(plan.inputs[1], index * n, n, target.data());
    grads.clear();
    for (const std::vector<double> &w : weights)
      grads.emplace_back(w.size());
    double loss = 0;
    for (int64_t s = 0; s < n; ++s)
      loss += sample(&x[s * kTinyIn], &target[s * kTinyOut]);
    const Training &t = plan.training;
    for (size_t p = 0; p < weights.size(); ++p)
      for (size_t i = 0; i < weights[p].size(); ++i) {
        velocity[p][i] = t.momentum * velocity[p][i] + grads[p][i] +
                         t.weightDecay * weights[p][i];
        weights[p][i] -= t.learningRate * velocity[p][i];
      }
    return loss;
  }

  std::vector<std::vector<double>> weights, grads;

private:
  double sample(const float *x, const float *target) {
    double scale = 1.0 / double(plan.training.globalBatch * kTinyOut);
    double h[kTinyHidden], a[kTinyHidden], da[kTinyHidden] = {}, loss = 0;
    for (int j = 0; j < kTinyHidden; ++j) {
      h[j] = weights[1][j];
      for (int i = 0; i < kTinyIn; ++i)
        h[j] += weights[0][j * kTinyIn + i] * x[i];
      a[j] = h[j] * 0.5 * std::erfc(-h[j] / std::sqrt(2.0));
    }
    for (int k = 0; k < kTinyOut; ++k) {
      double y = 0;
      for (int j = 0; j < kTinyHidden; ++j)
        y += weights[2][k * kTinyHidden + j] * a[j];
      double dy = 2 * scale * (y - target[k]);
      loss += scale * (y - target[k]) * (y - target[k]);
      for (int j = 0; j < kTinyHidden; ++j) {
        grads[2][k * kTinyHidden + j] += dy * a[j];
        da[j] += dy * weights[2][k * kTinyHidden + j];
      }
    }
    for (int j = 0; j < kTinyHidden; ++j) {
      double cdf = 0.5 * std::erfc(-h[j] / std::sqrt(2.0));
      double density = std::exp(-h[j] * h[j] / 2) / std::sqrt(2 * M_PI);
      double dh = da[j] * (cdf + h[j] * density);
      grads[1][j] += dh;
      for (int i = 0; i < kTinyIn; ++i)
        grads[0][j * kTinyIn + i] += dh * x[i];
    }
    return loss;
  }

  const Plan &plan;
  std::unique_ptr<Source> source;
  std::vector<std::vector<double>> velocity;
};

TEST(TinyPlan, IsSound) {
  for (int32_t stages : {1, 2})
    for (int32_t replicas : {1, 2, 4})
      EXPECT_EQ(checkStructure(tinyPlan({stages, replicas})),
                std::vector<std::string>());
}

TEST(Trainer, FollowsAPlainImplementation) {
  Plan plan = tinyPlan({});
  Reference reference(plan);
  TensorMap weights;
  std::vector<double> losses = train(plan, 12, &weights);
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], reference.step(i), 2e-6 * losses[0]) << "step " << i;
  for (size_t p = 0; p < plan.params.size(); ++p) {
    const Tensor &tensor = weights.at(plan.params[p].name);
    EXPECT_EQ(tensor.shape, plan.params[p].shape);
    for (size_t i = 0; i < tensor.values.size(); ++i)
      ASSERT_NEAR(tensor.values[i], reference.weights[p][i], 5e-6);
  }
}

TEST(Trainer, LayoutsOfOneReplicaAgreeToTheBit) {
  TinyOptions options;
  options.optimizer = OptimizerKind::AdamW;
  options.stages = 1;
  std::vector<double> expected = train(tinyPlan(options), 20);
  EXPECT_LT(expected.back(), expected.front());
  for (bool oneF1B : {false, true})
    for (int32_t stages : {1, 2}) {
      options.oneF1B = oneF1B;
      options.stages = stages;
      EXPECT_EQ(train(tinyPlan(options), 20), expected)
          << stages << " stages, " << (oneF1B ? "1f1b" : "gpipe");
    }
}

TEST(Trainer, ReplicasAgreeClosely) {
  TinyOptions options;
  options.stages = 1;
  std::vector<double> expected = train(tinyPlan(options), 20);
  // 8 ranks are more than a small machine has cores.
  for (int32_t stages : {1, 2})
    for (int32_t replicas : {2, 4}) {
      options.stages = stages;
      options.replicas = replicas;
      std::vector<double> losses = train(tinyPlan(options), 20);
      for (size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(losses[i], expected[i], 1e-5 * expected[i]);
      EXPECT_EQ(train(tinyPlan(options), 20), losses) << "not repeatable";
    }
}

TEST(Trainer, GradientsAreTheSumsOfTheFirstStep) {
  for (int32_t replicas : {1, 2}) {
    Plan plan = tinyPlan({2, replicas});
    std::unique_ptr<Source> source = syntheticSource(plan);
    TrainerOptions options;
    options.keepGradients = true;
    Trainer trainer(plan, *source, options);
    trainer.step();
    TensorMap first = trainer.gradients();
    Reference reference(plan);
    reference.step(0);
    ASSERT_EQ(first.size(), plan.params.size());
    for (size_t p = 0; p < plan.params.size(); ++p) {
      const Tensor &grad = first.at(plan.params[p].name);
      EXPECT_EQ(grad.shape, plan.params[p].shape);
      for (size_t i = 0; i < grad.values.size(); ++i)
        ASSERT_NEAR(grad.values[i], reference.grads[p][i], 1e-6);
    }
    trainer.step();
    EXPECT_EQ(trainer.gradients().at("fc0.bias").values,
              first.at("fc0.bias").values);
  }
}

TEST(Trainer, WeightsGoInByName) {
  Plan plan = tinyPlan({});
  TensorMap trained, reloaded;
  train(plan, 3, &trained);
  train(plan, 0, &reloaded, &trained);
  for (const auto &[name, tensor] : trained)
    EXPECT_EQ(reloaded.at(name).values, tensor.values) << name;
  EXPECT_EQ(checkWeights(plan, trained, "w"), std::vector<std::string>());
  trained["extra"] = {{1}, {0.f}};
  EXPECT_EQ(checkWeights(plan, trained, "w"),
            std::vector<std::string>{"extra"});
  trained["fc0.bias"].shape = {2, 10};
  EXPECT_THROW(checkWeights(plan, trained, "w"), Error);
  EXPECT_THROW(train(plan, 0, nullptr, &trained), Error);
  trained.erase("fc0.bias");
  EXPECT_THROW(checkWeights(plan, trained, "w"), Error);
}

TEST(Trainer, RecordsEveryInstruction) {
  Plan plan = tinyPlan({2, 2});
  std::unique_ptr<Source> source = syntheticSource(plan);
  TrainerOptions options;
  options.trace = true;
  Trainer trainer(plan, *source, options);
  trainer.step();
  StepResult result = trainer.step();
  size_t instructions = 0;
  for (const Role &role : plan.roles)
    for (const Lane &lane : role.lanes)
      instructions += role.replicas * lane.instrs.size();
  EXPECT_EQ(result.records.size(), instructions);
  std::set<std::tuple<int32_t, uint16_t, uint32_t>> seen;
  for (const Record &record : result.records) {
    EXPECT_TRUE(seen.insert({record.rank, record.lane, record.instr}).second);
    EXPECT_LE(0, record.begin);
    EXPECT_LE(record.begin, record.end);
    EXPECT_LE(record.end, result.time);
    ASSERT_LT(
        record.instr,
        plan.roles[plan.roleOf(record.rank)].lanes[record.lane].instrs.size());
  }
}

TEST(Trainer, ProfilesEveryLayerPhaseThatHasWork) {
  Plan plan = tinyPlan({2, 2});
  std::unique_ptr<Source> source = syntheticSource(plan);
  Trainer trainer(plan, *source);
  trainer.step();
  trainer.setProfiling(true);
  trainer.step();
  trainer.step();
  Profile profile = trainer.profile();
  EXPECT_EQ(profile.samples, 2);
  ASSERT_EQ(profile.layers.size(), 4u);
  const LayerTimes &fc0 = profile.layers[0], &act = profile.layers[1];
  EXPECT_GT(fc0.forward, 0);
  EXPECT_EQ(fc0.inputGrad, 0);
  EXPECT_GT(fc0.weightGrad, 0);
  EXPECT_GT(fc0.update, 0);
  EXPECT_GT(act.forward, 0);
  EXPECT_GT(act.inputGrad, 0);
  EXPECT_EQ(act.weightGrad, 0);
  EXPECT_EQ(act.update, 0);
  std::string text = formatProfile(plan, profile);
  EXPECT_NE(text.find("  samples: 2\n"), std::string::npos);
  EXPECT_NE(text.find("    fc0: {forward: "), std::string::npos);
}

/// Expects an error of a code whose message holds all the texts.
template <typename F>
void expectError(F run, ExitCode code, const std::vector<std::string> &texts) {
  try {
    run();
    FAIL() << "nothing was thrown";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string &text : texts)
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
          << "'" << text << "' is not in: " << error.what();
  }
}

TEST(TrainerFailure, ProfiledLayersAreRefusedByName) {
  Plan plan = tinyPlan({});
  Kernel kernel;
  kernel.kind = KernelKind::Profiled;
  kernel.layer = 2;
  plan.roles[1].procedures[0].kernels.push_back(kernel);
  expectError([&] { train(plan, 1); }, ExitCode::DoesNotFit,
              {"'fc1'", "costs only"});
}

TEST(TrainerFailure, ArenasBeyondTheMachineAreRefused) {
  Plan plan = tinyPlan({});
  plan.roles[0].arenaBytes = Bytes(1) << 55;
  expectError([&] { train(plan, 1); }, ExitCode::DoesNotFit, {"GiB"});
}

/// Fails on the given sample.
class FailingSource : public Source {
public:
  void fill(const InputInfo &input, int64_t first, int64_t count,
            void *out) const override {
    std::fill_n(static_cast<float *>(out), count * input.shape[0], 0.f);
    if (input.name == "target" && first >= 20)
      throw Error("sample 20 is lost");
  }
};

TEST(TrainerFailure, OneRankStopsAll) {
  Plan plan = tinyPlan({});
  FailingSource source;
  Trainer trainer(plan, source);
  trainer.step();
  expectError([&] { trainer.step(); }, ExitCode::BadInput,
              {"sample 20 is lost"});
  expectError([&] { trainer.step(); }, ExitCode::Internal, {"stopped"});
}

/// Both ranks send to each other first, on one lane each, and receive after.
Plan mutualSends() {
  Plan plan;
  plan.model = "mutual";
  plan.channels = {{"right", ChannelKind::Activation, 0, 1, 64, Link()},
                   {"left", ChannelKind::Gradient, 1, 0, 64, Link()}};
  for (uint16_t r : {0, 1}) {
    Role role;
    role.name = r == 0 ? "first" : "second";
    role.firstRank = r;
    role.stages = {r};
    role.devices = {r};
    role.pools = {{PoolKind::Output, "out", 0, 64, 1, {}},
                  {PoolKind::Input, "in", 64, 64, 1, {}}};
    role.arenaBytes = 128;
    uint16_t out = r, in = 1 - r;
    role.channels = {{0, {uint16_t(r == 0 ? 0 : 1), 0, 64}},
                     {1, {uint16_t(r == 0 ? 1 : 0), 0, 64}}};
    Lane lane{LaneKind::Tie, "tie", {}, {}};
    lane.instrs = {{InstrKind::Send, out, 0, 0, 0},
                   {InstrKind::Recv, in, 0, 0, 0}};
    role.lanes = {lane};
    plan.roles.push_back(role);
  }
  return plan;
}

TEST(TrainerFailure, MutualSendsDeadlockAndBothAreNamed) {
  Plan plan = mutualSends();
  FailingSource source;
  TrainerOptions options;
  options.timeoutSeconds = 0.05;
  Trainer trainer(plan, source, options);
  expectError([&] { trainer.step(); }, ExitCode::Timeout,
              {"rank 0 lane 'tie': 0SEND_F0 (1 of 2) under way",
               "rank 1 to take 64 bytes",
               "rank 1 lane 'tie': 1SEND_B0 (1 of 2) under way",
               "rank 0 to take 64 bytes", "closes the circle"});
}

TEST(TrainerFailure, WaitsInACircleAreNamed) {
  Plan plan = tinyPlan({1});
  Role &role = plan.roles[0];
  role.lanes[1].waits.push_back({0, 1});
  role.lanes[1].instrs[0].waitBegin = 0;
  role.lanes[1].instrs[0].waitEnd = 1;
  std::unique_ptr<Source> source = syntheticSource(plan);
  TrainerOptions options;
  options.timeoutSeconds = 0.05;
  Trainer trainer(plan, *source, options);
  expectError([&] { trainer.step(); }, ExitCode::Timeout,
              {"'0F0' waits for '0LOAD0'", "'0LOAD0' waits for '0F0'",
               "closes the circle", "rank 0: nothing under way"});
}

TEST(TrainerFailure, OneLaneEachReceivingFirstOnOneSideWorks) {
  Plan plan = mutualSends();
  std::swap(plan.roles[1].lanes[0].instrs[0], plan.roles[1].lanes[0].instrs[1]);
  FailingSource source;
  Trainer trainer(plan, source);
  EXPECT_NO_THROW(trainer.step());
}

} // namespace
} // namespace takt::rt::test
