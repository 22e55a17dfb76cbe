//===- Json.cpp - JSON with places ----------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// JSON is flow-style YAML but for tabs between its values, which JSON allows
// and which keep their column as blanks.
//
//===----------------------------------------------------------------------===//
#include "Importers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

using namespace takt;

YamlNodePtr JsonReader::parse(const std::string &text) {
  std::string blanks = text;
  std::replace(blanks.begin(), blanks.end(), '\t', ' ');
  YamlNodePtr root =
      parseYaml(reader.fileName(), std::move(blanks), reader.diagnostics());
  if (!root || failed())
    return nullptr;
  return reader.map(*root, "the file") ? root : nullptr;
}

const YamlNode *JsonReader::find(const YamlNode &map, std::string_view key) {
  for (const YamlNode::Entry &entry : map.entries)
    if (entry.key == key)
      return entry.value.get();
  return nullptr;
}

const YamlNode *JsonReader::require(const YamlNode &map, std::string_view key) {
  const YamlNode *found = find(map, key);
  if (!found)
    reader.error(map, map.kind == YamlNode::Kind::Map
                          ? fmt::format("'{}' is not here", key)
                          : fmt::format("a map with '{}' is needed", key));
  return found;
}

double JsonReader::number(const YamlNode &map, std::string_view key,
                          double most) {
  const YamlNode *node = require(map, key);
  if (!node)
    return 0;
  if (node->kind == YamlNode::Kind::Scalar && !node->quoted &&
      (node->scalar == "true" || node->scalar == "false"))
    return node->scalar == "true";
  return reader.real(*node, key, {0, most}).value_or(0);
}

int64_t JsonReader::whole(const YamlNode &map, std::string_view key,
                          int64_t low, int64_t high) {
  const YamlNode *node = require(map, key);
  return node ? reader.integer(*node, key, low, high).value_or(low) : low;
}

int64_t JsonReader::scaled(const YamlNode &map, std::string_view key,
                           double unit, int64_t most) {
  const double value = number(map, key, 1e300);
  if (value * unit <= double(most))
    return std::llround(value * unit);
  reader.error(*find(map, key),
               fmt::format("'{}' is out of range: {}", key, value));
  return 0;
}

int64_t JsonReader::time(const YamlNode &map, std::string_view key,
                         double unit) {
  return scaled(map, key, unit, kMaxTime);
}

int64_t JsonReader::bytes(const YamlNode &map, std::string_view key,
                          double unit) {
  return scaled(map, key, unit, kMaxBytes);
}

std::vector<const YamlNode *> JsonReader::maps(const YamlNode &map,
                                               std::string_view key) {
  std::vector<const YamlNode *> found;
  const YamlNode *node = require(map, key);
  const auto *items = node ? reader.list(*node, key, true) : nullptr;
  if (!items)
    return found;
  for (const YamlNodePtr &item : *items)
    if (reader.map(*item, key))
      found.push_back(item.get());
  return found;
}
