//===- process_state.cpp - whether a process still runs -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Asked of the system, and only of a process of this machine.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/trace/why_hang.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <fstream>

#include <unistd.h>

namespace takt::rt {

char processLetter(int64_t pid) {
  // "PID (NAME) STATE ..."; the name may hold anything.
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  size_t end = line.rfind(')');
  return end != std::string::npos && end + 2 < line.size() ? line[end + 2]
                                                           : ' ';
}

std::optional<ProcessState> processState(const FlightInfo &info) {
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) != 0 || info.host != host ||
      info.pid <= 0)
    return std::nullopt;
  ProcessState state;
  state.exists = kill(pid_t(info.pid), 0) == 0 || errno == EPERM;
  char letter = processLetter(info.pid);
  state.isStopped = letter == 'T' || letter == 't';
  state.exists &= letter != 'Z';
  return state;
}

} // namespace takt::rt
