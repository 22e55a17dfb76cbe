//===- Watch.cpp - progress and Ctrl-C of a compilation -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The signal handler only sets a flag and wakes a thread, which does what no
// handler may: it calls into the constraint solver, and it prints.
//
//===----------------------------------------------------------------------===//
#include "Watch.h"

#include "takt/Support/Quantity.h"
#include "takt/Support/Search.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace takt;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBetweenLines = 1000, kBetweenBreaks = 20; // milliseconds

std::atomic<int> wakeFile{-1};
char unfinished[PATH_MAX];
std::atomic<bool> isUnfinished{false};

extern "C" void takeInterrupt(int) {
  const int saved = errno;
  if (search::interrupted()) {
    if (isUnfinished)
      unlink(unfinished);
    _exit(kInterruptedExit);
  }
  search::interrupt();
  // A full pipe wakes the thread as well.
  [[maybe_unused]] const ssize_t written = write(wakeFile, "i", 1);
  errno = saved;
}

/// Writes without the streams, whose buffers belong to the main thread.
void writeAll(const std::string &text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t count =
        write(STDERR_FILENO, text.data() + at, text.size() - at);
    if (count < 0 && errno != EINTR)
      return; // nobody reads it: no reason to end the search
    at += count < 0 ? 0 : size_t(count);
  }
}

size_t columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20)
    return 80;
  return size.ws_col;
}

std::string lineOf(const search::State &state, double elapsed) {
  std::string line = state.rung;
  const char *mark = ": ";
  auto add = [&](const std::string &text) {
    line += mark + text;
    mark = ", ";
  };
  if (state.best)
    add("best " + formatTime(*state.best));
  if (state.bound)
    add("bound " + formatTime(*state.bound));
  if (state.best && state.bound && *state.bound > 0)
    add(fmt::format("gap {:.2f} %", 100 * double(*state.best - *state.bound) /
                                        double(*state.bound)));
  add(fmt::format("{:.0f} s", elapsed));
  return line;
}

} // namespace

Watch::Watch(bool progress)
    : progress(progress), inPlace(isatty(STDERR_FILENO) != 0) {
  if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0)
    throw rt::Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)),
                    rt::ExitCode::Internal);
  search::clearInterrupt();
  wakeFile = wake[1];
  // The handler is to run where files are written, never beside it.
  sigset_t interrupts, old;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupts, &old);
  thread = std::thread([this] { look(); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  struct sigaction taken = {};
  taken.sa_handler = takeInterrupt;
  taken.sa_flags = SA_RESTART;
  sigemptyset(&taken.sa_mask);
  sigaction(SIGINT, nullptr, &before);
  if (before.sa_handler != SIG_IGN)
    sigaction(SIGINT, &taken, nullptr);
}

Watch::~Watch() {
  endProgress();
  sigaction(SIGINT, &before, nullptr);
  wakeFile = -1;
  {
    const std::lock_guard guard(lock);
    ended = true;
  }
  while (write(wake[1], "e", 1) < 0 && errno == EINTR)
    ;
  thread.join();
  close(wake[0]);
  close(wake[1]);
}

void Watch::look() {
  const Clock::time_point begin = Clock::now();
  Clock::time_point next = begin + std::chrono::milliseconds(kBetweenLines);
  int timeout = 0;
  for (;;) {
    pollfd waiting{wake[0], POLLIN, 0};
    poll(&waiting, 1, timeout);
    char bytes[64];
    while (read(wake[0], bytes, sizeof bytes) > 0)
      ;
    const bool breaking = search::interrupted();
    if (breaking)
      search::callBreakers();
    const std::lock_guard guard(lock);
    if (ended)
      return;
    const Clock::time_point now = Clock::now();
    if (progress && now >= next) {
      print(std::chrono::duration<double>(now - begin).count());
      next = now + std::chrono::milliseconds(kBetweenLines);
    }
    timeout = breaking ? kBetweenBreaks : progress ? kBetweenLines / 4 : -1;
  }
}

void Watch::print(double elapsed) {
  const std::optional<search::State> state = search::running();
  if (!state)
    return;
  std::string line = "taktc: " + lineOf(*state, elapsed);
  if (!inPlace) {
    writeAll(line + "\n");
    return;
  }
  // A line that wraps could not be taken back.
  line = line.substr(0, columns() - 1);
  const size_t length = line.size();
  if (length < shown)
    line += std::string(shown - length, ' ');
  writeAll("\r" + line);
  shown = length;
}

void Watch::erase() {
  if (shown > 0)
    writeAll("\r" + std::string(shown, ' ') + "\r");
  shown = 0;
}

void Watch::endProgress() {
  const std::lock_guard guard(lock);
  progress = false;
  erase();
}

UnfinishedFile::UnfinishedFile(const std::string &path) {
  if (path.size() >= sizeof unfinished)
    return; // no system makes such a file
  std::strcpy(unfinished, path.c_str());
  isUnfinished = true;
}

UnfinishedFile::~UnfinishedFile() { isUnfinished = false; }
