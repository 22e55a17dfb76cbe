//===- ResumeTests.cpp - training that goes on from a checkpoint ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The losses after a checkpoint against those of a run that was not
// interrupted, on the same layout and on others.
//
//===----------------------------------------------------------------------===//

#include "KernelArena.h"
#include "TinyPlan.h"

#include "takt-rt/checkpoint/restore.h"
#include "takt-rt/checkpoint/writer.h"
#include "takt-rt/host/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace takt::rt::test {
namespace {

constexpr int64_t kSteps = 12, kSavedAt = 5;

StateMemory memoryOf(Trainer &trainer) {
  return [&trainer](int32_t rank, const BufferRef &ref) {
    return trainer.state(rank, ref);
  };
}

class Resume : public testing::TestWithParam<OptimizerKind> {
protected:
  Resume() {
    std::string test =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(test.begin(), test.end(), '/', '-');
    folder = testing::TempDir() + "/takt-resume-" + test;
    std::filesystem::remove_all(folder);
  }
  ~Resume() override { std::filesystem::remove_all(folder); }

  Plan plan(int32_t stages, int32_t replicas, int32_t microBatches = 4) const {
    TinyOptions options;
    options.stages = stages;
    options.replicas = replicas;
    options.microBatches = microBatches;
    options.optimizer = GetParam();
    Plan made = tinyPlan(options);
    made.training.schedule = LrSchedule::Linear;
    made.training.totalSteps = 20;
    return made;
  }

  /// Losses of all steps; saves the state after kSavedAt of them.
  std::vector<double> trainAndSave(const Plan &of) {
    std::unique_ptr<Source> source = syntheticSource(of);
    Trainer trainer(of, *source);
    GatherHere here;
    CheckpointOptions options;
    options.folder = folder;
    options.run = "test";
    CheckpointWriter writer(of, options, memoryOf(trainer), here);
    std::vector<double> losses;
    for (int64_t step = 1; step <= kSteps; ++step) {
      losses.push_back(trainer.step().loss);
      if (step != kSavedAt)
        continue;
      Manifest at = manifestOf(of, "");
      at.step = step;
      at.samples = step * of.training.globalBatch;
      writer.save(at);
    }
    writer.wait();
    EXPECT_EQ(writer.outcomes().front().error, "");
    return losses;
  }

  std::vector<double> goOn(const Plan &of) {
    Checkpoint checkpoint = findCheckpoint(folder).checkpoint;
    std::unique_ptr<Source> source = syntheticSource(of);
    TrainerOptions options;
    options.firstStep = checkpoint.manifest.step;
    options.leaveUnset = true;
    Trainer trainer(of, *source, options);
    for (int32_t rank = 0; rank < of.numRanks(); ++rank)
      loadRank(checkpoint, of, rank, memoryOf(trainer));
    std::vector<double> losses;
    for (int64_t step = kSavedAt; step < kSteps; ++step) {
      StepResult result = trainer.step();
      EXPECT_EQ(result.step, step);
      losses.push_back(result.loss);
    }
    return losses;
  }

  std::string folder;
};

TEST_P(Resume, StagesChangeNoBit) {
  for (int32_t stages : {1, 2}) {
    std::filesystem::remove_all(folder);
    std::vector<double> whole = trainAndSave(plan(stages, 1));
    std::vector<double> rest(whole.begin() + kSavedAt, whole.end());
    EXPECT_NE(rest.front(), whole.front());
    for (int32_t others : {1, 2})
      EXPECT_EQ(goOn(plan(others, 1)), rest) << stages << " to " << others;
  }
}

TEST_P(Resume, TheSameReplicasChangeNoBit) {
  std::vector<double> whole = trainAndSave(plan(2, 2));
  EXPECT_EQ(goOn(plan(2, 2)),
            std::vector<double>(whole.begin() + kSavedAt, whole.end()));
}

TEST_P(Resume, OtherReplicasGoOnCloseBy) {
  std::vector<double> whole = trainAndSave(plan(2, 2)); // four ranks
  for (auto [stages, replicas] : {std::pair(2, 1), {1, 2}, {2, 4}}) {
    std::vector<double> rest = goOn(plan(stages, replicas));
    EXPECT_NEAR(rest[0] / whole[kSavedAt], 1, 1e-6) << replicas;
    for (size_t i = 1; i < rest.size(); ++i)
      EXPECT_NEAR(rest[i] / whole[kSavedAt + i], 1, 1e-5) << replicas;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Resume,
                         testing::Values(OptimizerKind::Sgd,
                                         OptimizerKind::Momentum,
                                         OptimizerKind::AdamW));

/// The loss of the tiny model on some samples, by the kernels in double: what
/// one replica of several contributes.
double shareOfLoss(const Plan &plan, const Checkpoint &checkpoint,
                   const Source &source, int64_t first, int64_t count,
                   int64_t batch) {
  KernelArena<double> arena;
  auto load = [&](const std::string &name) {
    const StoredTensor &stored = checkpoint.tensors.at(name);
    int64_t n = int64_t(stored.info.end - stored.info.begin) / 4;
    std::vector<float> values(n);
    readTensor(stored.file, stored.info, values.data());
    BufferRef ref = arena.make(n);
    std::copy(values.begin(), values.end(), arena.at(ref));
    return ref;
  };
  auto samples = [&](int input, int64_t width) {
    std::vector<float> values(count * width);
    source.fill(plan.inputs[input], first, count, values.data());
    BufferRef ref = arena.make(count * width);
    std::copy(values.begin(), values.end(), arena.at(ref));
    return ref;
  };
  BufferRef x = samples(0, kTinyIn), target = samples(1, kTinyOut);
  BufferRef h = arena.make(count * kTinyHidden);
  BufferRef a = arena.make(count * kTinyHidden);
  BufferRef y = arena.make(count * kTinyOut), loss = arena.make(1);
  arena.run(KernelKind::LinearForward,
            {x, load("fc0.weight"), load("fc0.bias"), h},
            {count, kTinyIn, kTinyHidden, 1});
  arena.run(KernelKind::GeluForward, {h, a}, {count * kTinyHidden});
  arena.run(KernelKind::LinearForward, {a, load("fc1.weight"), y},
            {count, kTinyHidden, kTinyOut, 0});
  arena.run(KernelKind::MseForward, {y, target, loss}, {count * kTinyOut},
            {1.0 / double(batch * kTinyOut)});
  return *arena.at(loss);
}

/// Runs compute in float; in double the shares of any number of replicas add up
/// to the loss of one, as closely as their order of addition lets them.
TEST_P(Resume, SharesOfReplicasAddUpInDouble) {
  Plan of = plan(1, 1);
  std::vector<double> whole = trainAndSave(of);
  Checkpoint checkpoint = findCheckpoint(folder).checkpoint;
  std::unique_ptr<Source> source = syntheticSource(of);
  int64_t batch = of.training.globalBatch;
  double one =
      shareOfLoss(of, checkpoint, *source, kSavedAt * batch, batch, batch);
  EXPECT_NEAR(whole[kSavedAt] / one, 1, 1e-6);
  for (int64_t replicas : {2, 4, 8, 16}) {
    double sum = 0;
    for (int64_t i = 0; i < replicas; ++i)
      sum += shareOfLoss(of, checkpoint, *source,
                         kSavedAt * batch + i * batch / replicas,
                         batch / replicas, batch);
    EXPECT_NEAR(sum / one, 1, 1e-12) << replicas;
  }
}

} // namespace
} // namespace takt::rt::test
