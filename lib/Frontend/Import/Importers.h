//===- Importers.h - one function a format ----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What the importers of JSON share: reading with places, and writing a chain of
// layers known by costs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Frontend/Import.h"
#include "takt/Frontend/Reader.h"

#include <set>
#include <string>
#include <vector>

namespace takt {

/// A JSON text with places, and numbers out of its maps. JSON is read as YAML,
/// whose parser knows where everything stands.
class JsonReader {
public:
  JsonReader(const std::string &file, Diagnostics &diags)
      : reader(file, diags), diags(diags), errorsBefore(diags.errorCount()) {}

  /// The top map; null after a fault.
  YamlNodePtr parse(const std::string &text);
  bool failed() const { return diags.errorCount() > errorsBefore; }
  Reader &places() { return reader; }

  static const YamlNode *find(const YamlNode &map, std::string_view key);
  /// Reports a key that is not there, or a node that is no map.
  const YamlNode *require(const YamlNode &map, std::string_view key);
  /// Truth values count as 0 and 1. 0 after a fault.
  double number(const YamlNode &map, std::string_view key, double most);
  int64_t whole(const YamlNode &map, std::string_view key, int64_t low,
                int64_t high);
  /// Time in units of so many nanoseconds, size in units of so many bytes.
  int64_t time(const YamlNode &map, std::string_view key, double unit);
  int64_t bytes(const YamlNode &map, std::string_view key, double unit = 1);
  /// Maps of a list, which may be empty.
  std::vector<const YamlNode *> maps(const YamlNode &map, std::string_view key);

private:
  int64_t scaled(const YamlNode &map, std::string_view key, double unit,
                 int64_t most);

  Reader reader;
  Diagnostics &diags;
  size_t errorsBefore;
};

/// A layer of a graph known by costs.
struct CostNode {
  std::string name;                   ///< as far as it can be a name
  int64_t forward = 0, backward = 0;  ///< nanoseconds
  int64_t output = 0, parameters = 0; ///< bytes
  std::set<int32_t> readers;          ///< indices of nodes
  SourceLoc loc;
};

struct Chain {
  std::string origin; ///< comment lines without "# "
  std::string fileName;
  std::vector<CostNode> nodes;
  int64_t samples = 1, microBatches = 8;
};

/// Nodes that lie on common cycles as one, at the first one's index order: they
/// can only be in one stage. Readers are those of all, outside; what only they
/// read is no output.
std::vector<CostNode> joinCycles(const std::vector<CostNode> &nodes);

/// The graph as a chain in topological order, smallest index first. Each
/// layer's activation is all that later layers read of it and of those before
/// it, so that every cut of the chain costs what it costs in the graph.
std::optional<std::string> writeChain(const Chain &chain, Diagnostics &diags);

/// The text, if the model reader takes it: single figures are in range by then,
/// sums and products may not be.
std::optional<std::string>
checkedModel(std::string yaml, const std::string &fileName, Diagnostics &diags);

/// Text as letters, digits and single underscores, starting with a letter or
/// `_`, at most `limit` long; "layer" if nothing is left.
std::string identifier(std::string_view text, std::size_t limit);
/// "model" of "folder/model.json"; of "folder/config.json" "folder".
std::string modelName(const std::string &fileName);

/// Micro-batches by the options, else `otherwise`; reports batches that are too
/// large. `samples` by the options, else 1.
bool settleBatch(const ImportOptions &options, int64_t otherwise,
                 const std::string &fileName, Diagnostics &diags,
                 int64_t &samples, int64_t &microBatches);

std::optional<std::string> importPlacement(const std::string &text,
                                           const std::string &fileName,
                                           const ImportOptions &options,
                                           Diagnostics &diags);
std::optional<std::string> importPiper(const std::string &text,
                                       const std::string &fileName,
                                       const ImportOptions &options,
                                       Diagnostics &diags);
std::optional<std::string> importAlpa(const std::string &text,
                                      const std::string &fileName,
                                      const ImportOptions &options,
                                      Diagnostics &diags);
std::optional<std::string> importHuggingFace(const std::string &text,
                                             const std::string &fileName,
                                             const ImportOptions &options,
                                             Diagnostics &diags);

} // namespace takt
