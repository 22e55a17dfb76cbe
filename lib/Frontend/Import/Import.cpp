//===- Import.cpp - formats and their importers ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Which format a text is in, and the way to its importer.
//
//===----------------------------------------------------------------------===//
#include "Importers.h"

#include "takt/Frontend/ImportDapple.h"
#include "takt/Frontend/Read.h"

#include <fmt/format.h>

#include <limits>

using namespace takt;

const std::vector<std::string> &takt::importFormatNames() {
  static const std::vector<std::string> names = {
      "dapple", "pipedream", "dnn-partitioning",
      "piper",  "alpa",      "huggingface"};
  return names;
}

std::optional<ImportFormat> takt::importFormat(const std::string &name) {
  const std::vector<std::string> &names = importFormatNames();
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name)
      return i < 2 ? ImportFormat::Dapple : ImportFormat(i - 1);
  return std::nullopt;
}

std::optional<ImportFormat> takt::detectImportFormat(const std::string &text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos)
    return std::nullopt;
  if (text[first] != '{')
    return text.find(" -- ") != std::string::npos
               ? std::optional(ImportFormat::Dapple)
               : std::nullopt;
  std::optional<ImportFormat> found;
  const std::pair<const char *, ImportFormat> marks[] = {
      {"\"maxFPGAs\"", ImportFormat::DnnPartitioning},
      {"\"TMPCs\"", ImportFormat::Piper},
      {"\"stage_layer_ids\"", ImportFormat::Alpa},
      {"\"model_type\"", ImportFormat::HuggingFace}};
  for (const auto &[mark, format] : marks)
    if (text.find(mark) != std::string::npos) {
      if (found)
        return std::nullopt;
      found = format;
    }
  return found;
}

static std::optional<std::string> importProfile(const std::string &text,
                                                const std::string &fileName,
                                                const ImportOptions &options,
                                                Diagnostics &diags) {
  ImportDappleOptions profile;
  profile.samples = options.samples;
  profile.microBatches = options.microBatches.value_or(profile.microBatches);
  return importDapple(text, fileName, profile, diags);
}

std::optional<std::string> takt::importYaml(ImportFormat format,
                                            const std::string &text,
                                            const std::string &fileName,
                                            const ImportOptions &options,
                                            Diagnostics &diags) {
  switch (format) {
  case ImportFormat::Dapple:
    return importProfile(text, fileName, options, diags);
  case ImportFormat::DnnPartitioning:
    return importPlacement(text, fileName, options, diags);
  case ImportFormat::Piper:
    return importPiper(text, fileName, options, diags);
  case ImportFormat::Alpa:
    return importAlpa(text, fileName, options, diags);
  case ImportFormat::HuggingFace:
    return importHuggingFace(text, fileName, options, diags);
  }
  return std::nullopt;
}

std::optional<std::string> takt::checkedModel(std::string yaml,
                                              const std::string &fileName,
                                              Diagnostics &diags) {
  Diagnostics faults;
  if (readModelText("imported", yaml, faults))
    return yaml;
  diags.error({fileName, 1, 1}, "the file does not make a model: " +
                                    faults.all().front().message);
  return std::nullopt;
}

std::string takt::identifier(std::string_view text, std::size_t limit) {
  std::string result;
  for (char c : text) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool digit = c >= '0' && c <= '9';
    if (letter || digit || c == '-')
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
    if (result.size() == limit)
      break;
  }
  while (!result.empty() && (result.back() == '_' || result.back() == '-'))
    result.pop_back();
  if (result.empty())
    return "layer";
  bool digit = result.front() >= '0' && result.front() <= '9';
  return digit || result.front() == '-' ? "_" + result : result;
}

std::string takt::modelName(const std::string &fileName) {
  std::string path = fileName;
  const std::string config = "config.json";
  if (path.size() > config.size() + 1 &&
      path.compare(path.size() - config.size() - 1, std::string::npos,
                   "/" + config) == 0)
    path.resize(path.size() - config.size() - 1);
  const std::size_t slash = path.rfind('/');
  std::string base = slash == std::string::npos ? path : path.substr(slash + 1);
  if (path.size() == fileName.size())
    base = base.substr(0, base.rfind('.'));
  return identifier(base, 60);
}

bool takt::settleBatch(const ImportOptions &options, int64_t otherwise,
                       const std::string &fileName, Diagnostics &diags,
                       int64_t &samples, int64_t &microBatches) {
  constexpr int64_t kMaxBatch = std::numeric_limits<int32_t>::max();
  samples = options.samples.value_or(1);
  microBatches = options.microBatches.value_or(otherwise);
  if (samples >= 1 && microBatches >= 1 && microBatches <= kMaxMicroBatches &&
      samples <= kMaxBatch / microBatches)
    return true;
  diags.error({fileName, 1, 1},
              fmt::format("{} micro-batches of {} samples are out of range",
                          microBatches, samples));
  return false;
}
