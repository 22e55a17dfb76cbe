//===- Watch.h - progress and Ctrl-C of a compilation -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// While it lives, the first SIGINT ends the searches with the best they have,
// and the second ends the process with kInterruptedExit. A signal that was
// ignored before stays so, as that of a job in the background.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <csignal>
#include <mutex>
#include <string>
#include <thread>

namespace takt {

/// 128 + SIGINT, as shells say it.
constexpr int kInterruptedExit = 130;

class Watch {
public:
  /// With `progress`, a line a second on standard error about a search that
  /// runs; on a terminal it is one line, in place.
  explicit Watch(bool progress);
  ~Watch();
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

  /// No line comes after this, and none stays on a terminal.
  void endProgress();

private:
  void look();
  void print(double elapsed);
  void erase();

  bool progress;
  const bool inPlace;
  int wake[2]; ///< a pipe: bytes from the signal handler and the destructor
  bool ended = false;
  size_t shown = 0; ///< characters on the terminal's line
  std::mutex lock;  ///< of what is printed, and of `ended`
  struct sigaction before;
  std::thread thread;
};

/// A file that replaces another when it is whole: until then a second SIGINT
/// removes it. One at a time.
class UnfinishedFile {
public:
  explicit UnfinishedFile(const std::string &path);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile &) = delete;
  UnfinishedFile &operator=(const UnfinishedFile &) = delete;
};

} // namespace takt
