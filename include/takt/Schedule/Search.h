//===- Search.h - the shortest schedule of a small pipeline ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One stage a rank, equal micro-batches, times known: which order of forward
// and backward actions ends first, if a stage may hold only so many
// micro-batches at once? A list schedule answers at once, the constraint solver
// improves it or proves it shortest.
//
// Micro-batches are equal, so some shortest schedule handles them in order: if
// the k-th forward of a stage starts when the k-th of the stage before has
// ended, renumbering by place keeps every rule, and so for the backward
// actions. Only the interleaving of kinds is left to decide, which is what the
// search does; nothing is lost.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Schedule.h"
#include "takt/Solver/Solver.h"

#include "takt-rt/core/plan.h"

namespace takt {

using rt::Nanos;

/// The last action of a stage that needs a buffer at one of its ends.
enum class HeldUntil : uint8_t {
  Forward,
  InputGrad, ///< B where backward is whole, as the next
  WeightGrad,
};

/// Times of one stage for one micro-batch; all in one unit of choice.
struct SearchStage {
  Nanos forward = 1;    ///< at least 1, as the next two
  Nanos inputGrad = 1;  ///< I; of B the time is I + W
  Nanos weightGrad = 1; ///< W
  Nanos toNext = 0;     ///< between a forward here and the one it feeds
  Nanos toPrevious = 0; ///< between a backward here and the one it feeds
  Nanos tail = 0;       ///< follows the last action here: all-reduce, update
  /// Most micro-batches whose forward has begun and whose B or W has not
  /// ended; 0: no limit.
  int32_t mostInFlight = 0;
  // Read only where buffers are limited:
  HeldUntil inputHeld = HeldUntil::WeightGrad;
  HeldUntil outputHeld = HeldUntil::Forward;
  HeldUntil outputGradHeld = HeldUntil::InputGrad; ///< or WeightGrad; so the next
  HeldUntil inputGradHeld = HeldUntil::InputGrad;
};

struct SearchProblem {
  std::vector<SearchStage> stages;
  int32_t microBatches = 1;
  bool split = false; ///< I and W apart; else B
  /// As in compiled plans: transfers of a direction take turns, and each needs a
  /// free buffer at either end. An end has one buffer more than the order of its
  /// actions holds at once. Else transfers need nothing but time.
  bool limitedBuffers = false;

  int64_t numActions() const {
    return int64_t(stages.size()) * microBatches * (split ? 3 : 2);
  }
  std::optional<std::string> check() const;
};

/// Actions that the search takes on; the solver is dependable up to there.
constexpr int64_t kMostSearchActions = 100;

struct SearchResult {
  Schedule schedule;
  solver::Failure failure; ///< of the solver; the rest is valid all the same
  Nanos makespan = 0; ///< from the first start to the last end, tails included
  Nanos bound = 0;    ///< proven: no schedule is shorter
  /// "list schedule", "1f1b", "gpipe" or "Z3": who found the schedule.
  std::string method;
  int64_t work = 0; ///< of the solver
  double gap() const {
    return bound > 0 ? double(makespan - bound) / double(bound) : 0;
  }
};

/// A bound from sums alone: the load of each stage between what must come
/// before and after it, and how often the micro-batches that fit at once must
/// be turned over.
Nanos leastMakespan(const SearchProblem &problem);

/// Whoever can start does, backward before forward or the other way round:
/// several rules under several limits of micro-batches in flight, each named
/// "list schedule".
std::vector<Schedule> listSchedules(const SearchProblem &problem);

/// 1F1B and GPipe, under their names, with B cut into I and W where the problem
/// is split; those only that keep the limits in flight.
std::vector<Schedule> generatedSchedules(const SearchProblem &problem);

/// The best of these: the shortest, and of equals the one with fewest
/// micro-batches in flight, summed over the stages.
Schedule bestKnown(const SearchProblem &problem);

/// The same order with forwards put off as far as the makespan allows: fewer
/// micro-batches in flight at no cost.
Schedule withFewerInFlight(const SearchProblem &problem, Schedule schedule);

/// The problem must pass `check()`. With `fromList` the solver is asked only
/// where the best known schedule does not reach the bound; without, it has to
/// find a schedule of its own. Never longer than the best known, nor with more in
/// flight at equal length.
///
/// Where buffers are limited the solver assumes as many as the limits in flight
/// allow, which is the least that an order could be held up by: its bound holds,
/// and what it finds is timed with the buffers that its order has.
SearchResult searchSchedule(const SearchProblem &problem,
                            const solver::Settings &settings,
                            bool fromList = true);

/// Time of a schedule when every action starts as early as it can; nothing if
/// it cannot run.
std::optional<Nanos> makespan(const SearchProblem &problem,
                              const Schedule &schedule);

/// Independent check: complete, executable (`verify` of Schedule.h), limits
/// kept, the makespan recomputed. First fault or nothing.
std::optional<std::string> verify(const SearchProblem &problem,
                                  const SearchResult &result);

} // namespace takt
