//===- ConstraintWords.cpp - side constraints as text ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Names and YAML of constraints. Readers need these and none of the search.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Constraints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

using namespace takt;

namespace {

/// In the unit, binary or decimal, that leaves the smallest whole number.
std::string sizeText(Bytes bytes) {
  struct Unit {
    const char *name;
    Bytes bytes;
  };
  static constexpr Unit kUnits[] = {
      {"TiB", Bytes(1) << 40},     {"TB", 1000000000000},
      {"GiB", Bytes(1) << 30},     {"GB", 1000000000},
      {"MiB", Bytes(1) << 20},     {"MB", 1000000},
      {"KiB", Bytes(1) << 10},     {"kB", 1000}};
  for (const Unit &unit : kUnits)
    if (bytes != 0 && bytes % unit.bytes == 0)
      return fmt::format("{} {}", bytes / unit.bytes, unit.name);
  return fmt::format("{} B", bytes);
}

/// Exact: a rounded number would say something else than the file does.
std::string percentText(int64_t ppm) {
  std::string text = fmt::format("{}.{:04}", ppm / 10000, ppm % 10000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text + " %";
}

} // namespace

static constexpr const char *kKindNames[] = {
    "keep_together", "keep_apart", "no_cut_after",   "no_cut_before", "pin",
    "stages",        "max_stages", "headroom_bytes", "headroom_ppm"};

const char *takt::constraintKindName(ConstraintKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

std::optional<ConstraintKind>
takt::parseConstraintKind(const std::string &name) {
  for (size_t i = 0; i < std::size(kKindNames); ++i)
    if (kKindNames[i] == name)
      return static_cast<ConstraintKind>(i);
  return std::nullopt;
}

std::string takt::toYaml(const SideConstraint &constraint) {
  const std::string names =
      fmt::format("{}", fmt::join(constraint.names, ", "));
  switch (constraint.kind) {
  case ConstraintKind::KeepTogether:
    return fmt::format("keep_together: [{}]", names);
  case ConstraintKind::KeepApart:
    return fmt::format("keep_apart: [{}]", names);
  case ConstraintKind::NoCutAfter:
    return "no_cut_after: " + names;
  case ConstraintKind::NoCutBefore:
    return "no_cut_before: " + names;
  case ConstraintKind::Pin:
    return fmt::format("pin: {{layer: {}, stage: {}}}", names,
                       constraint.number);
  case ConstraintKind::Stages:
    return fmt::format("stages: {}", constraint.number);
  case ConstraintKind::MaxStages:
    return fmt::format("max_stages: {}", constraint.number);
  case ConstraintKind::HeadroomBytes:
    return "memory_headroom: " + sizeText(constraint.number);
  case ConstraintKind::HeadroomPpm:
    return "memory_headroom: " + percentText(constraint.number);
  }
  return {};
}
