//===- ReadProfile.cpp - measured costs -----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The file that `takt-run --profile` writes. Its layers are matched against a
// model later, by the cost model.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Read.h"
#include "takt/Frontend/Reader.h"
#include "takt/Support/TextFile.h"

#include <fmt/format.h>

#include <limits>

using namespace takt;

namespace {

void readLayer(Reader &reader, const YamlNode::Entry &entry,
               ProfileSpec &spec) {
  ProfileEntry costs;
  Section section(reader, *entry.value, keyTable(profileKeys(), "layer"),
                  fmt::format("layer '{}'", quotable(entry.key)),
                  reader.loc(entry), &spec.places,
                  "profile.layers." + entry.key);
  if (!section.isMap())
    return;
  auto time = [&](const char *key, Nanos &out) {
    if (section.require(key))
      section.time(key, out);
  };
  time("forward", costs.forward);
  time("input_grad", costs.inputGrad);
  time("weight_grad", costs.weightGrad);
  time("update", costs.update);
  spec.layers.emplace(entry.key, costs);
}

} // namespace

std::optional<ProfileSpec> takt::readProfileText(const std::string &file,
                                                 std::string text,
                                                 Diagnostics &diags) {
  std::size_t before = diags.errorCount();
  Reader reader(file, diags);
  ProfileSpec spec;
  spec.file = file;
  OpenedFile opened = openYaml(reader, std::move(text),
                               keyTable(profileKeys(), "file"), spec.places);
  if (!opened.top)
    return std::nullopt;
  const YamlNode *profile = opened.top->require("profile");
  if (!profile)
    return std::nullopt;
  Section section(reader, *profile, keyTable(profileKeys(), "profile"),
                  "'profile'", opened.top->keyLoc("profile"), &spec.places,
                  "profile");
  if (!section.isMap())
    return std::nullopt;
  if (const YamlNode *device = section.require("device"))
    if (auto name = reader.text(*device, "device"))
      spec.device = *name;
  if (section.require("samples"))
    section.integer("samples", spec.samples, 1,
                    std::numeric_limits<int32_t>::max());
  if (const YamlNode *layers = section.require("layers"))
    if (const auto *entries = reader.map(*layers, "layers"))
      for (const YamlNode::Entry &entry : *entries)
        readLayer(reader, entry, spec);
  if (diags.errorCount() != before)
    return std::nullopt;
  return spec;
}

std::optional<ProfileSpec> takt::readProfile(const std::string &path,
                                             Diagnostics &diags) {
  std::optional<std::string> text = readTextFile(path, diags);
  if (!text)
    return std::nullopt;
  return readProfileText(path == "-" ? "<stdin>" : path, std::move(*text),
                         diags);
}
