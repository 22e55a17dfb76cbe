//===- PartitionBench.cpp - the stage assignment solver -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Time, transitions looked at and gap of the solver on the chains of large
// language models:
//
//   partition-bench --benchmark_filter=Free
//
// Counters: `Mwork` millions of transitions, `stages`, `gap` of the answer (0:
// proven optimal).
//
//===----------------------------------------------------------------------===//

#include "GptChain.h"

#include <benchmark/benchmark.h>

using namespace takt;
using namespace takt::test;

namespace {

void solve(benchmark::State &state, const PartitionProblem &problem) {
  PartitionResult result;
  for (auto _ : state)
    benchmark::DoNotOptimize(result = solvePartition(problem));
  if (!result.partition) {
    state.SkipWithError(result.infeasible.reason.c_str());
    return;
  }
  state.counters["Mwork"] = double(result.partition->work) / 1e6;
  state.counters["stages"] = double(result.partition->stages.size());
  state.counters["gap"] = result.partition->gap();
}

/// Blocks, even or not.
void freeOn64Devices(benchmark::State &state) {
  GptChainShape shape;
  shape.blocks = int(state.range(0));
  shape.uneven = state.range(1) != 0;
  shape.memoryGiB = 60.0 * shape.blocks / 96;
  solve(state, gptChain(shape));
}
BENCHMARK(freeOn64Devices)
    ->ArgNames({"blocks", "uneven"})
    ->ArgsProduct({{24, 48, 96, 192}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

void sixteenStagesOn1024Devices(benchmark::State &state) {
  GptChainShape shape;
  shape.devices = 1024;
  shape.memoryGiB = double(state.range(0));
  PartitionProblem problem = gptChain(shape);
  problem.stages = 16;
  solve(state, problem);
}
BENCHMARK(sixteenStagesOn1024Devices)
    ->ArgName("GiB")
    ->Arg(16)
    ->Arg(24)
    ->Arg(80)
    ->Unit(benchmark::kMillisecond);

/// Stage counts that neither devices nor memory suit.
void stagesOn64Devices(benchmark::State &state) {
  PartitionProblem problem = gptChain({});
  problem.stages = state.range(0);
  solve(state, problem);
}
BENCHMARK(stagesOn64Devices)
    ->ArgName("stages")
    ->DenseRange(4, 16, 3)
    ->Unit(benchmark::kMillisecond);

/// How fast an impossible problem is explained.
void infeasibleOn64Devices(benchmark::State &state) {
  GptChainShape shape;
  shape.memoryGiB = 30;
  const PartitionProblem problem = gptChain(shape);
  for (auto _ : state)
    benchmark::DoNotOptimize(solvePartition(problem));
}
BENCHMARK(infeasibleOn64Devices)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
