//===- yaml_checks.h - places of a reader's messages ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Shared by the harnesses of the frontend's readers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Frontend/Keys.h"
#include "takt/Support/Diagnostic.h"

#include <string>
#include <vector>

namespace takt::fuzz {

/// What a refusal owes: errors, each with a message and a place that is in the
/// text.
void checkRefusal(const Diagnostics &diags, const std::string &file,
                  const std::string &text);

/// Keys of the tables, with what makes trouble in YAML.
std::vector<std::string> yamlWords(const std::vector<KeyTable> &tables);

} // namespace takt::fuzz
