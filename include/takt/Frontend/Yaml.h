//===- Yaml.h - YAML text as a tree with places -----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One YAML document as a tree that the typed readers walk. It is built from the
// parser's events and not from yaml-cpp's own nodes, because limits must hold
// while parsing: yaml-cpp would keep duplicate keys silently and expand aliases
// without bound.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Support/Diagnostic.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace takt {

/// Deepest nesting of lists and maps, aliases expanded.
constexpr int kMaxYamlDepth = 64;
/// Most nodes of a document, counting what an alias stands for each time.
constexpr int64_t kMaxYamlNodes = 1000000;
/// Longest line: the parser looks ahead over a whole one.
constexpr std::size_t kMaxYamlLine = std::size_t(1) << 20;

struct YamlNode;
using YamlNodePtr = std::shared_ptr<const YamlNode>;

struct YamlNode {
  enum class Kind : uint8_t { Null, Scalar, Sequence, Map };

  /// A key of a map (always a scalar) and its value.
  struct Entry {
    std::string key;
    int line = 0, column = 0; ///< of the key
    YamlNodePtr value;
  };

  Kind kind = Kind::Null;
  bool quoted = false; ///< a scalar in quotes or a block scalar: surely text
  int line = 0, column = 0; ///< of an aliased node: where it is written out
  std::string scalar;
  std::vector<YamlNodePtr> items; ///< of a sequence
  std::vector<Entry> entries;     ///< of a map, in file order, keys unique
};

/// Parses one document. Reports and returns null for: text that checkText
/// refuses, bad syntax, a tab in indentation, a line over `kMaxYamlLine`, tags,
/// several documents, nesting deeper than `kMaxYamlDepth`, more than
/// `kMaxYamlNodes` nodes, an alias inside its own anchor, a key that is not a
/// scalar. A duplicate key is reported with both places and dropped. Registers
/// the text with `diags`.
YamlNodePtr parseYaml(const std::string &file, std::string text,
                      Diagnostics &diags);

} // namespace takt
