//===- crew.cpp - the threads behind a trainer ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The owner's side of a step, and the loop that each thread runs.
//
//===----------------------------------------------------------------------===//

#include "crew.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/hang.h"
#include "takt-rt/core/proof.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt::host {

static bool hasCoreForEach(int32_t ranks) {
  return ranks <= int32_t(std::thread::hardware_concurrency());
}

/// Where every rank has a core of its own an idle rank polls for a while, as
/// waking a thread takes longer than most messages; otherwise it would take
/// time from the rank it waits for.
static Nanos spinTime(int32_t ranks) {
  constexpr Nanos kSpin = 100'000;
  return hasCoreForEach(ranks) ? kSpin : 0;
}

Crew::Crew(const Plan &plan, const Source &source, Exchange &exchange,
           const std::vector<int32_t> &numbers, const Interrupt &interrupt,
           const Patience &patience)
    : plan(plan), exchange(exchange), interrupt(interrupt), patience(patience),
      spin(spinTime(plan.numRanks())) {
  for (int32_t rank : numbers) {
    ranks.push_back(std::make_unique<Worker>(plan, rank, exchange, source));
    ranks.back()->device().setSharesCores(!hasCoreForEach(plan.numRanks()));
  }
  try {
    for (std::unique_ptr<Worker> &rank : ranks)
      threads.emplace_back([this, &rank] { loop(*rank); });
  } catch (const std::system_error &error) {
    stop();
    throw Error(
        fmt::format("cannot start {} threads: {}", size(), error.what()),
        ExitCode::DoesNotFit);
  }
}

Crew::~Crew() {
  stop();
  exchange.quiesce(); // nothing may arrive in memory that goes now
}

void Crew::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    quit = true;
    stopping = true;
  }
  stepStarts.notify_all();
  exchange.ringAll();
  for (std::thread &thread : threads)
    if (thread.joinable())
      thread.join();
}

HostDevice *Crew::device(int32_t rank) const {
  for (const std::unique_ptr<Worker> &worker : ranks)
    if (worker->rank() == rank)
      return &worker->device();
  return nullptr;
}

void Crew::loop(Worker &rank) {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      stepStarts.wait(lock, [&] { return quit || generation != seen; });
      if (quit)
        return;
      seen = generation;
    }
    std::exception_ptr error;
    try {
      rank.run(currentStep, start, spin, [this] { return isStopped(); });
    } catch (...) {
      error = std::current_exception();
    }
    {
      std::lock_guard<std::mutex> lock(mutex);
      ++arrived;
      if (error && !failure)
        failure = error;
      if (error)
        stopping = true;
    }
    if (error)
      exchange.ringAll();
    stepEnds.notify_one();
  }
}

//===----------------------------------------------------------------------===//
// The owner's side
//===----------------------------------------------------------------------===//

uint64_t Crew::progress() const {
  uint64_t sum = 0;
  for (const std::unique_ptr<Worker> &rank : ranks)
    sum += rank->progress();
  return sum;
}

/// Waits until all ranks have ended the step; false once nothing has moved for
/// as long as patience allows.
bool Crew::watch(std::unique_lock<std::mutex> &lock) {
  using Seconds = std::chrono::duration<double>;
  uint64_t last = progress();
  Clock::time_point since = Clock::now();
  while (arrived < size()) {
    stepEnds.wait_for(lock, Seconds(std::min(patience.seconds() / 8, 1.0)));
    uint64_t now = progress();
    if (now != last || isStopped()) {
      last = now;
      since = Clock::now();
    }
    if (arrived < size() &&
        Seconds(Clock::now() - since).count() > patience.seconds())
      return false;
  }
  return true;
}

Nanos Crew::runStep(int64_t step) {
  std::unique_lock<std::mutex> lock(mutex);
  if (stopping)
    throw Error("training has stopped after a failure", ExitCode::Internal);
  interrupt.check();
  currentStep = step;
  arrived = 0;
  ++generation;
  start = Clock::now();
  stepStarts.notify_all();
  bool hangs = !watch(lock);
  if (hangs) {
    stopping = true;
    exchange.ringAll();
    stepEnds.wait(lock, [&] { return arrived == size(); });
  }
  if (failure)
    std::rethrow_exception(failure);
  interrupt.check();
  if (hangs)
    throw Error(hangReport(step), ExitCode::Timeout);
  Clock::time_point end = start;
  for (const std::unique_ptr<Worker> &rank : ranks)
    end = std::max(end, rank->end());
  return (end - start) / std::chrono::nanoseconds(1);
}

//===----------------------------------------------------------------------===//
// What a hang looks like
//===----------------------------------------------------------------------===//

/// Who waits for whom, as far as this process knows.
std::string Crew::chain() const {
  if (size() != plan.numRanks())
    return fmt::format("rank{} {} of {}", size() > 1 ? "s from" : "",
                       ranks.front()->rank(), plan.numRanks());
  std::vector<const Interpreter *> interpreters;
  for (const std::unique_ptr<Worker> &rank : ranks)
    interpreters.push_back(&rank->interpreter());
  std::string text = explainHang(plan, interpreters);
  if (std::optional<ProofFailure> why = explainStuck(plan, interpreters)) {
    text += fmt::format("\n  {}: {}", ruleName(why->rule), why->text);
    for (const ProofEnd &end : why->ends)
      text += fmt::format("\n  end: rank {} lane '{}' instruction {}: {}",
                          end.rank, end.lane, end.instr, end.action);
  }
  return text;
}

/// The chain of who waits for whom, then every rank that is not finished.
std::string Crew::hangReport(int64_t step) const {
  constexpr size_t kMostRanks = 16;
  std::string text = fmt::format("nothing moved for {:g} s in step {}: {}",
                                 patience.seconds(), step + 1, chain());
  size_t stuck = 0;
  for (const std::unique_ptr<Worker> &rank : ranks)
    if (!rank->interpreter().finished() && ++stuck <= kMostRanks)
      text += rank->report();
  if (stuck > kMostRanks)
    text += fmt::format("\n  and {} more ranks", stuck - kMostRanks);
  return text;
}

} // namespace takt::rt::host
