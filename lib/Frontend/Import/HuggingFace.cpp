//===- HuggingFace.cpp - config.json as layers ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The families whose layers all exist here: GPT-2 (learned positions, layer
// norms, GELU in its tanh form), Llama and Mistral (root-mean-square norms,
// rotary positions, grouped attention, SwiGLU) and Qwen2 (the same with biases
// of queries, keys and values).
//
//===----------------------------------------------------------------------===//
#include "HuggingFaceConfig.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

using namespace takt;

namespace {

/// What a model's YAML is made of.
struct ModelText {
  std::string embeddings;  ///< after the token embedding
  std::string block, norm; ///< of a block; before the head
  std::string init;
};

std::string modelText(const DecoderSizes &s, const ModelText &parts,
                      const ImportOptions &options) {
  // Bytes of a text are 256 classes of what may be a larger vocabulary.
  const int64_t classes = options.textData ? 256 : s.vocab;
  return fmt::format(
      "  inputs:\n"
      "    tokens: {{shape: [{0}], dtype: int32, classes: {1}}}\n"
      "    targets: {{shape: [{0}], dtype: int32, classes: {1}}}\n"
      "  layers:\n"
      "    - embedding: {{name: tok, input: tokens, vocab: {2}, width: {3}, "
      "init: {4}}}\n"
      "{5}"
      "    - repeat:\n"
      "        name: h\n"
      "        count: {6}\n"
      "        layers:\n"
      "{7}"
      "{8}"
      "    - linear: {{name: head, out: {2}, bias: false, {9}}}\n"
      "    - cross_entropy: {{name: loss, target: targets}}\n",
      s.positions, classes, s.vocab, s.width, parts.init, parts.embeddings,
      s.blocks, parts.block, parts.norm,
      s.tied ? "tied: tok" : "init: " + parts.init);
}

class Importer {
public:
  Importer(HuggingFaceConfig &config, const ImportOptions &options)
      : config(config), options(options) {}

  std::string gpt2() {
    DecoderSizes s;
    s.width = config.whole("n_embd");
    s.blocks = config.whole("n_layer");
    s.heads = config.whole("n_head");
    s.vocab = config.whole("vocab_size");
    s.inner = config.whole("n_inner", 4 * s.width);
    const int64_t most = config.whole("n_positions");
    s.positions = options.positions.value_or(most);
    if (!config.failed() && (s.positions < 1 || s.positions > most))
      config.error("n_positions",
                   fmt::format("{} positions are not from 1 to the model's {}",
                               s.positions, most));
    s.tied = config.truth("tie_word_embeddings", true);
    const double epsilon =
        config.real("layer_norm_epsilon", {0, 1, true}, 1e-5);
    const std::string activation =
        activationOf("activation_function", "gelu_new");
    config.mustNot("scale_attn_by_inverse_layer_idx");
    config.mustNot("add_cross_attention");
    config.mustNot("scale_attn_weights", "true");
    config.find("reorder_and_upcast_attn");
    for (const char *key : {"attn_pdrop", "embd_pdrop", "resid_pdrop"})
      config.leftOut(key, "dropout");
    checkWidth(s);
    ModelText parts;
    parts.init = init();
    parts.embeddings = fmt::format(
        "    - positional_embedding: {{name: pos, init: {}}}\n", parts.init);
    parts.block = fmt::format(
        "          - residual:\n"
        "              layers:\n"
        "                - layer_norm: {{name: ln1, epsilon: {0}}}\n"
        "                - attention: {{name: attn, heads: {1}, init: {2}}}\n"
        "          - residual:\n"
        "              layers:\n"
        "                - layer_norm: {{name: ln2, epsilon: {0}}}\n"
        "                - linear: {{name: fc, out: {3}, init: {2}}}\n"
        "                - {4}: {{name: act}}\n"
        "                - linear: {{name: proj, out: {5}, init: {2}}}\n",
        epsilon, s.heads, parts.init, s.inner, activation, s.width);
    parts.norm =
        fmt::format("    - layer_norm: {{name: lnf, epsilon: {}}}\n", epsilon);
    return modelText(s, parts, options);
  }

  /// Llama and its relatives; `qkvBias`: queries, keys and values have a bias
  /// and the projection has none, whatever the file says.
  std::string llama(bool qkvBias) {
    const DecoderSizes s = readDecoderSizes(config, options);
    const double epsilon = config.real("rms_norm_eps", {0, 1, true}, 1e-6);
    const double theta = rotaryBase();
    const bool bias = qkvBias || config.truth("attention_bias", false);
    const bool mlpBias = config.truth("mlp_bias", false);
    const std::string activation = gateOf("hidden_act");
    checkWindow(s, qkvBias);
    config.mustNot("rope_scaling");
    config.mustNot("partial_rotary_factor", "1.0");
    checkLayerTypes();
    config.leftOut("attention_dropout", "dropout");
    ModelText parts;
    parts.init = init();
    parts.block = fmt::format(
        "          - residual:\n"
        "              layers:\n"
        "                - rms_norm: {{name: n1, epsilon: {0}}}\n"
        "                - attention: {{name: attn, heads: {1}, kv_heads: {2}, "
        "head_dim: {3}, bias: {4}, proj_bias: {5}, rope_theta: {6}, init: "
        "{7}}}\n"
        "          - residual:\n"
        "              layers:\n"
        "                - rms_norm: {{name: n2, epsilon: {0}}}\n"
        "                - gated_mlp: {{name: mlp, width: {8}, activation: "
        "{9}, "
        "bias: {10}, init: {7}}}\n",
        epsilon, s.heads, s.kvHeads, s.headDim, bias, bias && !qkvBias, theta,
        parts.init, s.inner, activation, mlpBias);
    parts.norm =
        fmt::format("    - rms_norm: {{name: n, epsilon: {}}}\n", epsilon);
    return modelText(s, parts, options);
  }

private:
  std::string init() {
    return fmt::format("normal({})",
                       config.real("initializer_range", {0, 1e6, true}, 0.02));
  }

