//===- PivotLatency.cpp - DAPPLE's formula and what it estimates ----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The pivot rule as published, and the schedule itself run micro-batch by
// micro-batch.
//
//===----------------------------------------------------------------------===//
#include "takt/Partition/Costs/Dapple.h"

#include <algorithm>

namespace takt {

int64_t pivotOf(const std::vector<PivotPhase> &phases, int64_t microBatches) {
  const double more = double(microBatches - 1);
  int64_t pivot = int64_t(phases.size()) - 1;
  double between = 0; // phases after s and before the pivot
  for (int64_t s = pivot - 1; s >= 0; --s) {
    const PivotPhase &phase = phases[s], &best = phases[pivot];
    if (more * (phase.forward + phase.backward) >
        more * (best.forward + best.backward) + between) {
      pivot = s;
      between = 0;
    } else {
      between += phase.forward + phase.backward;
    }
  }
  return pivot;
}

double pivotSeconds(const std::vector<PivotPhase> &phases,
                    int64_t microBatches) {
  const int64_t pivot = pivotOf(phases, microBatches);
  const int64_t count = int64_t(phases.size());
  double warmUp = 0, ending = 0, backward = 0;
  for (int64_t s = pivot; s >= 0; --s) {
    warmUp += phases[s].forward;
    backward += phases[s].backward;
    const double end = phases[s].allReduce + backward;
    ending = s == pivot ? end : std::max(ending, end);
  }
  backward = 0;
  for (int64_t s = pivot + 1; s < count; ++s) {
    backward += phases[s].backward;
    ending = std::max(ending, phases[s].allReduce - backward);
  }
  const PivotPhase &steady = phases[pivot];
  return warmUp +
         double(microBatches - 1) * (steady.forward + steady.backward) + ending;
}

namespace {

/// The schedule in order of completion: each stage knows which of its calls is
/// next, each boundary when it is free either way.
class Replay {
public:
  Replay(const std::vector<PivotPhase> &phases,
         const std::vector<int64_t> &warmUp, int64_t microBatches)
      : phases(phases), warmUp(warmUp), count(microBatches),
        stages(int64_t(phases.size() + 1) / 2), done(stages),
        forwards(stages, std::vector<double>(size_t(count), kUnknown)),
        backwards(forwards), clock(stages), free(2 * stages) {}

  double run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int64_t s = 0; s < stages; ++s)
        while (next(s))
          moved = true;
    }
    double end = 0;
    for (int64_t s = 0; s < stages; ++s)
      end = std::max(end, clock[s] + phases[2 * s].allReduce);
    return end;
  }

private:
  static constexpr double kUnknown = -1;

  /// Runs the next call of a stage if its input has come.
  bool next(int64_t s) {
    const int64_t at = done[s];
    if (at == 2 * count)
      return false;
    // warmUp forwards, then backward and forward in turn, then backwards.
    const int64_t warm = std::clamp<int64_t>(warmUp[s], 1, count);
    const int64_t steady = at - warm;
    const bool forward =
        steady < 0 || (steady % 2 == 1 && steady < 2 * (count - warm));
    const int64_t m = forward ? (steady < 0 ? at : warm + steady / 2)
                      : steady < 2 * (count - warm) ? steady / 2
                                                    : steady - (count - warm);
    const double ready = forward ? forwards[s][m] : backwards[s][m];
    const bool isFirst = forward && s == 0, turns = !forward && s + 1 == stages;
    if (!isFirst && !turns && ready == kUnknown)
      return false;
    const double begin = std::max(clock[s], isFirst || turns ? 0 : ready);
    clock[s] =
        begin + (forward ? phases[2 * s].forward : phases[2 * s].backward);
    ++done[s];
    if (forward && s + 1 < stages)
      forwards[s + 1][m] =
          carry(free[2 * s], clock[s], phases[2 * s + 1].forward);
    if (!forward && s > 0)
      backwards[s - 1][m] =
          carry(free[2 * s - 1], clock[s], phases[2 * s - 1].backward);
    return true;
  }

  static double carry(double &free, double from, double time) {
    free = std::max(free, from) + time;
    return free;
  }

  const std::vector<PivotPhase> &phases;
  const std::vector<int64_t> &warmUp;
  const int64_t count, stages;
  std::vector<int64_t> done;
  std::vector<std::vector<double>> forwards, backwards; ///< arrivals
  std::vector<double> clock;
  std::vector<double> free; ///< of boundary s: 2 s forth, 2 s + 1 back
};

} // namespace

double replaySeconds(const std::vector<PivotPhase> &phases,
                     const std::vector<int64_t> &warmUp, int64_t microBatches) {
  return Replay(phases, warmUp, microBatches).run();
}

} // namespace takt
