//===- DappleProfile.h - the text of a layer profile ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The lines of the PipeDream profiler's format as a graph of nodes; what they
// become is decided in ImportDapple.cpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Layer/Graph.h"
#include "takt/Support/Diagnostic.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace takt {

/// A node of the profile: costs for the profiled samples, neighbours by number.
struct DappleNode {
  std::string description;
  Nanos forward = 0, backward = 0;
  Bytes activation = 0, parameters = 0;
  int line = 0;
  std::set<int64_t> from, to;
};

/// Nodes by their number, edges entered at both ends; nothing after an error.
std::optional<std::map<int64_t, DappleNode>>
parseDappleProfile(const std::string &text, const std::string &file,
                   Diagnostics &diags);

} // namespace takt