  std::string activationOf(const std::string &key, const char *otherwise) {
    const std::string word = config.word(key, otherwise);
    if (word == "gelu_new" || word == "gelu_pytorch_tanh" ||
        word == "gelu_fast")
      return "gelu_tanh";
    if (word == "gelu" || word == "relu")
      return word;
    config.error(key, fmt::format("no activation '{}' here; there are gelu, "
                                  "gelu_new, gelu_pytorch_tanh and relu",
                                  quotable(word)));
    return "gelu";
  }

  std::string gateOf(const std::string &key) {
    const std::string word = config.word(key, "silu");
    if (word == "silu" || word == "swish")
      return "silu";
    if (word == "gelu")
      return word;
    if (word == "gelu_new" || word == "gelu_pytorch_tanh")
      return "gelu_tanh";
    config.error(key, fmt::format("no activation '{}' here; there are silu, "
                                  "gelu, gelu_new and gelu_pytorch_tanh",
                                  quotable(word)));
    return "silu";
  }

  void checkWidth(const DecoderSizes &s) {
    if (!config.failed() && s.width % s.heads != 0)
      config.error("n_head", fmt::format("{} heads do not divide the width {}",
                                         s.heads, s.width));
  }

  /// "rope_theta", or in newer files "rope_parameters" with a type.
  double rotaryBase() {
    double theta = config.real("rope_theta", {0, 1e12, true}, 1e4);
    const YamlNode *node = config.find("rope_parameters");
    if (!node || !config.reader().places().map(*node, "rope_parameters"))
      return theta;
    for (const YamlNode::Entry &entry : node->entries) {
      Reader &reader = config.reader().places();
      if (entry.key == "rope_theta")
        theta = reader.real(*entry.value, entry.key, {0, 1e12, true})
                    .value_or(theta);
      else if (entry.key != "rope_type" || entry.value->scalar != "default")
        reader.error(reader.loc(entry),
                     fmt::format("'{}' in 'rope_parameters' asks for what the "
                                 "layers here do not compute",
                                 quotable(entry.key)));
    }
    return theta;
  }

  /// A window as long as the sample changes nothing. Qwen2 has a switch for it.
  void checkWindow(const DecoderSizes &s, bool hasSwitch) {
    const YamlNode *node = config.find("sliding_window");
    const bool isOn = !hasSwitch || config.truth("use_sliding_window", false);
    if (!node || !isOn)
      return;
    const auto window = config.reader().places().integer(
        *node, "sliding_window", 1, int64_t(1) << 40);
    if (window && *window < s.positions)
      config.error("sliding_window",
                   fmt::format("a window of {} is shorter than the {} "
                               "positions of a sample; attention here sees all "
                               "(--positions)",
                               *window, s.positions));
  }

  void checkLayerTypes() {
    const YamlNode *node = config.find("layer_types");
    const auto *types =
        node ? config.reader().places().list(*node, "layer_types", true)
             : nullptr;
    for (size_t i = 0; types && i < types->size(); ++i)
      if ((*types)[i]->scalar != "full_attention") {
        config.reader().places().error(
            *(*types)[i], "only layers of the type 'full_attention' are here");
        return;
      }
  }

  HuggingFaceConfig &config;
  const ImportOptions &options;
};

} // namespace

std::optional<std::string> takt::importHuggingFace(const std::string &text,
                                                   const std::string &fileName,
                                                   const ImportOptions &options,
                                                   Diagnostics &diags) {
  JsonReader json(fileName, diags);
  const YamlNodePtr root = json.parse(text);
  const YamlNode *type = root ? json.require(*root, "model_type") : nullptr;
  if (!type)
    return std::nullopt;
  const std::string family = type->scalar;
  HuggingFaceConfig config(*root, json);
  int64_t samples = 0, microBatches = 0;
  if (!settleBatch(options, 8, fileName, diags, samples, microBatches))
    return std::nullopt;
  const std::vector<std::string> costs = {"qwen3", "mixtral", "deepseek_v2",
                                          "deepseek_v3"};
  if (std::find(costs.begin(), costs.end(), family) != costs.end())
    return importConfigCosts(config, family, fileName, options, diags);
  Importer importer(config, options);
  std::string layers;
  if (family == "gpt2")
    layers = importer.gpt2();
  else if (family == "llama" || family == "mistral")
    layers = importer.llama(false);
  else if (family == "qwen2")
    layers = importer.llama(true);
  else
    config.error("model_type",
                 fmt::format("no importer for models of type '{}'; there are "
                             "gpt2, llama, mistral, qwen2, {}",
                             quotable(family), fmt::join(costs, ", ")));
  if (config.failed())
    return std::nullopt;
  config.tellUnknown();
  return checkedModel(
      fmt::format(
          "# Imported from a Hugging Face configuration of a {} model.\n"
          "schema_version: 1\n"
          "model:\n"
          "  name: {}\n"
          "{}"
          "training:\n"
          "  global_batch: {}\n"
          "  micro_batches: {}\n"
          "  optimizer: {{kind: adamw, learning_rate: 3e-4, betas: "
          "[0.9, 0.95], epsilon: 1e-8, weight_decay: 0.1}}\n"
          "data: {{kind: {}}}\n",
          family, modelName(fileName), layers, samples * microBatches,
          microBatches, options.textData ? "text" : "synthetic"),
      fileName, diags);
}
