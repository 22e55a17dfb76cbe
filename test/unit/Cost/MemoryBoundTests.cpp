//===- MemoryBoundTests.cpp - accepted assignments fit --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The memory that the partition counts for a stage against the arena of the
// role that lowering makes of it: never less, and not wastefully more.
//
//===----------------------------------------------------------------------===//

#include "../Lower/TestModels.h"
#include "takt/Cost/Cost.h"
#include "takt/Layer/Order.h"

#include <gtest/gtest.h>

using namespace takt;

namespace {

struct Layout {
  std::vector<int64_t> cuts;
  std::vector<int32_t> replicas;
};

/// Largest ratio of counted to true bytes of any stage.
double checkLayout(const Graph &graph, const std::vector<Segment> &segments,
                   const Layout &layout, const std::string &schedule,
                   int32_t microBatches) {
  std::vector<int32_t> layers;
  for (const int64_t cut : layout.cuts)
    layers.push_back(segments[cut].begin);
  const LoweringProblem lowering = test::cutBefore(
      graph, layers, microBatches, layout.replicas, schedule);
  const rt::Plan plan = lower(lowering);

  CostTable costs;
  costs.replicaOptions = replicaOptions(4, 4);
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    const std::vector<Nanos> zeros(costs.replicaOptions.size(), 0);
    costs.layers.push_back({zeros, zeros, zeros, 0});
  }
  PartitionProblem problem = partitionProblem(graph, segments,
                                              lowering.training, costs, {});
  problem.inFlight =
      schedule == "gpipe" ? InFlightPolicy::GPipe : InFlightPolicy::OneFOneB;
  const int64_t stages = layout.replicas.size();
  double worst = 0;
  for (int64_t s = 0; s < stages; ++s) {
    const int64_t begin = s == 0 ? 0 : layout.cuts[s - 1];
    const int64_t end =
        s + 1 == stages ? int64_t(problem.segments.size()) : layout.cuts[s];
    int64_t option = 0;
    while (problem.replicaOptions[option] != layout.replicas[s])
      ++option;
    const int64_t inFlight = schedule == "gpipe"
                                 ? microBatches
                                 : std::min<int64_t>(microBatches, stages - s);
    const Bytes counted = stageMemory(problem, begin, end, option, inFlight);
    EXPECT_GE(counted, plan.roles[s].arenaBytes)
        << graph.name << " stage " << s << " of " << stages << ", "
        << layout.replicas[s] << " replicas, " << schedule << ", "
        << microBatches << " micro-batches";
    worst = std::max(worst, double(counted) / plan.roles[s].arenaBytes);
  }
  return worst;
}

void checkCuts(const Graph &graph, const std::vector<Segment> &places,
               double mostWaste) {
  const int64_t segments = places.size();
  std::vector<Layout> layouts = {{{}, {1}}, {{}, {2}}, {{}, {4}}};
  for (int64_t cut = 1; cut < segments; ++cut) {
    layouts.push_back({{cut}, {1, 1}});
    layouts.push_back({{cut}, {1, 2}});
    layouts.push_back({{cut}, {4, 2}});
  }
  if (segments > 3)
    layouts.push_back({{1, segments / 2, segments - 1}, {1, 2, 1, 4}});
  double worst = 0;
  for (const Layout &layout : layouts)
    for (const char *schedule : {"1f1b", "gpipe"})
      for (const int32_t microBatches : {1, 2, 7})
        worst =
            std::max(worst, checkLayout(graph, places, layout, schedule,
                                      microBatches));
  EXPECT_LT(worst, mostWaste) << graph.name;
}

void checkModel(const Graph &graph, double mostWaste) {
  checkCuts(graph, chainSegments(graph), mostWaste);
}

// Every layer for itself: what is read by several layers counts at each.
TEST(MemoryBound, Skips) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Graph graph = test::makeSkips(seed, 8, 32);
    checkCuts(graph, layerSegments(graph), 4);
  }
}

TEST(MemoryBound, Gpt) {
  checkModel(test::makeGpt({}), 3);
  test::GptShape wide;
  wide.width = 64;
  wide.positions = 16;
  wide.vocab = 256;
  wide.tied = false;
  checkModel(test::makeGpt(wide), 3.2); // a stage of the loss alone: logits
}

TEST(MemoryBound, FrozenPrefix) {
  test::GptShape shape;
  shape.frozenPrefix = true;
  checkModel(test::makeGpt(shape), 3);
}

TEST(MemoryBound, Llama) {
  checkModel(test::makeLlama(2, 16, 8), 3);
  checkModel(test::makeLlama(1, 64, 16), 3.2);
}

TEST(MemoryBound, Mlp) { checkModel(test::makeMlp(4, 64), 3); }

} // namespace
