//===- HuggingFaceCosts.cpp - config.json as costs ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Models with layers that do not exist here, as costs: parameters counted from
// the sizes, time as arithmetic by the rate of a device. A product with P
// weights takes 2 P operations a position forward and twice that backward;
// causal attention half of all pairs of positions. Of experts those count that
// a position goes to, and all have parameters (Mixtral: Jiang et al. 2024,
// arXiv 2401.04088; DeepSeek: arXiv 2405.04434, with its latent attention).
//
//===----------------------------------------------------------------------===//
#include "HuggingFaceConfig.h"

#include <fmt/format.h>

#include <cmath>

using namespace takt;

namespace {

constexpr double kElement = 4; // bytes
/// Each is two layers written out; the deepest published models have some 200.
constexpr int64_t kMostBlocks = 4096;

struct Share {
  double parameters = 0; ///< all
  double used = 0;       ///< weights that a position is multiplied with
  double pairs = 0;      ///< multiply-adds for a pair of positions
};

class CostImporter {
public:
  CostImporter(HuggingFaceConfig &config, const ImportOptions &options)
      : config(config), sizes(readDecoderSizes(config, options)) {}

  void read(const std::string &family) {
    config.find("rms_norm_eps");
    config.find("rope_theta");
    config.find("rope_parameters");
    config.find("rope_scaling");
    config.find("initializer_range");
    config.find("hidden_act");
    config.find("attention_dropout");
    config.find("sliding_window");
    config.find("use_sliding_window");
    config.find("layer_types");
    if (family == "qwen3" || family == "mixtral")
      grouped(family == "qwen3");
    else
      latent();
    if (family == "mixtral")
      experts(config.whole("num_local_experts"),
              config.whole("num_experts_per_tok"), 0, sizes.inner);
    else if (family != "qwen3")
      deepSeekExperts();
  }

  Share attention;
  Share dense() const { return mlp(double(sizes.inner)); }
  Share moe;
  /// Blocks before this one are dense, and of the others all but each n-th.
  int64_t firstMoe = 0, moeEvery = 1;
  bool hasMoe = false;
  HuggingFaceConfig &config;
  const DecoderSizes sizes;

private:
  Share mlp(double inner) const {
    const double weights = 3 * double(sizes.width) * inner;
    return {weights, weights, 0};
  }

  void grouped(bool hasHeadNorms) {
    const double q = double(sizes.heads) * double(sizes.headDim);
    const double kv = double(sizes.kvHeads) * double(sizes.headDim);
    if (!config.failed() && sizes.heads % sizes.kvHeads != 0)
      config.error("num_key_value_heads",
                   fmt::format("{} heads of keys and values do not divide {} "
                               "heads",
                               sizes.kvHeads, sizes.heads));
    attention.used = double(sizes.width) * (2 * q + 2 * kv);
    attention.parameters = attention.used;
    if (config.truth("attention_bias", false))
      attention.parameters += q + 2 * kv + double(sizes.width);
    if (hasHeadNorms)
      attention.parameters += 2 * double(sizes.headDim);
    attention.pairs = 2 * q;
  }

  /// Queries, keys and values pass through narrow latent rows, which have
  /// norms.
  void latent() {
    const double width = double(sizes.width), heads = double(sizes.heads);
    const double kvRank = double(config.whole("kv_lora_rank"));
    const double nope = double(config.whole("qk_nope_head_dim"));
    const double rope = double(config.whole("qk_rope_head_dim"));
    const double value = double(config.whole("v_head_dim"));
    const double queries = heads * (nope + rope);
    double norms = kvRank;
    if (config.find("q_lora_rank")) {
      const double rank = double(config.whole("q_lora_rank"));
      attention.used = width * rank + rank * queries;
      norms += rank;
    } else {
      attention.used = width * queries;
    }
    attention.used += width * (kvRank + rope) +
                      kvRank * heads * (nope + value) + heads * value * width;
    attention.parameters = attention.used + norms;
    attention.pairs = heads * (nope + rope + value);
    config.mustNot("attention_bias");
  }

  void experts(int64_t count, int64_t active, int64_t shared, int64_t inner) {
    if (!config.failed() && active > count)
      config.error(
          "num_experts_per_tok",
          fmt::format("a position goes to {} of {} experts", active, count));
    const Share one = mlp(double(inner));
    const double router = double(sizes.width) * double(count);
    moe.parameters = double(count + shared) * one.parameters + router;
    moe.used = double(active + shared) * one.used + router;
    hasMoe = true;
  }

