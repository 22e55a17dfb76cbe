//===- crew.cpp - the threads behind a trainer ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The step loop of a rank is: advance until nothing moves, then sleep until the
// rank's bell rings. The bell is read before advancing, so no ring is missed.
//
//===----------------------------------------------------------------------===//

#include "crew.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/hang.h"
#include "takt-rt/core/proof.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt::host {

/// Where every rank has a core of its own an idle rank polls for a while, as
/// waking a thread takes longer than most messages; otherwise it would take
/// time from the rank it waits for.
static Nanos spinTime(int32_t ranks) {
  constexpr Nanos kSpin = 100'000;
  return ranks <= int32_t(std::thread::hardware_concurrency()) ? kSpin : 0;
}

Crew::Crew(const Plan &plan, const Source &source, double timeoutSeconds)
    : plan(plan), exchange(plan), timeoutSeconds(timeoutSeconds),
      spin(spinTime(plan.numRanks())) {
  for (int32_t r = 0; r < plan.numRanks(); ++r) {
    ranks.push_back(std::make_unique<Rank>());
    ranks[r]->device = std::make_unique<HostDevice>(plan, r, exchange, source);
    ranks[r]->interpreter =
        std::make_unique<Interpreter>(plan, r, *ranks[r]->device);
  }
  try {
    for (int32_t r = 0; r < size(); ++r)
      ranks[r]->thread = std::thread([this, r] { loop(r); });
  } catch (const std::system_error &error) {
    stop();
    throw Error(
        fmt::format("cannot start {} threads: {}", size(), error.what()),
        ExitCode::DoesNotFit);
  }
}

Crew::~Crew() { stop(); }

void Crew::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    quit = true;
    stopping = true;
  }
  stepStarts.notify_all();
  exchange.ringAll();
  for (std::unique_ptr<Rank> &rank : ranks)
    if (rank->thread.joinable())
      rank->thread.join();
}

//===----------------------------------------------------------------------===//
// A rank's thread
//===----------------------------------------------------------------------===//

void Crew::loop(int32_t rank) {
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
      runRank(rank);
    } catch (...) {
      error = std::current_exception();
    }
    ranks[rank]->end = Clock::now();
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

void Crew::runRank(int32_t index) {
  Rank &rank = *ranks[index];
  Bell &bell = exchange.bell(index);
  rank.device->beginStep(currentStep, start);
  rank.interpreter->reset();
  while (!rank.interpreter->finished()) {
    uint64_t rings = bell.rings();
    if (stopping)
      return;
    if (rank.interpreter->advance())
      rank.progress.fetch_add(1, std::memory_order_relaxed);
    else
      bell.wait(rings, spin);
  }
  rank.device->endStep();
}

//===----------------------------------------------------------------------===//
// The owner's side
//===----------------------------------------------------------------------===//

uint64_t Crew::progress() const {
  uint64_t sum = 0;
  for (const std::unique_ptr<Rank> &rank : ranks)
    sum += rank->progress.load(std::memory_order_relaxed);
  return sum;
}

/// Waits until all ranks have ended the step; false once nothing has moved for
/// the whole timeout.
bool Crew::watch(std::unique_lock<std::mutex> &lock) {
  using Seconds = std::chrono::duration<double>;
  uint64_t last = progress();
  Clock::time_point since = Clock::now();
  while (arrived < size()) {
    stepEnds.wait_for(lock, Seconds(std::min(timeoutSeconds / 8, 1.0)));
    uint64_t now = progress();
    if (now != last || stopping) {
      last = now;
      since = Clock::now();
    }
    if (arrived < size() &&
        Seconds(Clock::now() - since).count() > timeoutSeconds)
      return false;
  }
  return true;
}

Nanos Crew::runStep(int64_t step) {
  std::unique_lock<std::mutex> lock(mutex);
  if (stopping)
    throw Error("training has stopped after a failure", ExitCode::Internal);
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
  if (hangs)
    throw Error(hangReport(step), ExitCode::Timeout);
  Clock::time_point end = start;
  for (const std::unique_ptr<Rank> &rank : ranks)
    end = std::max(end, rank->end);
  return (end - start) / std::chrono::nanoseconds(1);
}

//===----------------------------------------------------------------------===//
// What a hang looks like
//===----------------------------------------------------------------------===//

/// The lanes of a rank with an instruction under way.
std::string Crew::rankReport(int32_t index) const {
  const Rank &rank = *ranks[index];
  const Role &role = plan.roles[plan.roleOf(index)];
  std::string text;
  for (size_t i = 0; i < role.lanes.size(); ++i) {
    int64_t at = rank.interpreter->underWay(i);
    if (at < 0)
      continue;
    std::string peer = rank.device->waitingFor(i);
    text += fmt::format("\n  rank {} lane '{}': {} ({} of {}) under way{}",
                        index, role.lanes[i].name,
                        actionText(plan, role, role.lanes[i].instrs[at]),
                        at + 1, role.lanes[i].instrs.size(),
                        peer.empty() ? "" : ", waits for " + peer);
  }
  return text.empty() ? fmt::format("\n  rank {}: nothing under way", index)
                      : text;
}

/// The chain of who waits for whom, then every rank that is not finished.
std::string Crew::hangReport(int64_t step) const {
  constexpr int32_t kMostRanks = 16;
  std::vector<const Interpreter *> interpreters;
  std::vector<int32_t> stuck;
  for (int32_t r = 0; r < size(); ++r) {
    interpreters.push_back(ranks[r]->interpreter.get());
    if (!interpreters.back()->finished())
      stuck.push_back(r);
  }
  std::string text =
      fmt::format("nothing moved for {:g} s in step {}: {}", timeoutSeconds,
                  step + 1, explainHang(plan, interpreters));
  if (std::optional<ProofFailure> why = explainStuck(plan, interpreters)) {
    text += fmt::format("\n  {}: {}", ruleName(why->rule), why->text);
    for (const ProofEnd &end : why->ends)
      text += fmt::format("\n  end: rank {} lane '{}' instruction {}: {}",
                          end.rank, end.lane, end.instr, end.action);
  }
  for (size_t i = 0; i < stuck.size() && i < kMostRanks; ++i)
    text += rankReport(stuck[i]);
  if (stuck.size() > kMostRanks)
    text += fmt::format("\n  and {} more ranks", stuck.size() - kMostRanks);
  return text;
}

} // namespace takt::rt::host
