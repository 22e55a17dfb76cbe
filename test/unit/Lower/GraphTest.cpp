//===- GraphTest.cpp - shapes, segments, gradient needs -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The layer library on small models.
//
//===----------------------------------------------------------------------===//
#include "TestModels.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

TEST(Graph, SmallModelsAreSound) {
  EXPECT_EQ(makeGpt({}).check(), std::nullopt);
  EXPECT_EQ(makeMlp(3, 8).check(), std::nullopt);
}

TEST(Graph, FaultsAreNamed) {
  Graph twice = makeMlp(2, 8);
  twice.layers[2].name = twice.layers[0].name;
  EXPECT_EQ(twice.check(), "two layers are named 'fc0'");

  Graph shape = makeMlp(2, 8);
  shape.params[0].shape = {8, 9};
  EXPECT_EQ(shape.check(), "layer 'fc0': input of shape [8] does not end in "
                           "the 9 columns of the weight [8, 9]");

  Graph future = makeMlp(2, 8);
  future.layers[0].inputs[0] = future.layers[1].output;
  EXPECT_EQ(future.check(), "layer 'fc0' reads 'act0' before it is made");

  Graph mixed = makeMlp(2, 8);
  mixed.params[1].trainable = false;
  EXPECT_EQ(mixed.check(), "layer 'fc0' trains one of its parameters and "
                           "freezes another: give both the same 'trainable'");
}

TEST(Segments, CutOnlyWhereOneValueCrosses) {
  Graph graph = makeGpt({});
  std::vector<std::string> ends;
  for (const Segment &segment : chainSegments(graph))
    ends.push_back(graph.layers[segment.end - 1].name);
  std::vector<std::string> expected{"tok",      "pos",      "h.0.add1",
                                    "h.0.add2", "h.1.add1", "h.1.add2",
                                    "lnf",      "head",     "loss"};
  EXPECT_EQ(ends, expected);
  std::vector<Segment> segments = chainSegments(graph);
  for (size_t i = 0; i + 1 < segments.size(); ++i) {
    EXPECT_EQ(segments[i].end, segments[i + 1].begin);
    EXPECT_EQ(graph.values[segments[i].output].producer, segments[i].end - 1);
  }
}

TEST(Gradients, FrozenPrefixNeedsNone) {
  GptShape shape;
  shape.frozenPrefix = true;
  Graph graph = makeGpt(shape);
  std::vector<bool> needs = valuesNeedingGrad(graph);
  EXPECT_FALSE(needs[graph.layers[0].output]);
  EXPECT_FALSE(needs[graph.layers[1].output]);
  EXPECT_TRUE(needs[graph.layers[2].output]);
}

TEST(Work, LinearCountsTwoOperationsAMultiplyAdd) {
  Graph graph = makeMlp(1, 8);
  LayerWork work = layerWork(graph, graph.layers[0], 4, 2);
  EXPECT_EQ(work.forward.flops, 2.0 * 4 * 8 * 8);
  EXPECT_EQ(work.inputGrad.flops, work.forward.flops);
  EXPECT_EQ(work.weightGrad.flops, work.forward.flops);
  EXPECT_EQ(work.forward.bytes, 4.0 * (32 + 32 + 64 + 8));
  EXPECT_EQ(work.update.bytes, 4.0 * 8 * 72);
}
