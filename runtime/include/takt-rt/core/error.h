//===- error.h - failures and exit codes ------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The runtime reports failures by throwing `Error`; the tools catch it in main,
// print `tool: error: message` on stderr and exit with its code.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <stdexcept>
#include <string>

namespace takt::rt {

/// Exit codes of all Takt tools.
enum class ExitCode : int {
  Done = 0,
  BadInput = 1,       ///< bad input or failed verification
  Usage = 2,          ///< wrong command line
  Infeasible = 3,     ///< proven infeasible
  LimitReached = 4,   ///< limit reached without an answer
  DoesNotFit = 10,    ///< plan does not fit this machine
  Communication = 11, ///< communication failed
  Timeout = 12,       ///< timeout, report written
  PeerFailed = 13,    ///< a peer failed
  Internal = 70,      ///< internal error
};

class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message, ExitCode code = ExitCode::BadInput)
      : std::runtime_error(message), exitCode(code) {}
  ExitCode code() const { return exitCode; }

private:
  ExitCode exitCode;
};

} // namespace takt::rt
