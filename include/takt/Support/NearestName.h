//===- NearestName.h - "did you mean" ---------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Finds the known name that a misspelt one most likely stands for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace takt {

/// Optimal string alignment distance: insertions, deletions, substitutions and
/// swaps of neighbours, each at cost 1. O(|a| |b|).
std::size_t editDistance(std::string_view a, std::string_view b);

/// The candidate closest to `name`, comparing without case first; empty if none
/// is within a third of the length of the longer name. Ties go to the earlier
/// candidate. Names over 64 bytes get no hint.
std::string nearestName(std::string_view name,
                        const std::vector<std::string> &candidates);

/// "; did you mean 'x'?", or nothing.
std::string nearestHint(std::string_view name,
                        const std::vector<std::string> &candidates);

} // namespace takt
