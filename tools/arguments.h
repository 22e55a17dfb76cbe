//===- arguments.h - what every tool refuses -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Faults of a command line that the option library takes for something else, and
// of the streams that a program is started with.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <fcntl.h>
#include <string>
#include <unistd.h>

/// Gives numbers 0 to 2 to something where they are closed, before a file or a
/// socket gets them and receives what is printed. What is written to a closed
/// standard output fails as it should.
inline void claimStandardStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) {
      // The lowest free number is this stream's.
      int got = open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
      (void)got;
    }
}

/// What is wrong with "--option=" and nothing behind it, where the library would
/// take the next word for the value, or with an empty word, which is a variable
/// that was not set. Empty: nothing.
inline std::string emptyValueFault(int argc, const char *const *argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--")
      break;
    if (word.empty())
      return "an argument is empty, after '" + std::string(argv[i - 1]) + "'";
    if (word.size() > 3 && word.compare(0, 2, "--") == 0 && word.back() == '=')
      return "'" + word + "' lacks its value";
  }
  return "";
}
