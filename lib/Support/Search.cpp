//===- Search.cpp - what long searches tell, and how they end -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Those that run are kept in the order of their beginning; another thread than
// theirs looks at them under the lock.
//
//===----------------------------------------------------------------------===//
#include "takt/Support/Search.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

using namespace takt::search;

namespace {

std::atomic<bool> wanted{false};
static_assert(std::atomic<bool>::is_always_lock_free,
              "a signal handler sets it");

std::mutex lock; ///< of the lists
std::vector<const Running *> searches;
std::vector<const Breaker *> breakers;

template <typename T>
void add(std::vector<const T *> &list, const T *one) {
  const std::lock_guard guard(lock);
  list.push_back(one);
}

template <typename T>
void remove(std::vector<const T *> &list, const T *one) {
  const std::lock_guard guard(lock);
  list.erase(std::find(list.begin(), list.end(), one));
}

} // namespace

bool takt::search::interrupted() {
  return wanted.load(std::memory_order_relaxed);
}
void takt::search::interrupt() { wanted = true; }
void takt::search::clearInterrupt() { wanted = false; }

const char *takt::search::whyEnded() {
  return interrupted() ? "interrupted" : "work limit";
}

Running::Running(std::string rung) : state{std::move(rung), {}, {}} {
  add(searches, this);
}

Running::~Running() { remove(searches, this); }

void Running::setBest(int64_t best) {
  const std::lock_guard guard(lock);
  state.best = best;
}

void Running::setBound(int64_t bound) {
  const std::lock_guard guard(lock);
  state.bound = bound;
}

std::optional<State> takt::search::running() {
  const std::lock_guard guard(lock);
  if (searches.empty())
    return std::nullopt;
  return searches.back()->state;
}

Breaker::Breaker(std::function<void()> end) : end(std::move(end)) {
  add(breakers, this);
}

Breaker::~Breaker() { remove(breakers, this); }

bool takt::search::callBreakers() {
  const std::lock_guard guard(lock);
  for (const Breaker *breaker : breakers)
    breaker->end();
  return !breakers.empty();
}
