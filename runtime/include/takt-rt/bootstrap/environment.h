//===- environment.h - the environment variables of takt-run ----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every variable that takt-run reads stands in one table, which `takt-run
// --env` prints.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace takt::rt {

/// A copy of a process's environment, so that tests can make their own.
class Environment {
public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string> variables)
      : variables(std::move(variables)) {}
  static Environment ofThisProcess();

  /// Nothing also for a variable that is empty.
  std::optional<std::string> text(const std::string &name) const;
  /// Throws `Error` (Usage) that names the variable when it is no whole number
  /// from 0 to 2^31 - 1.
  std::optional<int32_t> number(const std::string &name) const;
  /// The same for a number of processes, which is at least 1.
  std::optional<int32_t> count(const std::string &name) const;
  bool has(const std::string &name) const { return text(name).has_value(); }

private:
  std::map<std::string, std::string> variables;
};

struct VariableInfo {
  const char *name;
  const char *meaning;
};

/// All variables, by source.
const std::vector<VariableInfo> &environmentTable();

} // namespace takt::rt
