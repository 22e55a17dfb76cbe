//===- Import.h - what others wrote, as models ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Turns the inputs and plans of other planners, and the configurations of
// published models, into model files that people can read and change:
//
// - layer profiles in the text format of the PipeDream profiler (Narayanan et
//   al., SOSP 2019, arXiv 1806.03377), also those of DAPPLE (Fan et al., PPoPP
//   2021, arXiv 2007.01045): see ImportDapple.h;
// - placement inputs of Tarnawski et al. 2020 (arXiv 2006.16423);
// - inputs of Piper (Tarnawski et al. 2021, "Piper: Multidimensional Planner
//   for DNN Parallelization");
// - plans of Alpa (Zheng et al., OSDI 2022, arXiv 2201.12023) with the sizes of
//   the GPT models they are for;
// - `config.json` of Hugging Face models: gpt2, llama, mistral and qwen2 become
//   layers that can be trained; qwen3, mixtral and deepseek costs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Support/Diagnostic.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

enum class ImportFormat : uint8_t {
  Dapple, ///< and PipeDream: one text format
  DnnPartitioning,
  Piper,
  Alpa,
  HuggingFace,
};

/// The words for a format: "dapple", "pipedream", "dnn-partitioning", ...
const std::vector<std::string> &importFormatNames();
std::optional<ImportFormat> importFormat(const std::string &name);

/// The format by what the text holds; nothing if it could be none or several.
std::optional<ImportFormat> detectImportFormat(const std::string &text);

struct ImportOptions {
  /// Samples of a micro-batch. Of a profile: those it was taken with; not
  /// given: as its name says. Elsewhere 1 if not given.
  std::optional<int64_t> samples;
  /// Not given: what the file says, or 8.
  std::optional<int64_t> microBatches;
  /// Hugging Face: positions of a sample; not given: the most the model takes.
  std::optional<int64_t> positions;
  /// Hugging Face: train on bytes of a text instead of random ids.
  bool textData = false;
  /// Hugging Face, models that become costs: FLOP/s of the device.
  double flops = 0;
  /// Piper: nanoseconds in the file's unit of time, which it does not state.
  double timeUnit = 0;
  /// Alpa: the model whose plan is meant, such as "2.6B".
  std::string plan;
};

/// The model as YAML text for `readModel`. Faults, with line and column, and
/// warnings (keys that are not known) go to `diags`; nothing after a fault.
std::optional<std::string> importYaml(ImportFormat format,
                                      const std::string &text,
                                      const std::string &fileName,
                                      const ImportOptions &options,
                                      Diagnostics &diags);

} // namespace takt
