//===- ModelTest.cpp - models that are right ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The examples and what their specs say.
//
//===----------------------------------------------------------------------===//
#include "Messages.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

namespace {

ModelSpec readExample(const std::string &name) {
  Diagnostics diags;
  auto spec =
      readModel(std::string(TAKT_SOURCE_DIR) + "/examples/" + name, diags);
  EXPECT_TRUE(spec) << diags.text();
  return spec.value_or(ModelSpec());
}

TEST(ModelTest, GptSmall) {
  ModelSpec spec = readExample("gpt-small.yaml");
  EXPECT_EQ(spec.name, "gpt-small");
  EXPECT_EQ(spec.data, DataKind::Text);
  ASSERT_EQ(spec.inputs.size(), 2u);
  EXPECT_EQ(spec.inputs[0].name, "tokens");
  EXPECT_EQ(spec.inputs[0].classes, 256);
  const rt::Training &training = spec.training;
  EXPECT_EQ(training.globalBatch, 32);
  EXPECT_EQ(training.microBatches, 8);
  EXPECT_EQ(training.seed, 1u);
  EXPECT_EQ(training.optimizer, rt::OptimizerKind::AdamW);
  EXPECT_EQ(training.learningRate, 2e-3);
  EXPECT_EQ(training.beta1, 0.9);
  EXPECT_EQ(training.beta2, 0.95);
  EXPECT_EQ(training.weightDecay, 0.1);
  EXPECT_EQ(training.schedule, rt::LrSchedule::Cosine);
  EXPECT_EQ(training.warmupSteps, 20);
  EXPECT_EQ(training.totalSteps, 200);
  EXPECT_EQ(training.minLearningRate, 1e-4);

  ASSERT_EQ(spec.items.size(), 6u);
  ASSERT_TRUE(spec.items[2].repeat);
  const RepeatSpec &repeat = *spec.items[2].repeat;
  EXPECT_EQ(repeat.count, 4);
  EXPECT_EQ(repeat.input, "pos");
  std::vector<std::string> names;
  for (const LayerSpec &layer : repeat.body)
    names.push_back(layer.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "h.*.ln1", "h.*.attn.qkv", "h.*.attn.core",
                       "h.*.attn.proj", "h.*.add1", "h.*.ln2", "h.*.fc",
                       "h.*.act", "h.*.proj", "h.*.add2"}));
  EXPECT_EQ(repeat.body[0].inputs, std::vector<std::string>{"h.in"});
  EXPECT_EQ(repeat.body[4].inputs,
            (std::vector<std::string>{"h.in", "h.*.attn.proj"}));
  EXPECT_EQ(repeat.body[1].params[0].name, "h.*.attn.qkv.weight");
  EXPECT_EQ(repeat.body[1].params[0].shape, (std::vector<int64_t>{384, 128}));
  EXPECT_EQ(repeat.body[2].heads, 4);

  const LayerSpec &head = spec.items[4].layer;
  ASSERT_EQ(head.params.size(), 1u); // no bias
  EXPECT_EQ(head.params[0].name, "tok.weight");
  EXPECT_TRUE(head.params[0].tied);
  EXPECT_EQ(spec.items[5].layer.kind, LayerKind::CrossEntropy);
  EXPECT_TRUE(spec.items[5].layer.type.shape.empty());
  EXPECT_EQ(spec.places.at("training.micro_batches").line,
            spec.places.at("training.global_batch").line + 1);
}

TEST(ModelTest, Gpt96) {
  ModelSpec spec = readExample("gpt-96.yaml");
  ASSERT_TRUE(spec.items.size() > 2 && spec.items[2].repeat);
  EXPECT_EQ(spec.items[2].repeat->count, 96);
  EXPECT_EQ(spec.training.microBatchSize(), 4);
}

TEST(ModelTest, Mlp) {
  ModelSpec spec = readExample("mlp.yaml");
  EXPECT_EQ(spec.data, DataKind::Synthetic);
  EXPECT_EQ(spec.training.optimizer, rt::OptimizerKind::Momentum);
  ASSERT_EQ(spec.items.size(), 6u);
  EXPECT_EQ(spec.items[0].layer.params[0].init, rt::InitKind::Uniform);
  EXPECT_EQ(spec.items[0].layer.params[0].initScale, 0.125);
}

ModelSpec readText(const std::string &layers) {
  Diagnostics diags;
  auto spec =
      readModelText("m.yaml",
                    "schema_version: 1\n"
                    "training: {global_batch: 4}\n"
                    "model:\n"
                    "  name: m\n"
                    "  inputs: {x: {shape: [8, 6]}, y: {shape: [8, 6]}}\n"
                    "  layers:\n" +
                        layers,
                    diags);
  EXPECT_TRUE(spec) << diags.text();
  return spec.value_or(ModelSpec());
}

TEST(ModelTest, DefaultNamesAvoidGivenOnes) {
  ModelSpec spec = readText("  - linear: {input: x, out: 6}\n"
                            "  - linear: {out: 6}\n"
                            "  - linear: {name: linear2, out: 6}\n"
                            "  - relu\n"
                            "  - mean_squared_error: {target: y}\n");
  ASSERT_EQ(spec.items.size(), 5u);
  EXPECT_EQ(spec.items[0].layer.name, "linear1");
  EXPECT_EQ(spec.items[1].layer.name, "linear3");
  EXPECT_EQ(spec.items[2].layer.name, "linear2");
  EXPECT_EQ(spec.items[3].layer.name, "relu1");
}

