//===- TextFile.h - reading input files -------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every text that people feed in passes here: the size is bounded before memory
// is taken, and what is not UTF-8 text is refused with its place.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Support/Diagnostic.h"

#include <cstddef>
#include <optional>
#include <string>

namespace takt {

/// Largest text file that is read.
constexpr std::size_t kMaxTextBytes = std::size_t(16) << 20;

/// The whole file, or standard input for "-". A missing or unreadable file, a
/// folder, and a file over `kMaxTextBytes` are errors.
std::optional<std::string> readTextFile(const std::string &path,
                                        Diagnostics &diags);

/// Refuses an empty text, NUL and other control characters but tab, line feed
/// and carriage return, and bytes that are not UTF-8. Removes a byte order
/// mark.
bool checkText(const std::string &file, std::string &text, Diagnostics &diags);

} // namespace takt
