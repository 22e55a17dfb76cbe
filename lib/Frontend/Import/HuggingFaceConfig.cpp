//===- HuggingFaceConfig.cpp - keys of a config.json ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The keys that concern neither shapes nor costs are listed here; all others
// must be read by some family's importer or are told as unknown.
//
//===----------------------------------------------------------------------===//
#include "HuggingFaceConfig.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

using namespace takt;

/// Widths and counts up to here keep products of four inside double and int64.
static constexpr int64_t kMostSize = int64_t(1) << 24;

static const std::set<std::string> &keysWithoutEffect() {
  static const std::set<std::string> keys = {"_name_or_path",
                                             "architectures",
                                             "attn_implementation",
                                             "auto_map",
                                             "aux_loss_alpha",
                                             "bos_token_id",
                                             "dtype",
                                             "eos_token_id",
                                             "ep_size",
                                             "gradient_checkpointing",
                                             "max_window_layers",
                                             "model_type",
                                             "n_ctx",
                                             "output_past",
                                             "output_router_logits",
                                             "pad_token_id",
                                             "pretraining_tp",
                                             "quantization_config",
                                             "return_dict",
                                             "router_aux_loss_coef",
                                             "router_jitter_noise",
                                             "seq_aux",
                                             "summary_activation",
                                             "summary_first_dropout",
                                             "summary_proj_to_labels",
                                             "summary_type",
                                             "summary_use_proj",
                                             "task_specific_params",
                                             "tokenizer_class",
                                             "torch_dtype",
                                             "transformers_version",
                                             "unk_token_id",
                                             "use_cache"};
  return keys;
}

const YamlNode *HuggingFaceConfig::find(const std::string &key) {
  read.insert(key);
  const YamlNode *node = JsonReader::find(root, key);
  const bool isNull = !node || node->kind == YamlNode::Kind::Null ||
                      (node->kind == YamlNode::Kind::Scalar && !node->quoted &&
                       node->scalar == "null");
  return isNull ? nullptr : node;
}

void HuggingFaceConfig::error(const std::string &key, std::string message) {
  const YamlNode *node = JsonReader::find(root, key);
  json.places().error(node ? *node : root, std::move(message));
}

int64_t HuggingFaceConfig::whole(const std::string &key,
                                 std::optional<int64_t> otherwise) {
  const YamlNode *node = find(key);
  if (node)
    return json.places().integer(*node, key, 1, kMostSize).value_or(1);
  if (!otherwise)
    json.places().error(root, fmt::format("'{}' is not here", key));
  return otherwise.value_or(1);
}

double HuggingFaceConfig::real(const std::string &key, RealRange range,
                               double otherwise) {
  const YamlNode *node = find(key);
  return node ? json.places().real(*node, key, range).value_or(otherwise)
              : otherwise;
}

bool HuggingFaceConfig::truth(const std::string &key, bool otherwise) {
  const YamlNode *node = find(key);
  return node ? json.places().truth(*node, key).value_or(otherwise) : otherwise;
}

std::string HuggingFaceConfig::word(const std::string &key,
                                    const std::string &otherwise) {
  const YamlNode *node = find(key);
  return node ? json.places().text(*node, key).value_or(otherwise) : otherwise;
}

void HuggingFaceConfig::mustNot(const std::string &key,
                                const std::string &unless) {
  const YamlNode *node = find(key);
  if (!node || (node->kind == YamlNode::Kind::Scalar &&
                (node->scalar == "false" || node->scalar == unless)))
    return;
  std::string value = node->kind == YamlNode::Kind::Scalar
                          ? fmt::format("'{}'", quotable(node->scalar))
                          : std::string("a setting");
  json.places().error(*node, fmt::format("'{}' is {}, which the layers here do "
                                         "not compute",
                                         key, value));
}

void HuggingFaceConfig::leftOut(const std::string &key,
                                const std::string &what) {
  const YamlNode *node = find(key);
  if (!node)
    return;
  const double value = json.places().real(*node, key, {0, 1e9}).value_or(0);
  if (value > 0)
    json.places().diagnostics().warning(
        json.places().loc(*node),
        fmt::format("'{}' is {}: {} is left out", key, value, what));
}

void HuggingFaceConfig::tellUnknown() {
  for (const YamlNode::Entry &entry : root.entries)
    if (!read.count(entry.key) && !keysWithoutEffect().count(entry.key))
      json.places().diagnostics().warning(
          json.places().loc(entry),
          fmt::format("unknown key '{}' has no part in the import",
                      quotable(entry.key)));
}

DecoderSizes takt::readDecoderSizes(HuggingFaceConfig &config,
                                    const ImportOptions &options) {
  DecoderSizes s;
  s.width = config.whole("hidden_size");
  s.blocks = config.whole("num_hidden_layers");
  s.heads = config.whole("num_attention_heads");
  s.kvHeads = config.whole("num_key_value_heads", s.heads);
  s.headDim = config.whole("head_dim", std::max<int64_t>(s.width / s.heads, 1));
  s.inner = config.whole("intermediate_size");
  s.vocab = config.whole("vocab_size");
  const int64_t most = config.whole("max_position_embeddings");
  s.positions = options.positions.value_or(most);
  if (!config.failed() && (s.positions < 1 || s.positions > most))
    config.error("max_position_embeddings",
                 fmt::format("{} positions are not from 1 to the model's {}",
                             s.positions, most));
  s.tied = config.truth("tie_word_embeddings", false);
  return s;
}
