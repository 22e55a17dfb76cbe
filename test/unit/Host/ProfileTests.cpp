//===- ProfileTests.cpp - medians of layer times --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// How samples of ranks become the figures of a profile, with times made up.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/host/profile.h"

#include <gtest/gtest.h>

namespace takt::rt {
namespace {

Kernel kernelOf(int32_t layer, Phase phase) {
  Kernel kernel;
  kernel.layer = layer;
  kernel.phase = phase;
  return kernel;
}

TEST(LayerSamples, ACallIsOneSampleAndAStepOneUpdate) {
  LayerSamples samples(2);
  for (Nanos time : {10, 30}) {
    samples.add(kernelOf(0, Phase::Forward), time);
    samples.add(kernelOf(0, Phase::Forward), 1); // a second kernel of the layer
    samples.add(kernelOf(1, Phase::Update), time);
    samples.add(kernelOf(-1, Phase::Forward), 1000);
    samples.closeCall();
  }
  EXPECT_EQ(samples.of(0, Phase::Forward), (std::vector<Nanos>{11, 31}));
  EXPECT_TRUE(samples.of(1, Phase::Update).empty());
  samples.closeStep();
  EXPECT_EQ(samples.of(1, Phase::Update), std::vector<Nanos>{40});
  EXPECT_TRUE(samples.of(1, Phase::Forward).empty());
}

/// Role 0 is rank 0, role 1 has ranks 1 and 2; micro-batches of 4 samples.
Plan twoRoles() {
  Plan plan;
  plan.training.globalBatch = 8;
  plan.training.microBatches = 2;
  plan.layers = {{"tok", "embedding"}, {"head", "linear"}};
  plan.roles.resize(2);
  plan.roles[1].firstRank = 1;
  plan.roles[1].replicas = 2;
  return plan;
}

TEST(Profile, MediansAreScaledToTheLargestShare) {
  Plan plan = twoRoles();
  LayerSamples first(2), second(2), third(2);
  for (Nanos time : {5, 100, 7}) {
    first.add(kernelOf(0, Phase::Forward), time);
    first.closeCall();
  }
  for (Nanos time : {10, 11}) {
    second.add(kernelOf(1, Phase::Forward), time);
    second.closeCall();
  }
  third.add(kernelOf(1, Phase::Forward), 12);
  third.closeCall();
  // The update of a tied parameter on both roles.
  first.add(kernelOf(0, Phase::Update), 20);
  second.add(kernelOf(0, Phase::Update), 40);
  third.add(kernelOf(0, Phase::Update), 40);
  for (LayerSamples *samples : {&first, &second, &third})
    samples->closeStep();
  Profile profile = combineSamples(plan, {&first, &second, &third});
  EXPECT_EQ(profile.samples, 4);
  EXPECT_EQ(profile.layers[0].forward, 7);
  EXPECT_EQ(profile.layers[0].update, 30);
  EXPECT_EQ(profile.layers[1].forward, 22); // 11 for half of the samples
  EXPECT_EQ(profile.layers[1].weightGrad, 0);
}

TEST(Profile, IsWrittenAsYaml) {
  Plan plan = twoRoles();
  plan.layers[0].name = "h.0.attn-qkv";
  plan.layers[1].name = "yes";
  Profile profile;
  profile.samples = 4;
  profile.layers = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  EXPECT_EQ(formatProfile(plan, profile),
            "schema_version: 1\n"
            "profile:\n"
            "  device: host\n"
            "  samples: 4\n"
            "  layers:\n"
            "    h.0.attn-qkv: {forward: 1 ns, input_grad: 2 ns, "
            "weight_grad: 3 ns, update: 4 ns}\n"
            "    \"yes\": {forward: 5 ns, input_grad: 6 ns, "
            "weight_grad: 7 ns, update: 8 ns}\n");
}

} // namespace
} // namespace takt::rt
