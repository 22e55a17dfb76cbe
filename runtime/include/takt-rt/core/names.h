//===- names.h - the words of the plan's enumerations -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One table of words an enumeration: the text form, the reports and the error
// messages use the same ones. Words are stable; new ones are appended.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <optional>
#include <string_view>

namespace takt::rt {

struct NameTable {
  const std::string_view *names;
  size_t size;
};

/// The words of an enumeration in the order of its values.
template <typename Enum>
NameTable namesOf();
template <>
NameTable namesOf<PoolKind>();
template <>
NameTable namesOf<KernelKind>();
template <>
NameTable namesOf<Phase>();
template <>
NameTable namesOf<LaneKind>();
template <>
NameTable namesOf<InstrKind>();
template <>
NameTable namesOf<ChannelKind>();
template <>
NameTable namesOf<DType>();
template <>
NameTable namesOf<InitKind>();
template <>
NameTable namesOf<Mode>();
template <>
NameTable namesOf<OptimizerKind>();
template <>
NameTable namesOf<LrSchedule>();

/// False for a value that a damaged file made up.
template <typename Enum>
bool isKnown(Enum value) {
  return static_cast<size_t>(value) < namesOf<Enum>().size;
}

/// "linear_forward", "optimizer_state", ...; "?" for an unknown value.
template <typename Enum>
std::string_view nameOf(Enum value) {
  return isKnown(value) ? namesOf<Enum>().names[static_cast<size_t>(value)]
                        : std::string_view("?");
}

template <typename Enum>
std::optional<Enum> valueOf(std::string_view name) {
  NameTable table = namesOf<Enum>();
  for (size_t i = 0; i < table.size; ++i)
    if (table.names[i] == name)
      return static_cast<Enum>(i);
  return std::nullopt;
}

} // namespace takt::rt
