//===- Read.cpp - schedule rules from YAML --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "takt/Frontend/Reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

namespace takt {

const KeyTable &placementWords() {
  static const KeyTable words = {"placement", {"linear", "interleaved", "v"}};
  return words;
}

namespace {

const KeyTable &ruleKeys() {
  static const KeyTable keys = {"schedule",
                                {"schema_version", "schedule", "placement",
                                 "chunks", "chains", "let", "groups", "hold",
                                 "phases", "prefer", "together"}};
  return keys;
}

/// More than this many parts is no rule any more.
constexpr size_t kMostPhases = 64, kMostSteps = 64, kMostNames = 16;
constexpr int64_t kMostChunks = 1024, kMostChains = 2;

std::optional<Step> parseStep(const std::string &text) {
  static constexpr char kLetters[] = {'F', 'I', 'W', 'B'};
  const auto *kind =
      std::find(std::begin(kLetters), std::end(kLetters), text[0]);
  if (kind == std::end(kLetters) || text.size() > 4)
    return std::nullopt;
  Step step{static_cast<ActionKind>(kind - kLetters), -1};
  if (text.size() == 1)
    return step;
  step.chunk = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9')
      return std::nullopt;
    step.chunk = step.chunk * 10 + (text[i] - '0');
  }
  const bool leadingZero = text.size() > 2 && text[1] == '0';
  // W follow their I, wherever those were.
  return step.kind == ActionKind::W || leadingZero ? std::nullopt
                                                   : std::optional(step);
}

class RuleReader {
public:
  RuleReader(std::string file, Diagnostics &diags)
      : reader(std::move(file), diags), diags(diags) {}

