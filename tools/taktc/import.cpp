//===- import.cpp - what others wrote, from the command line --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Options of the importers, and the way from a file to a model file.
//
//===----------------------------------------------------------------------===//
#include "import.h"

#include "../arguments.h"

#include "takt/Support/Quantity.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>

using namespace takt;
using arguments::oneOf, arguments::wholeNumber;
using rt::ExitCode;

void takt::addImport(CLI::App &import, ImportWords &words) {
  import
      .add_option("file", words.inputs,
                  "[FORMAT] FILE; formats: dapple, pipedream, "
                  "dnn-partitioning, piper, alpa, huggingface; default: by "
                  "what the file holds")
      ->required()
      ->expected(1, 2)
      ->type_name("");
  import.add_option("-o,--output", words.output,
                    "where to write; - is standard output");
  const CLI::Validator counts = wholeNumber(1, int64_t(1) << 60);
  import
      .add_option("--samples", words.samples,
                  "samples of a micro-batch; of a profile those it was taken "
                  "with, by default as its name says")
      ->check(counts);
  import
      .add_option("--micro-batches", words.microBatches,
                  "micro-batches a step; default: of the file, or 8")
      ->check(counts);
  import
      .add_option("--positions", words.positions,
                  "huggingface: positions of a sample; default: the model's "
                  "most")
      ->check(counts);
  import
      .add_option("--data", words.data,
                  "huggingface: text (bytes) or synthetic (default)")
      ->check(oneOf({"text", "synthetic"}));
  import.add_option("--flops", words.flops,
                    "huggingface, models that become costs: rate of a device, "
                    "such as 200TFLOP/s");
  import
      .add_option("--time-unit", words.timeUnit,
                  "piper: unit of the file's times")
      ->check(oneOf({"s", "ms"}));
  import.add_option("--plan", words.options.plan,
                    "alpa: the model whose plan is meant, such as 2.6B");
}

/// A fault in the options that CLI11 cannot know, or nothing.
static std::string settleImport(ImportWords &words) {
  ImportOptions &options = words.options;
  if (words.samples > 0)
    options.samples = words.samples;
  if (words.microBatches > 0)
    options.microBatches = words.microBatches;
  if (words.positions > 0)
    options.positions = words.positions;
  options.textData = words.data == "text";
  options.timeUnit = words.timeUnit == "s"    ? 1e9
                     : words.timeUnit == "ms" ? 1e6
                                              : 0;
  if (!words.flops.empty()) {
    const Parsed<double> rate = parseFlops(words.flops);
    if (!rate || rate.value <= 0)
      return fmt::format("--flops: {}", rate ? "must be above 0" : rate.error);
    options.flops = rate.value;
  }
  std::error_code none;
  if (words.inputs.size() == 1 && importFormat(words.inputs[0]) &&
      !std::filesystem::exists(words.inputs[0], none))
    return "file is missing";
  if (words.inputs.size() == 2 && !importFormat(words.inputs[0]))
    return fmt::format("unknown format '{}'; there are {}",
                       quotable(words.inputs[0]),
                       fmt::join(importFormatNames(), ", "));
  return "";
}

int takt::runImport(ImportWords &words) {
  if (std::string fault = settleImport(words); !fault.empty()) {
    std::cerr << "taktc: error: " << fault << '\n';
    return int(ExitCode::Usage);
  }
  const std::string &file = words.inputs.back();
  try {
    Diagnostics diags;
    std::string text = rt::readFile(file);
    const std::optional<ImportFormat> format =
        words.inputs.size() == 2 ? importFormat(words.inputs[0])
                                 : detectImportFormat(text);
    if (!format)
      throw rt::Error(fmt::format("'{}' does not show its format: name it, "
                                  "one of {}",
                                  quotable(file, 1000),
                                  fmt::join(importFormatNames(), ", ")),
                      ExitCode::BadInput);
    std::optional<std::string> yaml =
        importYaml(*format, text, file, words.options, diags);
    diags.print(std::cerr);
    if (!yaml)
      return int(ExitCode::BadInput);
    rt::writeFile(words.output, *yaml);
    return int(ExitCode::Done);
  } catch (const rt::Error &error) {
    std::cerr << "taktc: error: " << error.what() << '\n';
    return int(error.code());
  }
}
