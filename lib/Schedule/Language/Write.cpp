//===- Write.cpp - schedule rules as YAML ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include <fmt/format.h>

namespace takt {

std::string toText(const Step &step) {
  std::string text(1, "FIWB"[static_cast<size_t>(step.kind)]);
  return step.chunk < 0 ? text : text + std::to_string(step.chunk);
}

std::string toText(const std::vector<Step> &steps) {
  std::string text;
  for (const Step &step : steps)
    text += (text.empty() ? "" : " ") + toText(step);
  return text;
}

namespace {

/// In a flow map or list a comma would end the value.
std::string inFlow(const Formula &formula) {
  const std::string text = toText(formula);
  return text.find(',') == std::string::npos ? text : "\"" + text + "\"";
}

/// A list behind a key, broken where a line would be longer than 80 bytes.
std::string listed(const std::string &key, char open, char close,
                   const std::vector<std::string> &items) {
  std::string text = key + ": " + open;
  size_t column = text.size();
  for (size_t i = 0; i < items.size(); ++i) {
    const bool last = i + 1 == items.size();
    const std::string item = items[i] + (last ? close : ',');
    if (i > 0 && column + 1 + item.size() > 80) {
      text += "\n  " + item;
      column = 2 + item.size();
    } else {
      text += (i > 0 ? " " : "") + item;
      column += (i > 0) + item.size();
    }
  }
  return text + "\n";
}

} // namespace

std::string writeScheduleRule(const ScheduleRule &rule) {
  std::string text = "schema_version: 1\n";
  auto line = [&](const char *key, const std::string &value) {
    text += fmt::format("{}: {}\n", key, value);
  };
  line("schedule", rule.name);
  if (rule.placement != Placement::Linear)
    line("placement",
         placementWords().keys[static_cast<size_t>(rule.placement)]);
  if (rule.chunks > 0)
    line("chunks", std::to_string(rule.chunks));
  if (rule.chains > 1)
    line("chains", std::to_string(rule.chains));
  std::vector<std::string> items;
  for (const auto &[name, formula] : rule.let)
    items.push_back(fmt::format("{}: {}", name, inFlow(formula)));
  if (!items.empty())
    text += listed("let", '{', '}', items);
  if (!rule.groups.empty())
    line("groups", toText(rule.groups));
  if (!rule.hold.empty())
    line("hold", toText(rule.hold));
  items.clear();
  for (const Phase &phase : rule.phases)
    items.push_back(
        fmt::format("{}: {}", toText(phase.steps),
                    phase.times.empty() ? "rest" : inFlow(phase.times)));
  if (!items.empty())
    text += listed("phases", '[', ']', items);
  if (!rule.prefer.empty())
    line("prefer", toText(rule.prefer));
  if (!rule.together.empty())
    line("together", toText(rule.together));
  return text;
}

} // namespace takt
