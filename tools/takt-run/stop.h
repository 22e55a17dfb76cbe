//===- stop.h - ending a run early and in order -------------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Ctrl-C and SIGTERM end a run after the step under way, so that weights,
// profile and trace are still written; a second signal ends it at once. A
// closed pipe is an error on the stream, not the end of the process.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <csignal>

namespace takt::run {

/// Catches the signals while it lives.
class StopOnSignal {
public:
  StopOnSignal() {
    request() = 0;
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
      std::signal(signal, [](int caught) {
        request() = 1;
        std::signal(caught, SIG_DFL);
      });
    std::signal(SIGPIPE, SIG_IGN);
  }
  ~StopOnSignal() {
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
      std::signal(signal, SIG_DFL);
  }
  StopOnSignal(const StopOnSignal &) = delete;
  StopOnSignal &operator=(const StopOnSignal &) = delete;

  static bool wanted() { return request() != 0; }

private:
  static volatile std::sig_atomic_t &request() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
};

} // namespace takt::run
