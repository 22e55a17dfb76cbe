//===- BuildGraphTest.cpp - unrolled graphs ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Names, ties and sizes after unrolling; every example passes Graph::check.
//
//===----------------------------------------------------------------------===//
#include "Messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace takt;

namespace {

Graph readGraph(const std::string &name) {
  Diagnostics diags;
  auto spec =
      readModel(std::string(TAKT_SOURCE_DIR) + "/examples/" + name, diags);
  EXPECT_TRUE(spec) << diags.text();
  return spec ? buildGraph(*spec) : Graph();
}

const Layer &find(const Graph &graph, const std::string &name) {
  auto it = std::find_if(graph.layers.begin(), graph.layers.end(),
                         [&](const Layer &l) { return l.name == name; });
  EXPECT_NE(it, graph.layers.end()) << name;
  return *it;
}

TEST(BuildGraphTest, ExamplesAreSound) {
  for (const char *name : {"gpt-small.yaml", "gpt-96.yaml", "mlp.yaml"})
    EXPECT_EQ(readGraph(name).check().value_or(""), "") << name;
}

TEST(BuildGraphTest, RepeatsAreUnrolled) {
  Graph graph = readGraph("gpt-small.yaml");
  ASSERT_EQ(graph.layers.size(), 2u + 4 * 10 + 3);
  std::set<std::string> names;
  for (const Layer &layer : graph.layers)
    names.insert(layer.name);
  EXPECT_EQ(names.size(), graph.layers.size());
  auto inputOf = [&](const std::string &name, int i) {
    return graph.values[find(graph, name).inputs[i]].name;
  };
  EXPECT_EQ(inputOf("h.0.ln1", 0), "pos");
  EXPECT_EQ(inputOf("h.3.ln1", 0), "h.2.add2");
  EXPECT_EQ(inputOf("h.3.add1", 0), "h.2.add2");
  EXPECT_EQ(inputOf("h.3.add1", 1), "h.3.attn.proj");
  EXPECT_EQ(inputOf("lnf", 0), "h.3.add2");
  EXPECT_EQ(inputOf("loss", 1), "targets");
}

TEST(BuildGraphTest, TiedParametersStandOnce) {
  Graph graph = readGraph("gpt-small.yaml");
  EXPECT_EQ(find(graph, "tok").params, find(graph, "head").params);
  std::set<std::string> names;
  for (const rt::Param &param : graph.params)
    names.insert(param.name);
  EXPECT_EQ(names.size(), graph.params.size());
  EXPECT_EQ(graph.params[find(graph, "h.3.attn.qkv").params[1]].name,
            "h.3.attn.qkv.bias");
  // 12 W^2 + 13 W a block, both embeddings, the last norm.
  EXPECT_EQ(graph.parameterCount(),
            4 * (12 * 128 * 128 + 13 * 128) + 256 * 128 + 64 * 128 + 256);
}

TEST(BuildGraphTest, TiesIntoARepeatShareOneParameter) {
  Diagnostics diags;
  auto spec = readModelText("m.yaml",
                            "schema_version: 1\n"
                            "training: {global_batch: 4}\n"
                            "model:\n"
                            "  name: m\n"
                            "  inputs: {x: {shape: [6]}, y: {shape: [6]}}\n"
                            "  layers:\n"
                            "    - linear: {name: f, input: x, out: 6}\n"
                            "    - repeat:\n"
                            "        name: h\n"
                            "        count: 3\n"
                            "        layers:\n"
                            "          - linear: {name: a, out: 6, tied: f}\n"
                            "          - linear: {name: b, out: 6}\n"
                            "          - linear: {name: c, out: 6, tied: b}\n"
                            "    - mean_squared_error: {target: y}\n",
                            diags);
  ASSERT_TRUE(spec) << diags.text();
  Graph graph = buildGraph(*spec);
  EXPECT_EQ(graph.check().value_or(""), "");
  auto weight = [&](const std::string &name) {
    return graph.params[find(graph, name).params[0]].name;
  };
  EXPECT_EQ(weight("h.0.a"), "f.weight");
  EXPECT_EQ(weight("h.2.a"), "f.weight");
  EXPECT_EQ(weight("h.0.c"), "h.0.b.weight");
  EXPECT_EQ(weight("h.2.c"), "h.2.b.weight");
}

} // namespace
