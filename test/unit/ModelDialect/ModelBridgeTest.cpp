//===- ModelBridgeTest.cpp - model IR against the flat graph --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The bridge must lose nothing: what comes out of IR, directly or after
// printing and parsing, is what buildGraph makes of the same spec.
//
//===----------------------------------------------------------------------===//
#include "Model/ModelBridge.h"
#include "takt/Frontend/Read.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

using namespace takt;

namespace {

/// Everything in a graph, doubles with all bits, one thing a line.
std::string dump(const Graph &graph) {
  std::string out = graph.name + "\n";
  for (const rt::InputInfo &in : graph.inputs)
    out += fmt::format("input {} {} {} {}\n", in.name, int(in.dtype), in.shape,
                       in.classes);
  for (const Value &v : graph.values)
    out += fmt::format("value {} {} {} {} {}\n", v.name, v.type.shape,
                       int(v.type.dtype), v.producer, v.input);
  for (const rt::Param &p : graph.params)
    out += fmt::format("param {} {} {} {:a} {}\n", p.name, p.shape, int(p.init),
                       p.initScale, p.trainable);
  for (const Layer &l : graph.layers)
    out += fmt::format("layer {} {} {} {} {} {} {} {:a} {} {} {} {} {} {}\n",
                       layerKindName(l.kind), l.name, l.inputs, l.output,
                       l.params, l.hasBias, l.heads, l.epsilon,
                       l.profiled.samples, l.profiled.forward,
                       l.profiled.inputGrad, l.profiled.weightGrad,
                       l.profiled.activation, l.profiled.parameters);
  return out;
}

std::string dump(const rt::Training &t) {
  return fmt::format("{} {} {} {} {:a} {:a} {:a} {:a} {:a} {:a} {} {} {} {:a}",
                     t.globalBatch, t.microBatches, t.seed, int(t.optimizer),
                     t.learningRate, t.momentum, t.beta1, t.beta2, t.epsilon,
                     t.weightDecay, int(t.schedule), t.warmupSteps,
                     t.totalSteps, t.minLearningRate);
}

std::string dump(const CostTable &table) {
  std::string out = fmt::format("{} {}\n", table.source, table.replicaOptions);
  for (const LayerTimes &l : table.layers)
    out += fmt::format("{} {} {} {}\n", l.forward, l.inputGrad, l.weightGrad,
                       l.update);
  return out;
}

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

class ModelBridge : public ::testing::Test {
protected:
  ModelBridge() : context(mlir::MLIRContext::Threading::DISABLED) {}

