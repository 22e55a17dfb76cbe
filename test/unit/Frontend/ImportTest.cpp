//===- ImportTest.cpp - what others wrote, as models ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every published input becomes a model; totals against the inputs and against
// published numbers of parameters; crossing tensors against a count cut by cut.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Import.h"

#include "Messages.h"
#include "takt/Support/TextFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <tuple>

using namespace takt;
using namespace takt::test;

namespace {

std::string dataText(const std::string &name) {
  Diagnostics diags;
  return readTextFile(std::string(TAKT_TEST_DATA) + "/" + name, diags)
      .value_or("");
}

/// The graph of an imported file; fails the test where it is none.
std::optional<Graph> graphOf(const std::string &text,
                             const ImportOptions &options) {
  const std::optional<ImportFormat> format = detectImportFormat(text);
  if (!format) {
    ADD_FAILURE() << "no format was found";
    return std::nullopt;
  }
  Diagnostics diags;
  const auto yaml = importYaml(*format, text, "x.json", options, diags);
  EXPECT_TRUE(yaml) << diags.text();
  const auto spec =
      yaml ? readModelText("imported", *yaml, diags) : std::nullopt;
  if (!spec)
    return std::nullopt;
  Graph graph = buildGraph(*spec);
  EXPECT_EQ(graph.check().value_or(""), "");
  return graph;
}

double profiledParameters(const Graph &graph) {
  double bytes = 0;
  for (const Layer &layer : graph.layers)
    bytes += double(layer.profiled.parameters);
  return bytes / 4;
}

Messages refusal(ImportFormat format, const std::string &text,
                 const ImportOptions &options = {}) {
  Diagnostics diags;
  EXPECT_FALSE(importYaml(format, text, "x.json", options, diags));
  Messages messages;
  for (const Diagnostic &fault : diags.all())
    messages.push_back(fmt::format("{}:{}: {}", fault.loc.line,
                                   fault.loc.column, fault.message));
  return messages;
}

class Configurations
    : public testing::TestWithParam<std::pair<const char *, double>> {};

TEST_P(Configurations, HaveThePublishedParameters) {
  const auto [name, expected] = GetParam();
  ImportOptions options;
  options.flops = 1e15;
  const auto graph =
      graphOf(dataText(fmt::format("huggingface/{}.json", name)), options);
  ASSERT_TRUE(graph);
  EXPECT_NEAR(profiledParameters(*graph) / expected, 1, 0.002);
}

INSTANTIATE_TEST_SUITE_P(Published, Configurations,
                         testing::Values(std::pair{"mixtral-8x7b", 46.70e9},
                                         std::pair{"deepseek-v2", 235.7e9},
                                         std::pair{"deepseek-v3", 671.0e9},
                                         std::pair{"qwen3-8b", 8.19e9}));

TEST(ImportHuggingFace, TimeIsArithmeticByTheRate) {
  ImportOptions options;
  options.flops = 1e12;
  options.positions = 8;
  options.samples = 3;
  const auto graph = graphOf(
      R"({"model_type": "qwen3", "hidden_size": 16, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6,
          "intermediate_size": 40, "vocab_size": 1000,
          "max_position_embeddings": 64})",
      options);
  ASSERT_TRUE(graph && graph->layers.size() == 4);
  // Three samples of 8 positions. Attention: 16 * (24 + 2 * 12 + 24) weights
  // and 8 * 8 pairs (half of them twice) of 2 * 24 elements.
  const double attention = 3 * (2 * 16 * 72 * 8 + 64 * 48);
  EXPECT_EQ(graph->layers[1].profiled.forward,
            std::llround(attention / 1e12 * 1e9));
  const double mlp = 3 * 2.0 * 3 * 16 * 40 * 8;
  EXPECT_EQ(graph->layers[2].profiled.forward, std::llround(mlp / 1e12 * 1e9));
  EXPECT_EQ(graph->layers[2].profiled.inputGrad +
                graph->layers[2].profiled.weightGrad,
            2 * graph->layers[2].profiled.forward);
  EXPECT_EQ(graph->layers[1].profiled.activation, 3 * 8 * 16 * 4);
}

