//===- Reader.h - typed values out of a YAML tree ---------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// `Reader` turns single nodes into checked values; `Section` reads a map by its
// table of keys. Both report and go on: a value that is missing or wrong leaves
// the default in place, so that one run finds as many faults as it can.
//
// YAML's implicit types are not used: what an integer or a truth value may look
// like is decided here, so `1e3`, `0x10`, `010`, `yes` are errors where a
// number or true/false is needed and stay text where text is.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Frontend/Keys.h"
#include "takt/Frontend/Yaml.h"
#include "takt/Support/Diagnostic.h"
#include "takt/Support/Quantity.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace takt {

/// Largest quantities a file may state: sums over layers and micro-batches then
/// stay far inside int64.
constexpr int64_t kMaxTime = int64_t(10000) * 1000000000; ///< 10 000 s
constexpr int64_t kMaxBytes = int64_t(1) << 50;           ///< 1024 TiB

/// Bounds of a number; `above` excludes the lower end.
struct RealRange {
  double low, high;
  bool above = false; ///< low itself is not allowed
  bool below = false; ///< high itself is not allowed
};

/// Reads scalars; `key` names the value in messages.
class Reader {
public:
  Reader(std::string file, Diagnostics &diags)
      : file(std::move(file)), diags(diags) {}

  SourceLoc loc(const YamlNode &node) const {
    return {file, node.line, node.column};
  }
  SourceLoc loc(const YamlNode::Entry &entry) const {
    return {file, entry.line, entry.column};
  }
  Diagnostic &error(const YamlNode &node, std::string message) {
    return diags.error(loc(node), std::move(message));
  }
  Diagnostic &error(SourceLoc place, std::string message) {
    return diags.error(std::move(place), std::move(message));
  }
  Diagnostics &diagnostics() { return diags; }
  const std::string &fileName() const { return file; }

  std::optional<int64_t> integer(const YamlNode &node, std::string_view key,
                                 int64_t low, int64_t high);
  std::optional<double> real(const YamlNode &node, std::string_view key,
                             RealRange range);
  /// A share such as "15 %", in millionths; the range is in per cent.
  std::optional<int64_t> percent(const YamlNode &node, std::string_view key,
                                 RealRange range);
  std::optional<bool> truth(const YamlNode &node, std::string_view key);
  /// Any text on one line, not empty.
  std::optional<std::string> text(const YamlNode &node, std::string_view key);
  /// A name of something: see checkName.
  std::optional<std::string> name(const YamlNode &node, std::string_view key);
  /// One of the words of the table, as its index.
  std::optional<std::size_t> word(const YamlNode &node, std::string_view key,
                                  const KeyTable &words);
  /// Time up to kMaxTime, size up to kMaxBytes; rates above 0 and up to 1e24.
  std::optional<int64_t> time(const YamlNode &node, std::string_view key);
  std::optional<int64_t> bytes(const YamlNode &node, std::string_view key);
  std::optional<double> rate(const YamlNode &node, std::string_view key);
  std::optional<double> flops(const YamlNode &node, std::string_view key);

  /// Whether the text can name a layer, input, device or link: a letter or `_`,
  /// then letters, digits, `_`, `-`; at most 64 bytes. Reports otherwise.
  bool checkName(SourceLoc place, std::string_view name, std::string_view what);

  /// A list, or nothing after an error. `mayBeEmpty`: [] is allowed.
  const std::vector<YamlNodePtr> *list(const YamlNode &node,
                                       std::string_view key, bool mayBeEmpty);
  /// A map that is not empty, or nothing after an error.
  const std::vector<YamlNode::Entry> *map(const YamlNode &node,
                                          std::string_view key);

private:
  const std::string *scalar(const YamlNode &node, std::string_view key,
                            const char *needed);
  template <typename T>
  std::optional<T> quantity(const YamlNode &node, std::string_view key,
                            const char *needed,
                            Parsed<T> (*parse)(std::string_view), T limit,
                            const char *limitText);

  std::string file;
  Diagnostics &diags;
};

/// A map whose keys are those of a table. Unknown keys are reported on
/// construction, with the nearest known one.
class Section {
public:
  /// `title` names the map in messages; `place` is where a missing key is
  /// reported. With `places`, the place of every known key's value is recorded
  /// there as `path.key`.
  Section(Reader &reader, const YamlNode &node, const KeyTable &table,
          std::string title, SourceLoc place,
          std::map<std::string, SourceLoc> *places = nullptr,
          std::string path = {});

  /// Whether the node is a map at all; else the fault has been reported.
  bool isMap() const { return valid; }
  const YamlNode *find(std::string_view key) const;
  /// As find, reporting a key that is not there.
  const YamlNode *require(std::string_view key);
  SourceLoc keyLoc(std::string_view key) const;
  const SourceLoc &loc() const { return place; }

  // Each leaves `out` alone when the key is absent or wrong, and tells whether
  // it was given and right. A key that is required is asked for by `require`.
  bool integer(std::string_view key, int64_t &out, int64_t low, int64_t high);
  bool real(std::string_view key, double &out, RealRange range);
  bool truth(std::string_view key, bool &out);
  bool name(std::string_view key, std::string &out);
  bool word(std::string_view key, std::size_t &out, const KeyTable &words);
  bool time(std::string_view key, int64_t &out);
  bool bytes(std::string_view key, int64_t &out);
  bool rate(std::string_view key, double &out);
  bool flops(std::string_view key, double &out);

private:
  Reader &reader;
  const YamlNode &node;
  std::string title;
  SourceLoc place;
  bool valid = false;
};

/// Parses and opens the top level of a file: a map with `schema_version: 1` and
/// the keys of `table`. Null after an error that leaves nothing to read.
struct OpenedFile {
  YamlNodePtr root;
  std::optional<Section> top;
};
OpenedFile openYaml(Reader &reader, std::string text, const KeyTable &table,
                    std::map<std::string, SourceLoc> &places);

} // namespace takt