  void import(const ModelSpec &spec) {
    module = model::importModel(spec, &context);
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*module)));
  }
  void importText(const char *text) {
    Diagnostics diags;
    std::optional<ModelSpec> spec = readModelText("model.yaml", text, diags);
    ASSERT_TRUE(spec) << diags.text();
    import(*spec);
  }
  /// Replaces the module by what its text parses to.
  void reparse() {
    std::string text = print(*module);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
  }
  model::GraphOp graph() { return *module->getOps<model::GraphOp>().begin(); }

  /// Import, export, and again after a trip through text.
  void expectExact(const ModelSpec &spec) {
    ASSERT_NO_FATAL_FAILURE(import(spec));
    for (int trip = 0; trip < 2; ++trip) {
      EXPECT_EQ(dump(model::exportGraph(graph())), dump(buildGraph(spec)));
      EXPECT_EQ(dump(model::exportTraining(graph())), dump(spec.training));
      EXPECT_EQ(model::exportData(graph()), spec.data);
      EXPECT_EQ(graph().numLayers(), int64_t(buildGraph(spec).layers.size()));
      reparse();
    }
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

TEST_F(ModelBridge, ExamplesAreExact) {
  for (const char *name : {"gpt-small", "gpt-96", "mlp"}) {
    SCOPED_TRACE(name);
    Diagnostics diags;
    std::optional<ModelSpec> spec = readModel(
        fmt::format("{}/examples/{}.yaml", TAKT_SOURCE_DIR, name), diags);
    ASSERT_TRUE(spec) << diags.text();
    expectExact(*spec);
  }
}

LayerSpec linear(std::string name, std::string input, ParamSpec weight) {
  LayerSpec layer;
  layer.kind = LayerKind::Linear;
  layer.name = std::move(name);
  layer.inputs = {std::move(input)};
  layer.type = {{4}, DType::Float32};
  layer.params = {std::move(weight)};
  return layer;
}

ParamSpec weight(std::string name, bool tied = false) {
  ParamSpec param;
  param.name = std::move(name);
  param.shape = {4, 4};
  param.tied = tied;
  if (!tied) {
    param.init = rt::InitKind::Uniform;
    param.initScale = 1.0 / 3;
  }
  return param;
}

/// x -> two blocks of (own weight, shared weight, add of x) -> tie -> loss
ModelSpec oddSpec() {
  ModelSpec spec;
  spec.name = "odd";
  rt::InputInfo x;
  x.name = "x";
  x.shape = {4};
  spec.inputs = {x, x};
  spec.inputs[1].name = "y";
  ParamSpec frozen = weight("first.weight");
  frozen.trainable = false;
  spec.items.push_back({linear("first", "x", frozen), nullptr});
  auto repeat = std::make_shared<RepeatSpec>();
  repeat->name = "b";
  repeat->count = 2;
  repeat->input = "first";
  repeat->body.push_back(linear("b.*.own", "b.in", weight("b.*.own.weight")));
  repeat->body.push_back(linear("b.*.all", "b.*.own", weight("b.all.weight")));
  LayerSpec add;
  add.kind = LayerKind::Add;
  add.name = "b.*.add";
  add.inputs = {"b.*.all", "x"};
  add.type = {{4}, DType::Float32};
  repeat->body.push_back(add);
  spec.items.push_back({{}, repeat});
  spec.items.push_back(
      {linear("last", "b", weight("b.all.weight", true)), nullptr});
  LayerSpec loss;
  loss.kind = LayerKind::MeanSquaredError;
  loss.name = "loss";
  loss.inputs = {"last", "y"};
  spec.items.push_back({loss, nullptr});
  return spec;
}

TEST_F(ModelBridge, TiesSharedAndFrozenParametersAreExact) {
  ModelSpec spec = oddSpec();
  ASSERT_FALSE(buildGraph(spec).check());
  expectExact(spec);
  Graph graph = model::exportGraph(this->graph());
  ASSERT_EQ(graph.params.size(), 4u); // the shared and tied one stands once
  EXPECT_EQ(graph.params[3].name, "b.1.own.weight");
  EXPECT_EQ(graph.layers.back().inputs.front(), graph.layers[7].output);
}

TEST_F(ModelBridge, ProfiledChainIsExact) {
  ModelSpec spec;
  spec.name = "chain";
  spec.data = DataKind::Synthetic;
  for (int i = 0; i < 3; ++i) {
    LayerSpec layer;
    layer.kind = LayerKind::Profiled;
    layer.name = fmt::format("p{}", i);
    if (i > 0)
      layer.inputs = {fmt::format("p{}", i - 1)};
    layer.profiled = {4, 10 + i, 20 + i, 30 + i, 1600 * (i + 1), 44};
    layer.type = {{100 * (i + 1)}, DType::Float32};
    spec.items.push_back({layer, nullptr});
  }
  expectExact(spec);
}

TEST_F(ModelBridge, TrainingKeepsEveryBit) {
  std::mt19937_64 random(7);
  auto anyDouble = [&] {
    for (;;) {
      uint64_t bits = random();
      double value;
      std::memcpy(&value, &bits, sizeof(value));
      if (std::isfinite(value))
        return value;
    }
  };
  for (int i = 0; i < 200; ++i) {
    ModelSpec spec = oddSpec();
    rt::Training &t = spec.training;
    t.microBatches = 1 + int32_t(random() % 64);
    t.globalBatch = t.microBatches * int64_t(1 + random() % 64);
    t.seed = random();
    t.optimizer = rt::OptimizerKind(random() % 3);
    t.schedule = rt::LrSchedule(random() % 3);
    for (double *field : {&t.learningRate, &t.momentum, &t.beta1, &t.beta2,
                          &t.epsilon, &t.weightDecay, &t.minLearningRate})
      *field = random() % 4 ? anyDouble() : double(random() % 3);
    t.warmupSteps = int64_t(random() >> 1);
    t.totalSteps = int64_t(random() >> 1);
    import(spec);
    reparse();
    ASSERT_EQ(dump(model::exportTraining(graph())), dump(t));
  }
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

CostTable tableOf(size_t layers, bool equalRepetitions) {
  CostTable table;
  table.source = "profile \"a b\".yaml";
  table.replicaOptions = {1, 2, 4};
  for (size_t i = 0; i < layers; ++i) {
    Nanos base = equalRepetitions ? 100 : 100 + Nanos(i);
    table.layers.push_back({{base, base / 2, base / 4},
                            {2 * base, base, base / 2},
                            {0, 0, 0},
                            base / 10});
  }
  return table;
}

size_t costEntries(model::GraphOp graph) {
  size_t entries = 0;
  graph.walk([&](model::LayerOpInterface layer) {
    entries += layer.getCosts().size();
  });
  return entries;
}

TEST_F(ModelBridge, CostsAreExactWhetherRepetitionsAgreeOrNot) {
  ModelSpec spec = oddSpec();
  spec.training.globalBatch = 16;
  spec.training.microBatches = 4;
  for (bool equal : {true, false}) {
    import(spec);
    EXPECT_FALSE(model::exportCosts(graph()));
    CostTable table = tableOf(buildGraph(spec).layers.size(), equal);
    model::annotateCosts(graph(), table);
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*module)));
    // 3 layers outside the repeat, 3 in it.
    EXPECT_EQ(costEntries(graph()), equal ? 6u : 9u);
    reparse();
    std::optional<CostTable> back = model::exportCosts(graph());
    ASSERT_TRUE(back);
    EXPECT_EQ(dump(*back), dump(table));
  }
}