TEST(ImportHuggingFace, LayersHaveThePublishedSizes) {
  // GPT-2 with 124 million parameters, Llama 2 with 6.74 billion, Qwen2 with
  // 494 million.
  const auto parameters = [](const std::string &text) {
    const auto graph = graphOf(text, {});
    return graph ? graph->parameterCount() : 0;
  };
  EXPECT_EQ(parameters(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12,
      "n_head": 12, "n_positions": 1024, "vocab_size": 50257})"),
            124439808);
  EXPECT_EQ(parameters(R"({"model_type": "llama", "hidden_size": 4096,
      "num_hidden_layers": 32, "num_attention_heads": 32,
      "intermediate_size": 11008, "max_position_embeddings": 4096,
      "vocab_size": 32000})"),
            6738415616);
  EXPECT_EQ(parameters(R"({"model_type": "qwen2", "hidden_size": 896,
      "num_hidden_layers": 24, "num_attention_heads": 14,
      "num_key_value_heads": 2, "intermediate_size": 4864,
      "max_position_embeddings": 32768, "tie_word_embeddings": true,
      "vocab_size": 151936})"),
            494032768);
}

TEST(ImportHuggingFace, WhatIsNotComputedIsRefusedWhereItStands) {
  const auto llama = [](const std::string &more) {
    return refusal(ImportFormat::HuggingFace,
                   "{\"model_type\": \"llama\", \"hidden_size\": 8,\n"
                   "\"num_hidden_layers\": 1, \"num_attention_heads\": 2,\n"
                   "\"intermediate_size\": 8, \"vocab_size\": 9,\n"
                   "\"max_position_embeddings\": 16,\n" +
                       more + "}");
  };
  EXPECT_EQ(llama("\"rope_scaling\": {\"factor\": 8}"),
            Messages{"5:17: 'rope_scaling' is a setting, which the layers here "
                     "do not compute"});
  EXPECT_EQ(llama("\"hidden_act\": \"mish\""),
            Messages{"5:15: no activation 'mish' here; there are silu, gelu, "
                     "gelu_new and gelu_pytorch_tanh"});
  EXPECT_EQ(llama("\"sliding_window\": 4"),
            Messages{"5:19: a window of 4 is shorter than the 16 positions of "
                     "a sample; attention here sees all (--positions)"});
  EXPECT_EQ(llama("\"layer_types\": [\"sliding_attention\"]"),
            Messages{"5:17: only layers of the type 'full_attention' are "
                     "here"});
  EXPECT_EQ(llama("\"rope_parameters\": {\"rope_type\": \"yarn\"}"),
            Messages{"5:21: 'rope_type' in 'rope_parameters' asks for what the "
                     "layers here do not compute"});
  EXPECT_EQ(llama("\"head_dim\": \"8\"").size(), 1u);
  EXPECT_EQ(refusal(ImportFormat::HuggingFace, "{\"model_type\": \"bert\"}"),
            Messages{"1:16: no importer for models of type 'bert'; there are "
                     "gpt2, llama, mistral, qwen2, qwen3, mixtral, "
                     "deepseek_v2, deepseek_v3"});
  EXPECT_EQ(refusal(ImportFormat::HuggingFace, "{\"model_type\": \"qwen3\"}"),
            Messages{"0:0: models of type 'qwen3' become costs: give --flops, "
                     "the rate of a device"});
}

TEST(ImportHuggingFace, BlocksAreWrittenOutWithinLimits) {
  ImportOptions options;
  options.flops = 1e12;
  EXPECT_EQ(refusal(ImportFormat::HuggingFace,
                    R"({"model_type": "qwen3", "hidden_size": 8,
 "num_hidden_layers": 16777216, "num_attention_heads": 2,
 "intermediate_size": 8, "vocab_size": 9, "max_position_embeddings": 16})",
                    options),
            Messages{"2:23: 16777216 blocks are more than 4096"});
}

TEST(ImportHuggingFace, UnknownKeysAreListed) {
  Diagnostics diags;
  EXPECT_TRUE(importYaml(ImportFormat::HuggingFace,
                         "{\"model_type\": \"gpt2\", \"n_embd\": 8,\n"
                         " \"n_layer\": 1, \"n_head\": 2, \"n_positions\": 4,\n"
                         " \"vocab_size\": 9, \"attn_pdrop\": 0.1,\n"
                         " \"n_wings\": 2}",
                         "x.json", {}, diags));
  EXPECT_EQ(diags.errorCount(), 0u);
  ASSERT_EQ(diags.all().size(), 2u);
  EXPECT_EQ(diags.all()[0].message, "'attn_pdrop' is 0.1: dropout is left out");
  EXPECT_EQ(diags.all()[1].message,
            "unknown key 'n_wings' has no part in the import");
  EXPECT_EQ(diags.all()[1].loc.line, 4);
}

class Placements : public testing::TestWithParam<const char *> {};

