//===- yaml_checks.cpp - places of a reader's messages -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A place may be one past the end of a line, and one line past the end of the
// text: that is where something is missing.
//
//===----------------------------------------------------------------------===//
#include "yaml_checks.h"

#include "fuzz.h"

#include <fmt/format.h>

namespace takt::fuzz {

static std::vector<size_t> lineLengths(const std::string &text) {
  std::vector<size_t> lengths;
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t end = std::min(text.find('\n', begin), text.size());
    lengths.push_back(end - begin);
    begin = end + 1;
  }
  lengths.push_back(0);
  return lengths;
}

void checkRefusal(const Diagnostics &diags, const std::string &file,
                  const std::string &text) {
  require(diags.hasErrors(), "a refusal says why");
  std::vector<size_t> lengths = lineLengths(text);
  for (const Diagnostic &fault : diags.all()) {
    const SourceLoc &loc = fault.loc;
    auto say = [&](const char *promise) {
      return fmt::format("{}: {}:{}:{}: {}", promise, loc.file, loc.line,
                         loc.column, fault.message);
    };
    require(!fault.message.empty() && loc.file == file,
            say("a fault has a message and its file"));
    require(loc.line >= 1 && loc.column >= 1, say("a fault has a place"));
    require(static_cast<size_t>(loc.line) <= lengths.size(),
            say("the line is in the text"));
    require(static_cast<size_t>(loc.column) <= lengths[loc.line - 1] + 2,
            say("the column is in the line"));
  }
  require(!diags.text().empty(), "faults can be printed");
}

std::vector<std::string> yamlWords(const std::vector<KeyTable> &tables) {
  std::vector<std::string> words = {"&a ",
                                    "*a",
                                    "<<: ",
                                    "!!int ",
                                    "---\n",
                                    "...\n",
                                    "? ",
                                    "- ",
                                    ": ",
                                    "{",
                                    "}",
                                    "[",
                                    "]",
                                    "'",
                                    "\"",
                                    "|\n",
                                    ">\n",
                                    "\t",
                                    "# ",
                                    "%YAML ",
                                    "null",
                                    "true",
                                    "~",
                                    "1e3",
                                    "0x10",
                                    "010",
                                    "1_000",
                                    "-0",
                                    "1 KiB",
                                    "3 us",
                                    "2 GB/s",
                                    "1 GiB",
                                    "0 ns",
                                    "int32",
                                    "float32",
                                    "1.5x",
                                    "\xef\xbb\xbf",
                                    "\xff",
                                    "\r\n",
                                    std::string(1, '\0')};
  for (const KeyTable &table : tables) {
    words.push_back(table.name);
    for (const std::string &key : table.keys)
      words.push_back(key + ": ");
  }
  return words;
}

} // namespace takt::fuzz
