//===- fuzz_import.cpp - JSON that others wrote ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Text that may be an input of another planner, a plan, or a configuration of a
// model. Each importer of JSON reads it, whichever it was meant for; what one
// writes must be a model that the model reader takes.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "yaml_checks.h"

#include "takt/Frontend/Import.h"
#include "takt/Frontend/PiperInput.h"
#include "takt/Frontend/Read.h"

using namespace takt;

std::vector<std::string> fuzz::dictionary() {
  std::vector<std::string> words = yamlWords({});
  for (const char *key : {"nodes",
                          "edges",
                          "id",
                          "sourceId",
                          "destId",
                          "cost",
                          "size",
                          "colorClass",
                          "isBackwardNode",
                          "supportedOnFpga",
                          "fpgaLatency",
                          "maxFPGAs",
                          "TMPCs",
                          "timePerSample",
                          "memoryUsageA",
                          "syncTimeFw",
                          "maxMemoryPerDevice",
                          "bandwidth",
                          "mbsInBatch",
                          "communicationCost",
                          "gpt",
                          "gpt_specs",
                          "stage_layer_ids",
                          "auto_layers",
                          "model_type",
                          "hidden_size",
                          "num_hidden_layers",
                          "num_attention_heads",
                          "num_key_value_heads",
                          "head_dim",
                          "rope_scaling",
                          "sliding_window",
                          "q_lora_rank",
                          "first_k_dense_replace",
                          "tie_word_embeddings"})
    words.push_back("\"" + std::string(key) + "\": ");
  for (const char *word :
       {"gpt2", "llama", "qwen2", "qwen3", "mixtral", "deepseek_v3", "vanilla"})
    words.push_back("\"" + std::string(word) + "\"");
  words.insert(words.end(), {"1e18", "-1", "16777216", "9223372036854775807",
                             "1e-300", "{}", "[]", "[[0]]", "\\u0000"});
  return words;
}

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  const std::string text = asText(bytes, size);
  ImportOptions options;
  options.timeUnit = 1e6;
  options.flops = 1e12;
  int taken = 0;
  for (const ImportFormat format :
       {ImportFormat::DnnPartitioning, ImportFormat::Piper, ImportFormat::Alpa,
        ImportFormat::HuggingFace}) {
    Diagnostics diags;
    const std::optional<std::string> yaml =
        importYaml(format, text, "mutant", options, diags);
    if (!yaml) {
      checkRefusal(diags, "mutant", text);
      continue;
    }
    require(!diags.hasErrors(), "what is accepted has no faults");
    Diagnostics again;
    std::optional<ModelSpec> spec = readModelText("imported", *yaml, again);
    if (!spec)
      broken("an imported model is a good model file, but: " + again.text());
    int64_t layers = 0;
    for (const ItemSpec &item : spec->items)
      layers += item.repeat
                    ? item.repeat->count * int64_t(item.repeat->body.size())
                    : 1;
    if (layers <= 2000) // the reader has checked larger ones
      if (std::optional<std::string> fault = buildGraph(*spec).check())
        broken("an imported model is a sound graph, but: " + *fault);
    taken = 1;
  }
  Diagnostics diags;
  if (const auto problem = readPiperInput(text, "mutant", diags)) {
    if (std::optional<std::string> fault = problem->check())
      broken("an input of Piper that is read is sound, but: " + *fault);
    taken = 1;
  } else {
    checkRefusal(diags, "mutant", text);
  }
  detectImportFormat(text);
  return taken;
}