TEST(ModelTest, NamedResidualsPrefixTheirLayers) {
  ModelSpec spec = readText("  - residual:\n"
                            "      name: r\n"
                            "      input: x\n"
                            "      layers:\n"
                            "        - linear: {name: f, out: 6}\n"
                            "        - residual: {layers: [layer_norm]}\n"
                            "        - linear: {input: f, out: 6}\n"
                            "        - add: {inputs: [add1, linear1]}\n"
                            "  - add: {inputs: [r, r.f]}\n"
                            "  - mean_squared_error: {target: y}\n");
  std::vector<std::string> names;
  for (const ItemSpec &item : spec.items)
    names.push_back(item.layer.name);
  EXPECT_EQ(names, (std::vector<std::string>{"r.f", "r.layer_norm1", "r.add1",
                                             "r.linear1", "r.add2", "r.add",
                                             "add1", "mean_squared_error1"}));
  EXPECT_EQ(spec.items[6].layer.inputs,
            (std::vector<std::string>{"r.add", "r.f"}));
  EXPECT_EQ(spec.items[5].layer.inputs,
            (std::vector<std::string>{"x", "r.add2"}));
}

TEST(ModelTest, FrozenIsInheritedAndOverridden) {
  ModelSpec spec = readText("  - repeat:\n"
                            "      name: h\n"
                            "      input: x\n"
                            "      count: 2\n"
                            "      trainable: false\n"
                            "      layers:\n"
                            "        - linear: {out: 6}\n"
                            "        - attention: {heads: 2}\n"
                            "        - layer_norm: {trainable: true}\n"
                            "  - linear: {out: 6}\n"
                            "  - mean_squared_error: {target: y}\n");
  ASSERT_TRUE(!spec.items.empty() && spec.items[0].repeat);
  const std::vector<LayerSpec> &body = spec.items[0].repeat->body;
  ASSERT_EQ(body.size(), 5u);
  for (std::size_t i : {0, 1, 3})
    for (const ParamSpec &param : body[i].params)
      EXPECT_FALSE(param.trainable) << param.name;
  EXPECT_TRUE(body[4].params[0].trainable);
  EXPECT_TRUE(spec.items[1].layer.params[0].trainable);
}

TEST(ModelTest, DefaultInitialisers) {
  ModelSpec spec = readText("  - linear: {input: x, out: 6}\n"
                            "  - layer_norm: {epsilon: 1e-6}\n"
                            "  - mean_squared_error: {target: y}\n");
  ASSERT_EQ(spec.items.size(), 3u);
  const auto &linear = spec.items[0].layer.params;
  EXPECT_EQ(linear[0].init, rt::InitKind::Normal);
  EXPECT_EQ(linear[0].initScale, 0.02);
  EXPECT_EQ(linear[1].init, rt::InitKind::Zeros);
  const auto &norm = spec.items[1].layer.params;
  EXPECT_EQ(norm[0].init, rt::InitKind::Ones);
  EXPECT_EQ(norm[1].init, rt::InitKind::Zeros);
  EXPECT_EQ(spec.items[1].layer.epsilon, 1e-6);
}

TEST(ModelTest, ProfiledLayersNeedNeitherInputsNorLoss) {
  Diagnostics diags;
  auto spec = readModelText(
      "m.yaml",
      "schema_version: 1\n"
      "training: {global_batch: 64, micro_batches: 2}\n"
      "model:\n"
      "  name: m\n"
      "  layers:\n"
      "    - profiled: {forward: 3.4 ms, backward: 6.8 ms, activation: 384 MB, "
      "parameters: 6835 B, samples: 32}\n"
      "    - profiled: {forward: 1 ms, input_grad: 2 ms, weight_grad: 3 ms, "
      "activation: 8 MB, samples: 32}\n"
      "    - profiled: {forward: 1 ms, backward: 2 ms, activation: 0 B, "
      "samples: 32}\n",
      diags);
  ASSERT_TRUE(spec) << diags.text();
  const ProfiledCost &first = spec->items[0].layer.profiled;
  EXPECT_EQ(first.forward, 3400000);
  EXPECT_EQ(first.inputGrad + first.weightGrad, 6800000);
  EXPECT_EQ(first.activation, 384000000);
  EXPECT_EQ(first.parameters, 6835);
  EXPECT_EQ(first.samples, 32);
  EXPECT_TRUE(spec->items[0].layer.inputs.empty());
  EXPECT_EQ(spec->items[1].layer.profiled.weightGrad, 3000000);
  // Without parameters there is no weight gradient.
  EXPECT_EQ(spec->items[2].layer.profiled.inputGrad, 2000000);
  EXPECT_EQ(spec->items[2].layer.profiled.weightGrad, 0);
}

TEST(ModelTest, TextDataSetsTheClasses) {
  Diagnostics diags;
  auto spec = readModelText("m.yaml",
                            "schema_version: 1\n"
                            "training: {global_batch: 4}\n"
                            "data: {kind: text}\n"
                            "model:\n"
                            "  name: m\n"
                            "  inputs:\n"
                            "    tokens: {shape: [8], dtype: int32}\n"
                            "    targets: {shape: [8], dtype: int32}\n"
                            "  layers:\n"
                            "    - embedding: {input: tokens, vocab: 256, "
                            "width: 4}\n"
                            "    - linear: {out: 256}\n"
                            "    - cross_entropy: {target: targets}\n",
                            diags);
  ASSERT_TRUE(spec) << diags.text();
  EXPECT_EQ(spec->inputs[0].classes, 256);
}

} // namespace
