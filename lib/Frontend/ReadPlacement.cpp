//===- ReadPlacement.cpp - `placement:` of a model file -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Side constraints on stage assignment, one a list entry, so that each has a
// line that a clash can name. Whether they can be kept is not asked here.
//
//===----------------------------------------------------------------------===//
#include "LayerReader.h"

#include "takt/Support/NearestName.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;

namespace {

constexpr int64_t kMostStages = 65535;

class PlacementReader {
public:
  PlacementReader(Reader &reader, ModelSpec &spec)
      : reader(reader), spec(spec), graph(buildGraph(spec)) {}

  void readItem(const YamlNode &item) {
    const KeyTable &kinds = keyTable(modelKeys(), "constraint");
    Section section(
        reader, item, kinds, "a constraint", reader.loc(item), &spec.places,
        fmt::format("placement.constraints.{}", spec.constraints.size()));
    if (!section.isMap())
      return;
    if (item.entries.size() != 1) {
      reader.error(item, fmt::format("a constraint has one key, its kind, not "
                                     "{}; begin each with '-'",
                                     item.entries.size()));
      return;
    }
    const YamlNode::Entry &entry = item.entries.front();
    ConstraintSpec constraint;
    constraint.loc = reader.loc(entry);
    const std::size_t errors = reader.diagnostics().errorCount();
    read(entry.key, *entry.value, section, constraint);
    if (reader.diagnostics().errorCount() == errors)
      spec.constraints.push_back(std::move(constraint));
  }

private:
  void read(const std::string &key, const YamlNode &value, Section &section,
            ConstraintSpec &out) {
    if (key == "memory_headroom") {
      readHeadroom(value, out);
      return;
    }
    // The other kinds are called in files as in IR.
    const std::optional<ConstraintKind> kind = parseConstraintKind(key);
    if (!kind)
      return; // reported as unknown
    out.kind = *kind;
    switch (out.kind) {
    case ConstraintKind::KeepTogether:
      readNames(value, key, 1, out);
      break;
    case ConstraintKind::KeepApart:
      readNames(value, key, 2, out);
      checkDisjoint(value, out);
      break;
    case ConstraintKind::Pin:
      readPin(value, out);
      break;
    case ConstraintKind::Stages:
    case ConstraintKind::MaxStages:
      section.integer(key, out.number, 1, kMostStages);
      break;
    default:
      readName(value, key, out);
    }
  }

  bool matches(const Layer &layer, const std::string &name) const {
    return layer.name == name ||
           layer.name.compare(0, name.size() + 1, name + ".") == 0;
  }

  void readName(const YamlNode &node, const std::string &key,
                ConstraintSpec &out) {
    std::optional<std::string> name = reader.text(node, key);
    if (!name)
      return;
    const bool known =
        std::any_of(graph.layers.begin(), graph.layers.end(),
                    [&](const Layer &layer) { return matches(layer, *name); });
    if (!known) {
      std::vector<std::string> names;
      for (const Layer &layer : graph.layers)
        names.push_back(layer.name);
      reader.error(
          node, fmt::format("'{}' names '{}', which is no layer or block{}",
                            key, quotable(*name), nearestHint(*name, names)));
      return;
    }
    out.names.push_back(std::move(*name));
  }

  void readNames(const YamlNode &node, const std::string &key, size_t least,
                 ConstraintSpec &out) {
    const auto *items = reader.list(node, key, false);
    if (!items)
      return;
    for (const YamlNodePtr &item : *items)
      readName(*item, key, out);
    if (items->size() < least)
      reader.error(node, fmt::format("'{}' needs {} layers, not {}", key, least,
                                     items->size()));
  }

  void checkDisjoint(const YamlNode &node, const ConstraintSpec &out) {
    for (size_t a = 0; a < out.names.size(); ++a)
      for (size_t b = 0; b < a; ++b)
        for (const Layer &layer : graph.layers)
          if (matches(layer, out.names[a]) && matches(layer, out.names[b])) {
            reader.error(node,
                         fmt::format("'{}' and '{}' both hold '{}', which "
                                     "cannot be kept apart from itself",
                                     out.names[b], out.names[a], layer.name));
            return;
          }
  }

  void readPin(const YamlNode &node, ConstraintSpec &out) {
    Section pin(reader, node, keyTable(modelKeys(), "pin"), "'pin'",
                reader.loc(node));
    if (!pin.isMap())
      return;
    if (const YamlNode *layer = pin.require("layer"))
      readName(*layer, "layer", out);
    if (pin.require("stage"))
      pin.integer("stage", out.number, 0, kMostStages - 1);
  }

  /// "10 %" or a size.
  void readHeadroom(const YamlNode &node, ConstraintSpec &out) {
    std::optional<std::string> text = reader.text(node, "memory_headroom");
    if (!text)
      return;
    if (text->back() != '%') {
      out.kind = ConstraintKind::HeadroomBytes;
      if (auto bytes = reader.bytes(node, "memory_headroom"))
        out.number = *bytes;
      return;
    }
    out.kind = ConstraintKind::HeadroomPpm;
    if (auto ppm = reader.percent(node, "memory_headroom",
                                  {0, 100, false, /*below=*/true}))
      out.number = *ppm;
  }

  Reader &reader;
  ModelSpec &spec;
  const Graph graph;
};

} // namespace

void takt::readPlacement(Reader &reader, const YamlNode &node, SourceLoc place,
                         ModelSpec &spec) {
  Section section(reader, node, keyTable(modelKeys(), "placement"),
                  "'placement'", place, &spec.places, "placement");
  if (!section.isMap())
    return;
  const YamlNode *constraints = section.find("constraints");
  if (!constraints)
    return;
  const auto *items = reader.list(*constraints, "constraints", true);
  if (!items)
    return;
  PlacementReader placement(reader, spec);
  for (const YamlNodePtr &item : *items)
    placement.readItem(*item);
}
