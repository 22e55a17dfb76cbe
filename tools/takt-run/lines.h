//===- lines.h - what the processes of a run say ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A launcher passes on what its ranks write, line by line, with the rank before
// each. The error that a rank ends with is often that of all: it is written
// once, and who else ended with it is said at the end.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace takt::run {

/// Errors that ranks of a run ended with.
class LastWords {
public:
  /// Writes an error that no rank has ended with yet. `text`: whole lines.
  void say(int32_t rank, const std::string &text, std::ostream &to);
  /// Writes who repeated an error of another, and forgets all.
  void finish(std::ostream &to);

private:
  std::map<std::string, std::vector<int32_t>> ranks; ///< by error
};

/// One pipe of a rank. Takes the descriptor, which must not block.
class Lines {
public:
  /// `errors`: where the rank's error goes; null for a pipe that has none.
  Lines(int fd, int32_t rank, std::ostream &to, LastWords *errors)
      : fd(fd), rank(rank), to(&to), errors(errors) {}

  int descriptor() const { return fd; }
  bool isOpen() const { return fd >= 0; }
  /// Reads and passes on what is there.
  void pass();

private:
  void writeLines();
  void close();

  int fd;
  int32_t rank;
  std::ostream *to;
  LastWords *errors;
  std::string text;  ///< of a line that has not ended
  std::string error; ///< from the line that begins one to the end of the pipe
};

} // namespace takt::run
