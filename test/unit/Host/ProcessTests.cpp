//===- ProcessTests.cpp - a rank a process --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Each rank a trainer of its own, as processes have it, but as threads of one
// test, so that sanitizers see all: the same losses and weights bit for bit
// over every transport, and one failure that ends all.
//
//===----------------------------------------------------------------------===//

#include "Member.h"
#include "TinyPlan.h"

#include "takt-rt/core/error.h"
#include "takt-rt/host/trainer.h"

#include <gtest/gtest.h>

#include <thread>

namespace takt::rt::test {
namespace {

struct Outcome {
  std::vector<double> losses;
  TensorMap weights;
  ExitCode code = ExitCode::Done;
};

/// Data that ends for one rank at some step.
class FailingSource final : public Source {
public:
  FailingSource(const Source &source, int64_t lastSample)
      : source(source), lastSample(lastSample) {}
  void fill(const InputInfo &input, int64_t first, int64_t count,
            void *out) const override {
    if (lastSample >= 0 && first + count > lastSample)
      throw Error("no more data");
    source.fill(input, first, count, out);
  }

private:
  const Source &source;
  int64_t lastSample;
};

struct Case {
  TransportKind kind = TransportKind::Auto;
  bool twoNodes = false; ///< the upper half of the ranks on another
  int32_t failing = -1;  ///< rank that fails in its third step
  double patience = 600;
};

std::vector<Outcome> trainAsProcesses(const Plan &plan, int steps,
                                      const Case &how) {
  std::unique_ptr<Source> source = syntheticSource(plan);
  std::string where = freeAddress();
  std::vector<Outcome> outcomes(plan.numRanks());
  auto runRank = [&](int32_t rank) {
    Member member(plan, rank, where, how.kind,
                  how.twoNodes && rank >= plan.numRanks() / 2, how.patience);
    FailingSource data(
        *source, rank == how.failing ? 2 * plan.training.globalBatch : -1);
    try {
      TrainerOptions options;
      options.seats = &member.seats;
      Trainer trainer(plan, data, options);
      for (int i = 0; i < steps; ++i)
        outcomes[rank].losses.push_back(trainer.step().loss);
      outcomes[rank].weights = trainer.weights();
      member.session.leave();
    } catch (const Error &error) {
      Abort first = member.session.fail(error);
      outcomes[rank].code =
          first.rank == rank ? error.code() : ExitCode::PeerFailed;
    }
  };
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < plan.numRanks(); ++rank)
    threads.emplace_back(runRank, rank);
  for (std::thread &thread : threads)
    thread.join();
  return outcomes;
}

class Processes
    : public testing::TestWithParam<std::tuple<int32_t, int32_t, int>> {
protected:
  static Plan plan() {
    TinyOptions options;
    options.stages = std::get<0>(GetParam());
    options.replicas = std::get<1>(GetParam());
    options.microBatchSize = 8;
    return tinyPlan(options);
  }
  static Case how() {
    constexpr Case kCases[] = {{TransportKind::SharedMemory, false},
                               {TransportKind::Tcp, false},
                               {TransportKind::Auto, true}};
    return kCases[std::get<2>(GetParam())];
  }
};

TEST_P(Processes, TrainAsThreadsDo) {
  constexpr int kSteps = 6;
  Plan plan = this->plan();
  std::unique_ptr<Source> source = syntheticSource(plan);
  Trainer threads(plan, *source);
  std::vector<double> losses;
  for (int i = 0; i < kSteps; ++i)
    losses.push_back(threads.step().loss);
  TensorMap weights = threads.weights();
  std::vector<Outcome> outcomes = trainAsProcesses(plan, kSteps, how());
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.code, ExitCode::Done);
    EXPECT_EQ(outcome.losses, losses); // rank 0 tells all
  }
  ASSERT_EQ(outcomes[0].weights.size(), weights.size());
  for (const auto &[name, tensor] : weights)
    EXPECT_EQ(outcomes[0].weights.at(name).values, tensor.values) << name;
}

TEST_P(Processes, OneFailureEndsAll) {
  Plan plan = this->plan();
  Case failing = how();
  failing.failing = plan.numRanks() - 1;
  std::vector<Outcome> outcomes = trainAsProcesses(plan, 100, failing);
  for (int32_t r = 0; r < plan.numRanks(); ++r) {
    EXPECT_EQ(outcomes[r].code,
              r == failing.failing ? ExitCode::BadInput : ExitCode::PeerFailed)
        << "rank " << r;
    EXPECT_LE(outcomes[r].losses.size(), 2u);
  }
}

std::string layoutName(
    const testing::TestParamInfo<std::tuple<int32_t, int32_t, int>> &info) {
  const auto &[stages, replicas, way] = info.param;
  std::string name = way == 0 ? "Memory" : way == 1 ? "Tcp" : "TwoNodes";
  return name + std::to_string(stages) + "By" + std::to_string(replicas);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Processes,
                         testing::Combine(testing::Values(1, 2),
                                          testing::Values(2, 4),
                                          testing::Values(0, 1, 2)),
                         layoutName);

} // namespace
} // namespace takt::rt::test