TEST_P(Placements, TimesAndCrossingTensors) {
  const std::string text =
      dataText(fmt::format("dnn-partitioning/{}.json", GetParam()));
  const auto graph = graphOf(text, {});
  ASSERT_TRUE(graph);
  const nlohmann::json input = nlohmann::json::parse(text);
  double time = 0, imported = 0, size = 0;
  std::set<int64_t> colours;
  for (const auto &node : input["nodes"]) {
    const bool runs = node["supportedOnFpga"].is_boolean()
                          ? node["supportedOnFpga"].get<bool>()
                          : node["supportedOnFpga"].get<double>() != 0;
    time += node[runs ? "fpgaLatency" : "cpuLatency"].get<double>();
    size += node["size"].get<double>();
    // A class of its own where none is stated.
    const int64_t id = node["id"].get<int64_t>();
    colours.insert(node.value("colorClass", -1 - id));
  }
  for (const Layer &layer : graph->layers)
    imported += double(layer.profiled.forward + layer.profiled.inputGrad +
                       layer.profiled.weightGrad);
  // Classes that read each other are one layer.
  EXPECT_LE(graph->layers.size(), colours.size());
  EXPECT_GE(2 * graph->layers.size(), colours.size());
  EXPECT_NEAR(imported / 1e6, time, 1e-3);
  EXPECT_NEAR(profiledParameters(*graph) * 4 / size, 1, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Published, Placements,
                         testing::Values("LayerGraphs/bert24_inference",
                                         "LayerGraphs/bert24_training",
                                         "LayerGraphs/gnmt_training",
                                         "LayerGraphs/inceptionv3_training",
                                         "LayerGraphs/resnet50_inference",
                                         "OperatorGraphs/bert_l-3_inference",
                                         "OperatorGraphs/bert_l-3_training",
                                         "OperatorGraphs/resnet50_training"));

TEST(ImportPlacement, TensorsAreCarriedAcrossCuts) {
  // 0 -> 1 -> 2 -> 3 and 0 -> 3: what 0 makes crosses three cuts.
  std::string nodes, edges;
  for (int i = 0; i < 4; ++i)
    nodes += fmt::format("{}{{\"id\": {}, \"supportedOnFpga\": 1, "
                         "\"fpgaLatency\": 1, \"cpuLatency\": 9, "
                         "\"isBackwardNode\": 0, \"size\": 4}}",
                         i ? ", " : "", i);
  for (const auto &[from, to, cost] :
       {std::tuple{0, 1, 5}, {1, 2, 7}, {2, 3, 1}, {0, 3, 5}})
    edges += fmt::format("{}{{\"sourceId\": {}, \"destId\": {}, \"cost\": {}}}",
                         edges.empty() ? "" : ", ", from, to, cost);
  const auto graph = graphOf(fmt::format("{{\"maxFPGAs\": 2, \"maxCPUs\": 0, "
                                         "\"maxSizePerFPGA\": 100, \"nodes\": "
                                         "[{}], \"edges\": [{}]}}",
                                         nodes, edges),
                             {});
  ASSERT_TRUE(graph && graph->layers.size() == 4);
  const int64_t expected[] = {5, 12, 6, 0};
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(graph->layers[i].profiled.activation, expected[i] * 1000000);
}

TEST(ImportPlacement, ClassesThatReadEachOtherAreOneLayer) {
  // Classes 0: operators 0 and 2, 1: operator 1, 2: operator 3; 0 1 2 3 in a
  // row.
  std::string nodes, edges;
  for (int i = 0; i < 4; ++i)
    nodes += fmt::format("{}{{\"id\": {}, \"supportedOnFpga\": true, "
                         "\"fpgaLatency\": {}, \"cpuLatency\": 9, "
                         "\"isBackwardNode\": false, \"colorClass\": {}, "
                         "\"size\": 4}}",
                         i ? ", " : "", i, i + 1, i == 3 ? 2 : i % 2);
  for (int i = 0; i < 3; ++i)
    edges += fmt::format("{}{{\"sourceId\": {}, \"destId\": {}, \"cost\": {}}}",
                         i ? ", " : "", i, i + 1, i + 1);
  const auto graph = graphOf(fmt::format("{{\"maxFPGAs\": 2, "
                                         "\"maxSizePerFPGA\": 100, \"nodes\": "
                                         "[{}], \"edges\": [{}]}}",
                                         nodes, edges),
                             {});
  ASSERT_TRUE(graph && graph->layers.size() == 2);
  EXPECT_EQ(graph->layers[0].profiled.forward, 6000000);
  EXPECT_EQ(graph->layers[0].profiled.activation, 3 * 1000000 + 1000000);
  EXPECT_EQ(graph->layers[1].profiled.forward, 4000000);
}

TEST(ImportPlacement, FaultsHaveTheirPlaces) {
  const std::string node = "{\"id\": 1, \"supportedOnFpga\": 1, "
                           "\"fpgaLatency\": 1, \"cpuLatency\": 1, "
                           "\"isBackwardNode\": 0, \"size\": 1}";
  const auto faults = [](const std::string &nodes, const std::string &edges) {
    return refusal(ImportFormat::DnnPartitioning,
                   "{\"maxFPGAs\": 1, \"maxSizePerFPGA\": 9,\n\"nodes\": [\n" +
                       nodes + "],\n\"edges\": [" + edges + "]}");
  };
  EXPECT_EQ(faults(node + ",\n" + node, ""),
            Messages{"4:1: 'id' 1 is given twice"});
  EXPECT_EQ(faults(node, "{\"sourceId\": 1, \"destId\": 8, \"cost\": 0}"),
            Messages{"4:11: there is no node 8"});
  EXPECT_EQ(faults("{\"id\": 1}", "").front(),
            "3:1: 'isBackwardNode' is not here");
  EXPECT_EQ(faults("", ""), Messages{"1:1: the file has no layers"});
  EXPECT_EQ(refusal(ImportFormat::DnnPartitioning, "{\"nodes\": [").size(), 1u);
}

TEST(ImportPiper, TotalsOfTheSmallestInput) {
  ImportOptions options;
  options.timeUnit = 1e6;
  const std::string text = dataText("piper/gnmt.json");
  const auto graph = graphOf(text, options);
  ASSERT_TRUE(graph);
  const nlohmann::json input = nlohmann::json::parse(text);
  double time = 0, imported = 0, parameters = 0;
  for (const auto &node : input["nodes"]) {
    time += node["TMPCs"]["1"][0]["timePerSample"].get<double>();
    parameters += node["TMPCs"]["1"][0]["parameterSize"].get<double>();
  }
  for (const Layer &layer : graph->layers)
    imported += double(layer.profiled.forward + layer.profiled.inputGrad +
                       layer.profiled.weightGrad);
  EXPECT_EQ(graph->layers.size(), input["nodes"].size());
  EXPECT_NEAR(imported / 1e6, time, 1e-3);
  EXPECT_NEAR(profiledParameters(*graph) * 4, parameters, 64);
  EXPECT_EQ(refusal(ImportFormat::Piper, text),
            Messages{"0:0: the file does not state its unit of time: give "
                     "--time-unit s or ms"});
}

TEST(ImportAlpa, CutsBecomeConstraints) {
  ImportOptions options;
  options.plan = "760M";
  const std::string text = dataText("alpa/plans_gpt_moe.json");
  Diagnostics diags;
  const auto yaml =
      importYaml(ImportFormat::Alpa, text, "x.json", options, diags);
  ASSERT_TRUE(yaml) << diags.text();
  const auto spec = readModelText("imported", *yaml, diags);
  ASSERT_TRUE(spec) << diags.text();
  // Six slices of 24 blocks, three a stage.
  std::vector<std::string> pins;
  for (const ConstraintSpec &constraint : spec->constraints)
    if (constraint.kind == ConstraintKind::Pin)
      pins.push_back(
          fmt::format("{} {}", constraint.names[0], constraint.number));
  EXPECT_EQ(pins,
            (std::vector<std::string>{"h.0 0", "h.11 0", "h.12 1", "h.23 1"}));
  options.plan = "9B";
  EXPECT_EQ(refusal(ImportFormat::Alpa, text, options),
            Messages{"1:1: there is no GPT plan '9B'; there are 350M, 760M, "
                     "1.3B, 2.6B, 6.7B, 15B, 39B"});
}

TEST(ImportFormats, AreTold) {
  EXPECT_EQ(detectImportFormat(dataText("dapple/vgg-19-pbs-32.txt")),
            ImportFormat::Dapple);
  EXPECT_EQ(detectImportFormat(dataText("pipedream/alexnet.txt")),
            ImportFormat::Dapple);
  EXPECT_EQ(detectImportFormat(dataText("piper/gnmt.json")),
            ImportFormat::Piper);
  EXPECT_EQ(detectImportFormat(dataText("alpa/plans_gpt_moe.json")),
            ImportFormat::Alpa);
  EXPECT_EQ(detectImportFormat(dataText("huggingface/gpt2-tiny.json")),
            ImportFormat::HuggingFace);
  EXPECT_EQ(detectImportFormat("{\"TMPCs\": 1, \"maxFPGAs\": 2}"),
            std::nullopt);
  EXPECT_EQ(detectImportFormat("model: {}"), std::nullopt);
  EXPECT_EQ(detectImportFormat(" \n"), std::nullopt);
}

} // namespace
