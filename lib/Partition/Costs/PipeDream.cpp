//===- PipeDream.cpp - stages by PipeDream's cost model -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A dynamic program a level: the best time of what lies between two states on
// so many devices, over the last stage. Only the outermost level can do with
// the ranges from the beginning.
//
//===----------------------------------------------------------------------===//
#include "PipeDreamCosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace takt {

using namespace partition;

std::optional<std::string> PipeDreamProblem::check() const {
  if (states.empty())
    return "there is nothing to assign: there are no states";
  if (levels.empty())
    return "there are no devices: no level of links is given";
  double devices = 1;
  for (const LinkLevel &level : levels) {
    if (level.devices < 1 || level.devices > 4096)
      return fmt::format("a level needs 1 to 4096 devices, not {}",
                         level.devices);
    if (!(level.bytesPerSecond > 0) || !std::isfinite(level.bytesPerSecond))
      return "the bandwidth of a level must be positive";
    devices *= double(level.devices);
  }
  if (devices > 1 << 24)
    return fmt::format("{} devices are more than can be planned", devices);
  if (!(memoryBytes >= 0))
    return "the memory of a device is negative";
  for (size_t i = 0; i < replicaOptions.size(); ++i)
    if (replicaOptions[i] < 1 ||
        (i > 0 && replicaOptions[i] <= replicaOptions[i - 1]))
      return "replica counts must ascend from 1";
  for (size_t i = 0; i < states.size(); ++i) {
    const ProfileState &state = states[i];
    for (const double figure : {state.seconds, state.activationBytes,
                                state.parameterBytes, state.outputBytes})
      if (!(figure >= 0) || !std::isfinite(figure))
        return fmt::format("state {} has a negative figure", i);
    if ((i == 0) != state.before.empty())
      return fmt::format("state {} must {} the first", i,
                         i == 0 ? "be" : "come after");
    for (size_t b = 0; b < state.before.size(); ++b)
      if (state.before[b] < (b == 0 ? 0 : state.before[b - 1] + 1) ||
          state.before[b] >= int32_t(i))
        return fmt::format("the states before state {} are not in order", i);
  }
  if (states.back().before.size() + 1 != states.size())
    return "the last state must come after all others";
  return std::nullopt;
}

namespace {

/// `seconds` of the range on `devices`, whose last stage starts after state
/// `split` with `last` replicas.
struct Cell {
  double seconds = kNoPlan;
  int32_t split = -1, last = 0;
};

class Level {
public:
  Level(const PipeDreamProblem &problem, size_t level, const RangeTimes &times,
        int64_t &work)
      : costs(problem, level), times(times), count(problem.states.size()),
        devices(problem.levels[level].devices), work(work),
        isLast(level + 1 == problem.levels.size()) {
    const int32_t begins = isLast ? 1 : int32_t(count);
    for (int32_t begin = 0; begin < begins; ++begin)
      fill(begin);
  }

  const Cell &at(int32_t begin, int32_t end, int64_t used) const {
    return cells[size_t(begin)]
                [size_t(end - begin) * size_t(devices) + size_t(used) - 1];
  }

  /// The stages of a range on all devices, without what is within them.
  std::vector<PipeDreamStage> stages(int32_t begin, int32_t end) const {
    std::vector<PipeDreamStage> found;
    int64_t used = devices;
    for (int32_t at = end;;) {
      const Cell &cell = this->at(begin, at, used);
      const int32_t first = cell.split < 0 ? begin : cell.split + 1;
      found.push_back({first, at + 1, cell.last, {}});
      if (cell.split < 0)
        break;
      used -= cell.last;
      at = cell.split;
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

private:
  void fill(int32_t begin) {
    auto &row = cells.emplace_back(size_t(count - begin) * size_t(devices));
    for (int32_t end = begin; end < count; ++end) {
      if (!costs.isRange(begin, end))
        continue;
      // States between, each with a whole range before it and after it.
      splits.clear();
      for (const int32_t k : costs.before(end))
        if (k >= begin && costs.isRange(begin, k))
          splits.push_back(k);
      for (int64_t used = 1; used <= devices; ++used)
        row[size_t(end - begin) * size_t(devices) + size_t(used) - 1] =
            best(begin, end, used);
    }
  }

  Cell best(int32_t begin, int32_t end, int64_t used) {
    Cell cell;
    if (costs.mayReplicate(used) && costs.fits(begin, end, used, used))
      cell = {costs.alone(begin, end, times.at(begin, end), used), -1,
              int32_t(used)};
    for (int64_t last = 1; last < used; ++last) {
      if (!costs.mayReplicate(last))
        continue;
      const double leaving = costs.leaving(end, last);
      for (const int32_t split : splits) {
        ++work;
        const double time = std::max(
            {at(begin, split, used - last).seconds,
             costs.stage(split + 1, end, times.at(split + 1, end), last),
             costs.crossing(split, last), leaving});
        if (time < cell.seconds && costs.fits(split + 1, end, last, used))
          cell = {time, split, int32_t(last)};
      }
    }
    return cell;
  }

  const PipeDreamCosts costs;
  const RangeTimes &times;
  const int32_t count;
  const int64_t devices;
  int64_t &work;
  const bool isLast;
  std::vector<std::vector<Cell>> cells; ///< by begin, then end and devices
  std::vector<int32_t> splits;
};

void divide(const std::vector<Level> &levels, size_t level,
            PipeDreamStage &stage) {
  if (level == 0)
    return;
  stage.inner = levels[level - 1].stages(stage.begin, stage.end - 1);
  for (PipeDreamStage &part : stage.inner)
    divide(levels, level - 1, part);
}

} // namespace

std::optional<PipeDreamPlan> solvePipeDream(const PipeDreamProblem &problem) {
  if (problem.check())
    return std::nullopt;
  const int32_t last = int32_t(problem.states.size()) - 1;
  PipeDreamPlan plan;
  std::vector<RangeTimes> times;
  times.reserve(problem.levels.size());
  times.emplace_back(problem);
  std::vector<Level> levels;
  levels.reserve(problem.levels.size());
  for (size_t l = 0; l < problem.levels.size(); ++l) {
    levels.emplace_back(problem, l, times.back(), plan.work);
    if (l + 1 == problem.levels.size())
      break;
    const Level &within = levels.back();
    times.emplace_back(problem, [&](int32_t begin, int32_t end) {
      return within.at(begin, end, problem.levels[l].devices).seconds;
    });
  }
  plan.seconds =
      levels.back().at(0, last, problem.levels.back().devices).seconds;
  if (plan.seconds == kNoPlan)
    return std::nullopt;
  plan.stages = levels.back().stages(0, last);
  for (PipeDreamStage &stage : plan.stages)
    divide(levels, levels.size() - 1, stage);
  return plan;
}

} // namespace takt
