//===- HuggingFaceConfig.h - keys of a config.json --------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads keys with places and remembers which, so that what was not understood
// can be told. A null counts as a key that is not there.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Importers.h"

namespace takt {

class HuggingFaceConfig {
public:
  HuggingFaceConfig(const YamlNode &root, JsonReader &json)
      : root(root), json(json) {}

  /// A positive number; without `otherwise` the key is required.
  int64_t whole(const std::string &key,
                std::optional<int64_t> otherwise = std::nullopt);
  double real(const std::string &key, RealRange range, double otherwise);
  bool truth(const std::string &key, bool otherwise);
  std::string word(const std::string &key, const std::string &otherwise);
  /// The node, or null; counts as read.
  const YamlNode *find(const std::string &key);

  /// What a model may ask for and the layers here do not do: an error unless
  /// the key is absent, null, false or as given.
  void mustNot(const std::string &key, const std::string &unless = "false");
  /// Settings that change training but not its costs, when above zero.
  void leftOut(const std::string &key, const std::string &what);
  /// A warning for each key that nobody has read.
  void tellUnknown();
  void error(const std::string &key, std::string message);

  bool failed() const { return json.failed(); }
  JsonReader &reader() { return json; }

private:
  const YamlNode &root;
  JsonReader &json;
  std::set<std::string> read;
};

/// The kinds of a block's inner sizes that the families share.
struct DecoderSizes {
  int64_t width = 0, blocks = 0, heads = 0, kvHeads = 0, headDim = 0;
  int64_t inner = 0, vocab = 0, positions = 0;
  bool tied = false;
};

/// hidden_size, num_hidden_layers, ... and `tie_word_embeddings`; without
/// num_key_value_heads as many as heads, without head_dim the width by the
/// heads.
DecoderSizes readDecoderSizes(HuggingFaceConfig &config,
                              const ImportOptions &options);

/// Qwen3, Mixtral and DeepSeek: layers known by costs only.
std::optional<std::string> importConfigCosts(HuggingFaceConfig &config,
                                             const std::string &family,
                                             const std::string &fileName,
                                             const ImportOptions &options,
                                             Diagnostics &diags);

} // namespace takt
