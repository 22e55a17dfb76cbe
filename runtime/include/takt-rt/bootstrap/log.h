//===- log.h - what a process says of itself --------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Messages go to standard error as "takt-run: warning: ...", and where
// TAKT_LOG_FILE names one to a file of this process as well, there with time,
// rank, host and process number.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/bootstrap/environment.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

namespace takt::rt {

enum class LogLevel : uint8_t { Error, Warn, Info, Debug };

/// What a message is about.
enum class LogTopic : uint8_t {
  Start,      ///< who is which rank, and how ranks meet
  Comm,       ///< how messages go
  Checkpoint, ///< going on and saving
  Run,        ///< all else
};
constexpr size_t kLogTopics = 4;

/// The levels of TAKT_LOG: "debug", or "warn,comm=debug".
class LogLevels {
public:
  /// All of one level.
  explicit LogLevels(LogLevel level) { of.fill(level); }
  /// Throws `Error` (Usage) that names the word that is none.
  static LogLevels parse(const std::string &text);

  bool has(LogLevel level, LogTopic topic) const {
    return level <= of[size_t(topic)];
  }

private:
  std::array<LogLevel, kLogTopics> of;
};

/// TAKT_LOG_FILE with %r, %h, %p and %% replaced: by the rank, the host's name,
/// the number of the process, and a percent sign. Throws `Error` (Usage) for
/// another letter.
std::string logPath(const std::string &pattern, const std::string &rank,
                    const std::string &host, int64_t process);

/// Lines may come from several threads.
class Log {
public:
  /// Goes by TAKT_LOG and TAKT_LOG_FILE. Without a file TAKT_LOG is for
  /// standard error, else for the file. Throws `Error` (Usage).
  explicit Log(const Environment &environment);
  ~Log();
  Log(const Log &) = delete;
  Log &operator=(const Log &) = delete;

  /// Which rank this is: a number, "all" or "launcher". Opens the file; throws
  /// `Error` (BadInput) when it cannot be written.
  void open(const std::string &rank);
  /// What people need not see while all is well stays off standard error.
  void setQuiet(bool quiet) { isQuiet = quiet; }

  /// A message of one or more lines, without an end of line. A file that cannot
  /// be written any more, on a full disk say, costs one warning and no run.
  void add(LogLevel level, LogTopic topic, const std::string &text);
  void error(const std::string &text) {
    add(LogLevel::Error, LogTopic::Run, text);
  }
  void warn(const std::string &text) {
    add(LogLevel::Warn, LogTopic::Run, text);
  }
  void debug(LogTopic topic, const std::string &text) {
    add(LogLevel::Debug, topic, text);
  }

private:
  void toFile(LogLevel level, LogTopic topic, const std::string &text);

  LogLevels onScreen, inFile;
  std::string pattern, rank = "all";
  bool isQuiet = false;
  std::mutex mutex;
  int file = -1;
};

} // namespace takt::rt
