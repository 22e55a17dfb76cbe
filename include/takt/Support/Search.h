//===- Search.h - what long searches tell, and how they end -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A search that may take long says what it has while it runs, and ends with
// that when the process is interrupted. Both are matters of the whole process,
// as Ctrl-C is: one interrupt ends every search, also those that follow, which
// then take their first answer. Without an interrupt nothing here has an
// influence on an answer.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace takt::search {

/// Whether searches are to end with the best they have.
bool interrupted();
/// Safe in a signal handler. It does not wait for any search.
void interrupt();
/// For tests, and for programs that go on after an interrupt.
void clearInterrupt();

/// "interrupted" or "work limit": why a search ended without a proof.
const char *whyEnded();

/// What the search that began last has, in nanoseconds.
struct State {
  std::string rung; ///< "stages: exact search"
  std::optional<int64_t> best, bound;
};
/// Nothing while no search runs. Safe from any thread.
std::optional<State> running();

/// A search that runs as long as this lives. Searches may be nested.
class Running {
public:
  explicit Running(std::string rung);
  ~Running();
  Running(const Running &) = delete;
  Running &operator=(const Running &) = delete;

  void setBest(int64_t best);
  void setBound(int64_t bound);

private:
  friend std::optional<State> running();
  State state;
};

/// Something that ends a computation which cannot ask `interrupted` itself.
/// It is called from another thread, perhaps several times, and never after the
/// destructor has returned.
class Breaker {
public:
  explicit Breaker(std::function<void()> end);
  ~Breaker();
  Breaker(const Breaker &) = delete;
  Breaker &operator=(const Breaker &) = delete;

private:
  friend bool callBreakers();
  const std::function<void()> end;
};
/// Calls those that live; whether there was one. An interrupt that falls
/// between a breaker's birth and the start of what it ends has no effect, so
/// this is repeated.
bool callBreakers();

} // namespace takt::search
