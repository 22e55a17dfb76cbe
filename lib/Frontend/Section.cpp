//===- Section.cpp - a map of known keys ----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Keys of a map against their table, and the entry to a file: the version comes
// first, because a file of another version may mean anything.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Reader.h"

#include "takt/Support/NearestName.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

using namespace takt;

Section::Section(Reader &reader, const YamlNode &node, const KeyTable &table,
                 std::string title, SourceLoc place,
                 std::map<std::string, SourceLoc> *places, std::string path)
    : reader(reader), node(node), title(std::move(title)),
      place(std::move(place)) {
  if (node.kind != YamlNode::Kind::Map) {
    const char *found = node.kind == YamlNode::Kind::Null       ? "empty"
                        : node.kind == YamlNode::Kind::Sequence ? "a list"
                                                                : "a value";
    reader.error(node,
                 fmt::format("{} must be a map, not {}", this->title, found));
    return;
  }
  valid = true;
  for (const YamlNode::Entry &entry : node.entries) {
    if (std::find(table.keys.begin(), table.keys.end(), entry.key) ==
        table.keys.end()) {
      std::string hint = nearestHint(entry.key, table.keys);
      if (hint.empty())
        hint = fmt::format("; known keys: {}", fmt::join(table.keys, ", "));
      reader.error(reader.loc(entry),
                   fmt::format("unknown key '{}' in {}{}", quotable(entry.key),
                               this->title, hint));
    } else if (places) {
      std::string dotted = path.empty() ? entry.key : path + "." + entry.key;
      places->emplace(std::move(dotted), reader.loc(*entry.value));
    }
  }
}

const YamlNode *Section::find(std::string_view key) const {
  for (const YamlNode::Entry &entry : node.entries)
    if (entry.key == key)
      return entry.value.get();
  return nullptr;
}

SourceLoc Section::keyLoc(std::string_view key) const {
  for (const YamlNode::Entry &entry : node.entries)
    if (entry.key == key)
      return reader.loc(entry);
  return place;
}

const YamlNode *Section::require(std::string_view key) {
  if (const YamlNode *value = find(key))
    return value;
  if (valid)
    reader.error(place, fmt::format("{} lacks '{}'", title, key));
  return nullptr;
}

namespace {

template <typename T>
bool store(const std::optional<T> &value, T &out) {
  if (value)
    out = *value;
  return value.has_value();
}

} // namespace

bool Section::integer(std::string_view key, int64_t &out, int64_t low,
                      int64_t high) {
  const YamlNode *value = find(key);
  return value && store(reader.integer(*value, key, low, high), out);
}
bool Section::real(std::string_view key, double &out, RealRange range) {
  const YamlNode *value = find(key);
  return value && store(reader.real(*value, key, range), out);
}
bool Section::truth(std::string_view key, bool &out) {
  const YamlNode *value = find(key);
  return value && store(reader.truth(*value, key), out);
}
bool Section::name(std::string_view key, std::string &out) {
  const YamlNode *value = find(key);
  return value && store(reader.name(*value, key), out);
}
bool Section::word(std::string_view key, std::size_t &out,
                   const KeyTable &words) {
  const YamlNode *value = find(key);
  return value && store(reader.word(*value, key, words), out);
}
bool Section::time(std::string_view key, int64_t &out) {
  const YamlNode *value = find(key);
  return value && store(reader.time(*value, key), out);
}
bool Section::bytes(std::string_view key, int64_t &out) {
  const YamlNode *value = find(key);
  return value && store(reader.bytes(*value, key), out);
}
bool Section::rate(std::string_view key, double &out) {
  const YamlNode *value = find(key);
  return value && store(reader.rate(*value, key), out);
}
bool Section::flops(std::string_view key, double &out) {
  const YamlNode *value = find(key);
  return value && store(reader.flops(*value, key), out);
}

OpenedFile takt::openYaml(Reader &reader, std::string text,
                          const KeyTable &table,
                          std::map<std::string, SourceLoc> &places) {
  OpenedFile file;
  file.root =
      parseYaml(reader.fileName(), std::move(text), reader.diagnostics());
  if (!file.root)
    return file;
  SourceLoc start{reader.fileName(), 1, 1};
  // An unknown version is the only message: the keys may have changed.
  if (file.root->kind == YamlNode::Kind::Map) {
    for (const YamlNode::Entry &entry : file.root->entries)
      if (entry.key == "schema_version" &&
          (entry.value->quoted || entry.value->scalar != "1")) {
        reader.error(*entry.value, "'schema_version' must be 1, the only "
                                   "version that this program knows");
        return file;
      }
  }
  Section top(reader, *file.root, table, "the file", start, &places);
  if (!top.isMap())
    return file;
  top.require("schema_version");
  file.top.emplace(std::move(top));
  return file;
}
