//===- AllocationTests.cpp - no allocation once training runs -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Counts what the thread of each rank allocates inside its steps: interpreter,
// kernels, loads, messages and reductions, with ranks as threads and as
// processes have them.
//
//===----------------------------------------------------------------------===//

#include "Member.h"
#include "StepMeter.h"
#include "TinyPlan.h"

#include <gtest/gtest.h>

#include <thread>

namespace takt::rt::test {
namespace {

constexpr int kSteps = 5;

/// By step, summed over the ranks of a trainer.
std::vector<uint64_t> allocationsOf(Trainer &trainer,
                                    const std::vector<int32_t> &ranks) {
  std::vector<StepMeter> meters(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i)
    trainer.observe(ranks[i], &meters[i]);
  std::vector<uint64_t> counts(kSteps);
  for (uint64_t &count : counts) {
    trainer.step();
    for (const StepMeter &meter : meters) {
      EXPECT_GT(meter.done, 0u);
      count += meter.allocations;
    }
  }
  for (int32_t rank : ranks)
    trainer.observe(rank, nullptr);
  return counts;
}

void expectNoneAfterTheFirst(const std::vector<uint64_t> &counts) {
  for (size_t step = 1; step < counts.size(); ++step)
    EXPECT_EQ(counts[step], 0u) << "in step " << step;
}

Plan layout(int32_t stages, int32_t replicas) {
  TinyOptions options;
  options.stages = stages;
  options.replicas = replicas;
  options.microBatchSize = 8;
  return tinyPlan(options);
}

class Allocations
    : public testing::TestWithParam<std::tuple<int32_t, int32_t>> {
protected:
  static Plan plan() {
    return layout(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};

TEST_P(Allocations, NoneInStepsOfThreads) {
  Plan plan = this->plan();
  std::unique_ptr<Source> source = syntheticSource(plan);
  Trainer trainer(plan, *source);
  std::vector<int32_t> ranks;
  for (int32_t r = 0; r < plan.numRanks(); ++r)
    ranks.push_back(r);
  expectNoneAfterTheFirst(allocationsOf(trainer, ranks));
}

TEST_P(Allocations, NoneInStepsOfProcesses) {
  Plan plan = this->plan();
  std::unique_ptr<Source> source = syntheticSource(plan);
  for (TransportKind kind : {TransportKind::SharedMemory, TransportKind::Tcp}) {
    std::string where = freeAddress();
    std::vector<std::vector<uint64_t>> counts(plan.numRanks());
    std::vector<std::thread> threads;
    for (int32_t rank = 0; rank < plan.numRanks(); ++rank)
      threads.emplace_back([&, rank] {
        Member member(plan, rank, where, kind, false, 600);
        TrainerOptions options;
        options.seats = &member.seats;
        Trainer trainer(plan, *source, options);
        counts[rank] = allocationsOf(trainer, {rank});
        member.session.leave();
      });
    for (std::thread &thread : threads)
      thread.join();
    for (const std::vector<uint64_t> &ofRank : counts)
      expectNoneAfterTheFirst(ofRank);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Allocations,
                         testing::Values(std::tuple(2, 1), std::tuple(1, 2),
                                         std::tuple(2, 2)));

TEST(CountedNew, CountsEveryForm) {
  uint64_t before = allocationsHere();
  auto one = std::make_unique<int>();
  auto many = std::make_unique<int[]>(7);
  struct alignas(128) Wide {
    char bytes[128];
  };
  auto wide = std::make_unique<Wide>();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(wide.get()) % 128, 0u);
  EXPECT_EQ(allocationsHere() - before, 3u);
}

} // namespace
} // namespace takt::rt::test
