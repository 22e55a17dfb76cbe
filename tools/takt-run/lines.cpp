//===- lines.cpp - what the processes of a run say ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// An error is the last that a process writes, so that all from its first line
// on belongs to it.
//
//===----------------------------------------------------------------------===//

#include "lines.h"

#include "takt-rt/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <ostream>
#include <unistd.h>

namespace takt::run {

/// Nothing longer is held back for its end.
static constexpr size_t kLongest = 1 << 16;
static constexpr const char *kError = "takt-run: error: ";

static void writeWithRank(int32_t rank, const std::string &text,
                          std::ostream &to) {
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    to << fmt::format("[{}] {}\n", rank, text.substr(begin, end - begin));
  to << std::flush;
}

void LastWords::say(int32_t rank, const std::string &text, std::ostream &to) {
  std::vector<int32_t> &said = ranks[text];
  said.push_back(rank);
  if (said.size() == 1)
    writeWithRank(rank, text, to);
}

void LastWords::finish(std::ostream &to) {
  for (auto &[text, said] : ranks) {
    if (said.size() < 2)
      continue;
    std::sort(said.begin() + 1, said.end());
    to << fmt::format("[{}] {}the same as rank {}\n",
                      rt::formatRanges({said.begin() + 1, said.end()}), kError,
                      said.front())
       << std::flush;
  }
  ranks.clear();
}

void Lines::pass() {
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
    text.append(buffer, size_t(got));
    writeLines();
  }
  if (got == 0 || (errno != EAGAIN && errno != EINTR))
    close();
}

void Lines::close() {
  if (!text.empty())
    text += '\n';
  writeLines();
  if (!error.empty())
    errors->say(rank, error, *to);
  error.clear();
  ::close(fd);
  fd = -1;
}

void Lines::writeLines() {
  if (text.size() > kLongest && text.find('\n') == std::string::npos)
    text += '\n';
  std::string ended = text.substr(0, text.rfind('\n') + 1);
  text.erase(0, ended.size());
  if (errors && error.empty()) {
    size_t at = ended.find(kError);
    while (at != std::string::npos && at > 0 && ended[at - 1] != '\n')
      at = ended.find(kError, at + 1);
    if (at != std::string::npos) {
      error = ended.substr(at);
      ended.erase(at);
    }
  } else if (errors) {
    error += ended;
    ended.clear();
  }
  if (!ended.empty())
    writeWithRank(rank, ended, *to);
  if (error.size() > kLongest) {
    writeWithRank(rank, error, *to);
    error.clear();
    errors = nullptr;
  }
}

} // namespace takt::run