  std::optional<ScheduleRule> run(std::string text) {
    std::map<std::string, SourceLoc> places;
    OpenedFile opened = openYaml(reader, std::move(text), ruleKeys(), places);
    if (!opened.top)
      return std::nullopt;
    Section &top = *opened.top;
    if (const YamlNode *node = top.require("schedule"))
      readName(*node);
    size_t placement = 0;
    if (top.word("placement", placement, placementWords()))
      rule.placement = static_cast<Placement>(placement);
    int64_t chunks = 0, chains = 1;
    top.integer("chunks", chunks, 1, kMostChunks);
    top.integer("chains", chains, 1, kMostChains);
    rule.chunks = int32_t(chunks);
    rule.chains = int32_t(chains);
    if (const YamlNode *node = top.find("let"))
      readNames(*node);
    if (const YamlNode *node = top.find("groups"))
      readFormula(*node, "groups", rule.groups);
    if (const YamlNode *node = top.find("hold"))
      readFormula(*node, "hold", rule.hold);
    readOrder(top);
    if (diags.hasErrors())
      return std::nullopt;
    return std::move(rule);
  }

private:
  /// As families are named: "1f1b" begins with a digit.
  void readName(const YamlNode &node) {
    const auto text = reader.text(node, "schedule");
    if (!text)
      return;
    const std::string &name = *text;
    const bool fits =
        name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
        });
    if (!fits || name == "null" || name[0] == '-')
      reader.error(node, fmt::format("'{}' cannot name a schedule; use small "
                                     "letters, digits and '-', at most 64",
                                     quotable(name)));
    rule.name = name;
  }

  void readOrder(Section &top) {
    const YamlNode *phases = top.find("phases"), *prefer = top.find("prefer");
    if (!phases == !prefer) {
      reader.error(phases ? top.keyLoc("prefer") : top.loc(),
                   "a schedule needs 'phases' or 'prefer', and not both");
      return;
    }
    rule.loc = top.keyLoc(phases ? "phases" : "prefer");
    if (phases)
      readPhases(*phases);
    else if (const auto text = reader.text(*prefer, "prefer"))
      readSteps(*text, reader.loc(*prefer), rule.prefer);
    if (const YamlNode *node = top.find("together")) {
      if (phases)
        reader.error(top.keyLoc("together"), "'together' belongs to 'prefer'");
      else
        readFormula(*node, "together", rule.together);
    }
  }

  void readNames(const YamlNode &node) {
    const auto *entries = reader.map(node, "let");
    if (!entries)
      return;
    if (entries->size() > kMostNames) {
      reader.error(node, fmt::format("'let' has {} names, at most {} are "
                                     "possible",
                                     entries->size(), kMostNames));
      return;
    }
    for (const YamlNode::Entry &entry : *entries) {
      const std::string &name = entry.key;
      const bool letters = !name.empty() && name.size() <= 16 &&
                           std::all_of(name.begin(), name.end(), [](char c) {
                             return c >= 'a' && c <= 'z';
                           });
      const bool given =
          std::find(std::begin(kGivenNames), std::end(kGivenNames), name) !=
          std::end(kGivenNames);
      if (!letters)
        reader.error(reader.loc(entry),
                     fmt::format("'{}' in 'let' must be at most 16 small "
                                 "letters",
                                 quotable(name)));
      else if (given || name == "min" || name == "max" || name == "rest")
        reader.error(reader.loc(entry),
                     fmt::format("'{}' in 'let' has a meaning already", name));
      Formula formula;
      if (readFormula(*entry.value, name, formula))
        rule.let.emplace_back(name, std::move(formula));
    }
  }

  bool readFormula(const YamlNode &node, const std::string &key, Formula &out) {
    const auto text = reader.text(node, key);
    if (!text)
      return false;
    std::string why;
    auto formula = parseFormula(*text, why);
    if (!formula) {
      reader.error(node, fmt::format("'{}': {}", quotable(key), why));
      return false;
    }
    out = std::move(*formula);
    out.loc = reader.loc(node);
    return true;
  }

  bool readSteps(const std::string &text, const SourceLoc &loc,
                 std::vector<Step> &steps) {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      const std::optional<Step> step = parseStep(word);
      if (!step) {
        reader.error(loc,
                     fmt::format("'{}' is no action: F, B, I or W, or the "
                                 "first three with the number of a stage of "
                                 "the rank",
                                 quotable(word)));
        return false;
      }
      if (steps.size() == kMostSteps) {
        reader.error(loc, fmt::format("more than {} actions", kMostSteps));
        return false;
      }
      steps.push_back(*step);
    }
    if (steps.empty())
      reader.error(loc, "a row of actions is empty");
    return !steps.empty();
  }

  void readPhases(const YamlNode &node) {
    const auto *items = reader.list(node, "phases", false);
    if (!items)
      return;
    if (items->size() > kMostPhases) {
      reader.error(node, fmt::format("'phases' has {} items, at most {} are "
                                     "possible",
                                     items->size(), kMostPhases));
      return;
    }
    for (const YamlNodePtr &item : *items) {
      if (item->kind != YamlNode::Kind::Map || item->entries.size() != 1) {
        reader.error(*item, "a phase is a row of actions and how often, such "
                            "as 'F B: p - r'");
        continue;
      }
      const YamlNode::Entry &entry = item->entries.front();
      Phase phase;
      if (!readSteps(entry.key, reader.loc(entry), phase.steps))
        continue;
      const bool rest = entry.value->kind == YamlNode::Kind::Scalar &&
                        entry.value->scalar == "rest";
      if (rest || readFormula(*entry.value, entry.key, phase.times))
        rule.phases.push_back(std::move(phase));
    }
  }

  Reader reader;
  Diagnostics &diags;
  ScheduleRule rule;
};

} // namespace

std::optional<ScheduleRule> parseScheduleRule(const std::string &file,
                                              std::string text,
                                              Diagnostics &diags) {
  return RuleReader(file, diags).run(std::move(text));
}

bool ScheduleRule::operator==(const ScheduleRule &o) const {
  return name == o.name && placement == o.placement && chunks == o.chunks &&
         chains == o.chains && let == o.let && groups == o.groups &&
         hold == o.hold && phases == o.phases && prefer == o.prefer &&
         together == o.together;
}

} // namespace takt
