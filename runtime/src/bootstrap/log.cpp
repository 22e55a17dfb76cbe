//===- log.cpp - what a process says of itself ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A line is one write to a file that is appended to, so that processes which
// share a file do not tear each other's lines, and what was said before a crash
// is there.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/log.h"

#include "takt-rt/core/error.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <sstream>
#include <unistd.h>

namespace takt::rt {

static const char *const kLevels[] = {"error", "warn", "info", "debug"};
static const char *const kTopics[kLogTopics] = {"start", "comm", "checkpoint",
                                                "run"};

template <size_t Count>
static size_t indexOf(const char *const (&words)[Count],
                      const std::string &word, const std::string &text) {
  for (size_t i = 0; i < Count; ++i)
    if (word == words[i])
      return i;
  throw Error(fmt::format("TAKT_LOG='{}': '{}' is none of {}", text, word,
                          fmt::join(words, ", ")),
              ExitCode::Usage);
}

LogLevels LogLevels::parse(const std::string &text) {
  LogLevels levels(LogLevel::Info);
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    size_t equals = entry.find('=');
    if (equals == std::string::npos)
      levels.of.fill(LogLevel(indexOf(kLevels, entry, text)));
    else
      levels.of[indexOf(kTopics, entry.substr(0, equals), text)] =
          LogLevel(indexOf(kLevels, entry.substr(equals + 1), text));
  }
  return levels;
}

static std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string logPath(const std::string &pattern, const std::string &rank,
                    const std::string &host, int64_t process) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      path += pattern[i];
      continue;
    }
    switch (i + 1 < pattern.size() ? pattern[++i] : '\0') {
    case 'r':
      path += rank;
      break;
    case 'h':
      path += host;
      break;
    case 'p':
      path += std::to_string(process);
      break;
    case '%':
      path += '%';
      break;
    default:
      throw Error(fmt::format("TAKT_LOG_FILE='{}': of '%' there are %r, the "
                              "rank, %h, the host, %p, the process, and %%",
                              pattern),
                  ExitCode::Usage);
    }
  }
  return path;
}

Log::Log(const Environment &environment)
    : onScreen(LogLevel::Info), inFile(LogLevel::Info),
      pattern(environment.text("TAKT_LOG_FILE").value_or("")) {
  LogLevels asked = LogLevels::parse(environment.text("TAKT_LOG").value_or(""));
  (pattern.empty() ? onScreen : inFile) = asked;
  logPath(pattern, "", "", 0); // what is wrong with it is said at once
}

Log::~Log() {
  if (file >= 0)
    close(file);
}

void Log::open(const std::string &whose) {
  std::lock_guard<std::mutex> lock(mutex);
  rank = whose;
  if (pattern.empty() || file >= 0)
    return;
  std::string path = logPath(pattern, rank, hostName(), getpid());
  file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0)
    throw Error(fmt::format("cannot write '{}' (TAKT_LOG_FILE): {}", path,
                            std::strerror(errno)));
}

void Log::toFile(LogLevel level, LogTopic topic, const std::string &text) {
  auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now());
  auto second = std::chrono::time_point_cast<std::chrono::seconds>(now);
  std::string before =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z takt-run[rank {} {}:{}] {} {}: ",
                  fmt::gmtime(second), (now - second).count(), rank, hostName(),
                  getpid(), kLevels[size_t(level)], kTopics[size_t(topic)]);
  std::istringstream lines(text);
  for (std::string line; file >= 0 && std::getline(lines, line);) {
    line = before + line + "\n";
    ssize_t written = 0;
    do
      written = write(file, line.data(), line.size());
    while (written < 0 && errno == EINTR);
    if (written == ssize_t(line.size()))
      continue;
    std::cerr << fmt::format("takt-run: warning: the log ends here: {}\n",
                             written < 0 ? std::strerror(errno)
                                         : "the disk is full")
              << std::flush;
    close(file);
    file = -1;
  }
}

void Log::add(LogLevel level, LogTopic topic, const std::string &text) {
  static const char *const kBefore[] = {"error: ", "warning: ", "", "debug: "};
  std::lock_guard<std::mutex> lock(mutex);
  if (onScreen.has(level, topic) && !(isQuiet && level == LogLevel::Info))
    std::cerr << fmt::format("takt-run: {}{}\n", kBefore[size_t(level)], text)
              << std::flush;
  if (inFile.has(level, topic))
    toFile(level, topic, text);
}

} // namespace takt::rt
