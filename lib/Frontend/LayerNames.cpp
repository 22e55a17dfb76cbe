//===- LayerNames.cpp - names and references of layers --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A name is looked up from the innermost scope outwards. Layers of a repeat are
// called "h.*.ln1"; since no one can write a `*`, they are out of reach from
// outside, where each of them would stand for `count` values.
//
//===----------------------------------------------------------------------===//
#include "LayerReader.h"

#include "takt/Support/NearestName.h"

#include <fmt/format.h>

using namespace takt;

void LayerReader::collectNames(const YamlNode &list) {
  for (const YamlNodePtr &item : list.items)
    for (const YamlNode::Entry &layer : item->entries)
      for (const YamlNode::Entry &setting : layer.value->entries) {
        if (setting.key == "name")
          givenNames.insert(setting.value->scalar);
        if (setting.key == "layers")
          collectNames(*setting.value);
      }
}

std::string LayerReader::freshName(const std::string &kind,
                                   const Scope &scope) {
  int &counter = counters[scope.prefix + kind];
  std::string local;
  do {
    local = fmt::format("{}{}", kind, ++counter);
  } while (givenNames.count(local) || names.count(scope.prefix + local));
  registerName(scope.prefix + local, kind, {});
  return scope.prefix + local;
}

void LayerReader::registerName(const std::string &name, const std::string &kind,
                               SourceLoc loc) {
  auto [first, isNew] = names.emplace(name, loc);
  if (isNew) {
    kinds.emplace(name, kind);
    return;
  }
  Diagnostic &fault = reader.error(
      std::move(loc), fmt::format("the name '{}' is used twice", name));
  if (first->second.line > 0)
    fault.note(first->second, "first used here");
}

std::string LayerReader::takeName(Section &section, const std::string &kind,
                                  const Scope &scope, bool &isNamed) {
  std::string local;
  isNamed = section.name("name", local);
  // An unnamed residual leaves no trace in names.
  if (!isNamed)
    return kind == "residual" ? std::string() : freshName(kind, scope);
  std::string full = scope.prefix + local;
  registerName(full, kind, reader.loc(*section.find("name")));
  return full;
}

std::string LayerReader::lookUp(const std::string &name,
                                const Scope &scope) const {
  for (const Scope *s = &scope; s; s = s->outer)
    if (names.count(s->prefix + name))
      return s->prefix + name;
  return "";
}

std::vector<std::string> LayerReader::visibleNames(const Scope &scope) const {
  std::vector<std::string> visible;
  for (const Scope *s = &scope; s; s = s->outer)
    for (const auto &[name, loc] : names) {
      if (name.compare(0, s->prefix.size(), s->prefix) != 0)
        continue;
      std::string local = name.substr(s->prefix.size());
      if (local.find('*') == std::string::npos)
        visible.push_back(std::move(local));
    }
  return visible;
}

std::optional<std::string> LayerReader::reference(const YamlNode &node,
                                                  std::string_view key,
                                                  const Scope &scope) {
  std::optional<std::string> name = reader.text(node, key);
  if (!name)
    return std::nullopt;
  std::string full = lookUp(*name, scope);
  auto alias = aliases.find(full);
  auto value = values.find(alias == aliases.end() ? full : alias->second);
  if (!full.empty() && value != values.end()) {
    value->second.used = true;
    return value->first;
  }
  std::string why = "neither an input nor an earlier layer", hint;
  if (!full.empty())
    why = "not finished here";
  else if (givenNames.count(*name))
    why = "a later layer, or one inside a repeat or residual";
  else
    hint = nearestHint(*name, visibleNames(scope));
  reader.error(node, fmt::format("'{}' names '{}', which is {}{}", key,
                                 quotable(*name), why, hint));
  return std::nullopt;
}

std::string LayerReader::inputOf(Section &section, const std::string &kind,
                                 const Scope &scope) {
  if (const YamlNode *node = section.find("input"))
    return reference(*node, "input", scope).value_or(kUnknownValue);
  if (scope.previous.empty()) {
    reader.error(
        section.loc(),
        fmt::format("'{}' needs 'input': no layer stands before it", kind));
    return kUnknownValue;
  }
  values[scope.previous].used = true;
  return scope.previous;
}
