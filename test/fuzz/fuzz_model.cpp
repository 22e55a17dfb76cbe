//===- fuzz_model.cpp - model files --------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// YAML that may be a model file.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "yaml_checks.h"

#include "takt/Frontend/Read.h"

using namespace takt;

std::vector<std::string> fuzz::dictionary() {
  std::vector<std::string> words = yamlWords(modelKeys());
  for (const KeyTable &table : modelWords())
    words.insert(words.end(), table.keys.begin(), table.keys.end());
  return words;
}

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  std::string text = asText(bytes, size);
  Diagnostics diags;
  std::optional<ModelSpec> spec = readModelText("mutant", text, diags);
  if (!spec) {
    checkRefusal(diags, "mutant", text);
    return 0;
  }
  require(!diags.hasErrors(), "what is accepted has no faults");
  Graph graph = buildGraph(*spec);
  if (std::optional<std::string> fault = graph.check())
    broken("an accepted model is a sound graph, but: " + *fault);
  require(graph.layers.size() <= static_cast<size_t>(kMaxLayers),
          "a model has no more layers than the limit");
  require(graph.parameterCount() >= 0, "parameters can be counted");
  require(spec->training.globalBatch >= 1 && spec->training.microBatches >= 1 &&
              spec->training.globalBatch % spec->training.microBatches == 0,
          "the batch divides into micro-batches");
  return 1;
}
