//===- Messages.h - errors of a text, as strings ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Lets a test state the errors of a file as "line:column: message".
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Frontend/Read.h"

#include <string>
#include <vector>

namespace takt::test {

inline std::string render(const Diagnostic &diagnostic) {
  return std::to_string(diagnostic.loc.line) + ":" +
         std::to_string(diagnostic.loc.column) + ": " + diagnostic.message;
}

inline std::vector<std::string> render(const Diagnostics &diags) {
  std::vector<std::string> result;
  for (const Diagnostic &diagnostic : diags.all()) {
    result.push_back(render(diagnostic));
    for (const Diagnostic &note : diagnostic.notes)
      result.push_back("note " + render(note));
  }
  return result;
}

using Messages = std::vector<std::string>;

/// All errors of a model text; also checks that a spec comes iff there is none.
inline Messages modelErrors(std::string text) {
  Diagnostics diags;
  bool read = readModelText("m.yaml", std::move(text), diags).has_value();
  Messages messages = render(diags);
  if (read == diags.hasErrors())
    messages.push_back("result and errors disagree");
  return messages;
}

inline Messages clusterErrors(std::string text) {
  Diagnostics diags;
  bool read = readClusterText("c.yaml", std::move(text), diags).has_value();
  Messages messages = render(diags);
  if (read == diags.hasErrors())
    messages.push_back("result and errors disagree");
  return messages;
}

inline Messages profileErrors(std::string text) {
  Diagnostics diags;
  bool read = readProfileText("p.yaml", std::move(text), diags).has_value();
  Messages messages = render(diags);
  if (read == diags.hasErrors())
    messages.push_back("result and errors disagree");
  return messages;
}

} // namespace takt::test