TEST_F(ModelBridge, CostsOfEveryKindOfDevice) {
  ModelSpec spec = oddSpec();
  spec.training.globalBatch = 16;
  spec.training.microBatches = 4;
  import(spec);
  const size_t layers = buildGraph(spec).layers.size();
  // Repetitions agree on one kind and not on the other.
  const std::vector<KindCosts> kinds = {{"fast", tableOf(layers, true)},
                                        {"slow", tableOf(layers, false)}};
  model::annotateCosts(graph(), kinds);
  ASSERT_TRUE(mlir::succeeded(mlir::verify(*module)));
  EXPECT_EQ(costEntries(graph()), 15u);
  reparse();
  for (const KindCosts &kind : kinds) {
    std::optional<CostTable> back = model::exportCosts(graph(), kind.device);
    ASSERT_TRUE(back) << kind.device;
    EXPECT_EQ(dump(*back), dump(kind.table)) << kind.device;
  }
  EXPECT_EQ(dump(*model::exportCosts(graph())), dump(kinds[0].table));
  EXPECT_FALSE(model::exportCosts(graph(), "other"));
}

TEST_F(ModelBridge, CostsReplaceEarlierOnes) {
  ModelSpec spec = oddSpec();
  spec.training.globalBatch = 16;
  spec.training.microBatches = 4;
  import(spec);
  size_t layers = buildGraph(spec).layers.size();
  model::annotateCosts(graph(), tableOf(layers, false));
  CostTable last = tableOf(layers, true);
  last.replicaOptions = {1};
  for (LayerTimes &times : last.layers)
    for (auto *phase : {&times.forward, &times.inputGrad, &times.weightGrad})
      phase->resize(1);
  model::annotateCosts(graph(), last);
  ASSERT_TRUE(mlir::succeeded(mlir::verify(*module)));
  EXPECT_EQ(dump(*model::exportCosts(graph())), dump(last));
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

TEST_F(ModelBridge, LayersKnowTheirLine) {
  ASSERT_NO_FATAL_FAILURE(importText(R"(schema_version: 1
model:
  name: m
  inputs:
    x: {shape: [8]}
    y: {shape: [8]}
  layers:
    - linear: {name: fc, input: x, out: 8}
    - repeat:
        name: h
        count: 2
        layers:
          - gelu: {name: g}
    - mean_squared_error: {name: loss, target: y}
training:
  global_batch: 4
  micro_batches: 2
  optimizer: {kind: sgd, learning_rate: 0.1}
data: {kind: synthetic}
)"));
  std::vector<int> lines;
  for (mlir::Location loc : model::layerLocations(graph())) {
    auto place = mlir::dyn_cast<mlir::FileLineColLoc>(loc);
    ASSERT_TRUE(place);
    EXPECT_EQ(place.getFilename().str(), "model.yaml");
    lines.push_back(int(place.getLine()));
  }
  EXPECT_EQ(lines, (std::vector<int>{8, 13, 13, 14}));
}

} // namespace
