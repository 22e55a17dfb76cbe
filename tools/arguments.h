//===- arguments.h - what every tool refuses -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Faults of a command line that the option library takes for something else.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

/// What is wrong with "--option=" and nothing behind it: the library would take
/// the next word for the value. Empty: nothing.
inline std::string emptyValueFault(int argc, const char *const *argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--")
      break;
    if (word.size() > 3 && word.compare(0, 2, "--") == 0 && word.back() == '=')
      return "'" + word + "' lacks its value";
  }
  return "";
}
