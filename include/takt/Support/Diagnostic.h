//===- Diagnostic.h - errors with their place -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Readers do not stop at the first fault: they put what they find into a
// `Diagnostics` and go on where that makes sense. The tools print the whole in
// the style of a compiler:
//
//     model.yaml:12:21: error: unknown key 'widht' in 'linear'
//         - linear: {widht: 4}
//                    ^
//
// Messages start in lower case, end without a full stop, put names in single
// quotes and numbers with their unit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Support/SourceLoc.h"

#include <cstddef>
#include <deque>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace takt {

enum class Severity { Error, Warning, Note };

struct Diagnostic {
  Severity severity = Severity::Error;
  SourceLoc loc;
  std::string message;
  std::vector<Diagnostic> notes;

  /// Adds a remark, usually with a second place; returns this diagnostic.
  Diagnostic &note(SourceLoc place, std::string text);
};

/// Collects diagnostics and the texts they point into.
class Diagnostics {
public:
  /// Beyond this many, errors are counted but neither kept nor shown: a broken
  /// file of a million lines must not give a million messages.
  static constexpr std::size_t kMaxKept = 50;

  /// Registers the text of a file for the lines shown under messages.
  void addSource(const std::string &file, std::string text);

  /// The result stays valid as long as this object lives.
  Diagnostic &error(SourceLoc loc, std::string message);
  Diagnostic &warning(SourceLoc loc, std::string message);

  bool hasErrors() const { return numErrors != 0; }
  std::size_t errorCount() const { return numErrors; }
  const std::deque<Diagnostic> &all() const { return kept; }

  /// Everything kept, then the number left out. Files stand in the order of
  /// reporting, places within a file in the order of the text.
  std::string text() const;
  void print(std::ostream &out) const;

private:
  Diagnostic &add(Severity severity, SourceLoc loc, std::string message);
  void append(std::string &out, const Diagnostic &diagnostic) const;

  std::map<std::string, std::string> sources;
  std::deque<Diagnostic> kept;
  Diagnostic overflow; ///< takes the notes of diagnostics that are not kept
  std::size_t numErrors = 0;
  std::size_t numDropped = 0;
};

/// Text from a file as it may stand inside a message: control characters are
/// written `\xNN`, and what exceeds `limit` bytes is replaced by "...".
std::string quotable(std::string_view text, std::size_t limit = 60);

} // namespace takt