  void deepSeekExperts() {
    firstMoe = config.find("first_k_dense_replace") ? denseBlocks() : 0;
    moeEvery = config.whole("moe_layer_freq", 1);
    for (const char *key :
         {"n_group", "topk_group", "topk_method", "norm_topk_prob",
          "scoring_func", "routed_scaling_factor"})
      config.find(key);
    config.leftOut("num_nextn_predict_layers", "prediction of further tokens");
    const int64_t shared = config.whole("n_shared_experts", 0);
    experts(config.whole("n_routed_experts"),
            config.whole("num_experts_per_tok"), shared,
            config.whole("moe_intermediate_size"));
  }

  int64_t denseBlocks() {
    return config.reader()
        .places()
        .integer(*config.find("first_k_dense_replace"), "first_k_dense_replace",
                 0, int64_t(1) << 24)
        .value_or(0);
  }
};

/// A chain of nodes that each read the one before.
class ChainWriter {
public:
  ChainWriter(Chain &chain, double flops, int64_t positions, int64_t width)
      : chain(chain), flops(flops), positions(double(positions)),
        bytes(double(positions) * double(width) * kElement *
              double(chain.samples)) {}

  void add(std::string name, const Share &share, double more) {
    const double work =
        double(chain.samples) *
        (2 * share.used * positions + share.pairs * positions * positions);
    CostNode node;
    node.name = std::move(name);
    node.loc = {chain.fileName, 1, 1};
    const double forward = std::round(work / flops * 1e9);
    const double parameters = (share.parameters + more) * kElement;
    fine &= 2 * forward <= double(kMaxTime) &&
            parameters <= double(kMaxBytes) && bytes <= double(kMaxBytes);
    if (!fine)
      return;
    node.forward = int64_t(forward);
    node.backward = int64_t(2 * forward);
    node.parameters = int64_t(parameters);
    node.output = int64_t(bytes);
    if (!chain.nodes.empty())
      chain.nodes.back().readers = {int32_t(chain.nodes.size())};
    chain.nodes.push_back(std::move(node));
  }

  bool fine = true;

private:
  Chain &chain;
  double flops, positions, bytes;
};

} // namespace

std::optional<std::string> takt::importConfigCosts(HuggingFaceConfig &config,
                                                   const std::string &family,
                                                   const std::string &fileName,
                                                   const ImportOptions &options,
                                                   Diagnostics &diags) {
  if (options.flops <= 0) {
    diags.error({fileName, 0, 0},
                fmt::format("models of type '{}' become costs: give --flops, "
                            "the rate of a device",
                            family));
    return std::nullopt;
  }
  CostImporter importer(config, options);
  importer.read(family);
  if (config.failed())
    return std::nullopt;
  const DecoderSizes &s = importer.sizes;
  if (s.blocks > kMostBlocks) {
    config.error("num_hidden_layers", fmt::format("{} blocks are more than {}",
                                                  s.blocks, kMostBlocks));
    return std::nullopt;
  }
  Chain chain;
  chain.fileName = fileName;
  settleBatch(options, 8, fileName, diags, chain.samples, chain.microBatches);
  ChainWriter writer(chain, options.flops, s.positions, s.width);
  const double table = double(s.vocab) * double(s.width),
               norm = double(s.width);
  writer.add("tok", {}, table);
  for (int64_t i = 0; i < s.blocks && writer.fine; ++i) {
    const bool isMoe =
        importer.hasMoe && i >= importer.firstMoe && i % importer.moeEvery == 0;
    writer.add(fmt::format("h{}_attn", i), importer.attention, norm);
    writer.add(fmt::format("h{}_{}", i, isMoe ? "experts" : "mlp"),
               isMoe ? importer.moe : importer.dense(), norm);
  }
  writer.add("head", {s.tied ? 0 : table, table, 0}, norm);
  if (!writer.fine) {
    diags.error({fileName, 1, 1},
                "times or sizes of the model are out of range");
    return std::nullopt;
  }
  config.tellUnknown();
  chain.origin = fmt::format(
      "Imported from a Hugging Face configuration of a {} model, whose layers\n"
      "are known by costs only: samples of {} positions, arithmetic at {:.6g}\n"
      "FLOP/s, elements of 4 bytes, experts used evenly.",
      family, s.positions, options.flops);
  return writeChain(chain, diags);
}
