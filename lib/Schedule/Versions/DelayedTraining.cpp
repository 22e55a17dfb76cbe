//===- DelayedTraining.cpp - what old weights do to training --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/DelayedTraining.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace takt {

namespace {

using Vector = LinearTraining::Vector;

class Trainer {
public:
  Trainer(const LinearTraining &training, const StreamProblem &problem,
          const VersionReplay &replay, WeightPolicy policy)
      : training(training), problem(problem), replay(replay), policy(policy),
        velocity(problem.stages, square()) {
    history.push_back(training.weights);
  }

  WeightHistory run() {
    for (int32_t step = 0; step < problem.steps; ++step) {
      std::vector<Vector> sum(problem.stages, square());
      for (int32_t i = 0; i < problem.perStep; ++i)
        addGradient(step * problem.perStep + i, sum);
      update(sum);
    }
    return std::move(history);
  }

private:
  Vector square() const {
    return Vector(size_t(training.width) * training.width, 0.0);
  }

  void addGradient(int32_t m, std::vector<Vector> &sum) const {
    const int32_t n = training.width;
    std::vector<Vector> x = {training.inputs[m]};
    for (int32_t s = 0; s < problem.stages; ++s) {
      const Vector weights = readForward(s, m);
      Vector &out = x.emplace_back(n, 0.0);
      for (int32_t i = 0; i < n; ++i)
        for (int32_t j = 0; j < n; ++j)
          out[i] += weights[i * n + j] * x[s][j];
    }
    Vector g(n);
    for (int32_t i = 0; i < n; ++i)
      g[i] = x.back()[i] - training.targets[m][i];
    for (int32_t s = problem.stages - 1; s >= 0; --s) {
      const Vector weights = readBackward(s, m);
      Vector down(n, 0.0);
      for (int32_t i = 0; i < n; ++i)
        for (int32_t j = 0; j < n; ++j) {
          sum[s][i * n + j] += g[i] * x[s][j];
          down[j] += weights[i * n + j] * g[i];
        }
      g = std::move(down);
    }
  }

  void update(const std::vector<Vector> &sum) {
    std::vector<Vector> next = history.back();
    for (int32_t s = 0; s < problem.stages; ++s)
      for (size_t i = 0; i < next[s].size(); ++i) {
        velocity[s][i] = training.momentum * velocity[s][i] + sum[s][i];
        next[s][i] -= training.rate * velocity[s][i];
      }
    history.push_back(std::move(next));
  }

  Vector readForward(int32_t stage, int32_t m) const {
    return moved(stage, replay.forward[stage][m]);
  }

  Vector readBackward(int32_t stage, int32_t m) const {
    const int32_t version = replay.backward[stage][m];
    const int32_t apart = version - replay.forward[stage][m];
    if (policy != WeightPolicy::Blend || apart == 0)
      return moved(stage, version);
    const double share = std::pow(training.share, apart);
    const Vector &old = history[version - apart][stage];
    Vector mean = history[version][stage];
    for (size_t i = 0; i < mean.size(); ++i)
      mean[i] = share * old[i] + (1 - share) * mean[i];
    return mean;
  }

  /// The version, for look-ahead moved on along its last change.
  Vector moved(int32_t stage, int32_t version) const {
    Vector weights = history[version][stage];
    if (policy != WeightPolicy::LookAhead || version == 0)
      return weights;
    const Vector &before = history[version - 1][stage];
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] += training.reach * (weights[i] - before[i]);
    return weights;
  }

  const LinearTraining &training;
  const StreamProblem &problem;
  const VersionReplay &replay;
  WeightPolicy policy;
  WeightHistory history;
  std::vector<Vector> velocity;
};

} // namespace

std::optional<std::string>
LinearTraining::check(const StreamProblem &problem) const {
  if (width < 1 || width > 4096)
    return fmt::format("'width' is {}, not from 1 to 4096", width);
  const size_t square = size_t(width) * width;
  struct Part {
    const char *name;
    const std::vector<Vector> &values;
    size_t count, size;
  };
  for (const Part &part :
       {Part{"weights", weights, size_t(problem.stages), square},
        Part{"inputs", inputs, size_t(problem.microBatches()), size_t(width)},
        Part{"targets", targets, size_t(problem.microBatches()),
             size_t(width)}}) {
    if (part.values.size() != part.count)
      return fmt::format("there are {} '{}', not {}", part.values.size(),
                         part.name, part.count);
    for (const Vector &value : part.values)
      if (value.size() != part.size)
        return fmt::format("one of '{}' has {} numbers, not {}", part.name,
                           value.size(), part.size);
  }
  return std::nullopt;
}

WeightHistory trainDelayed(const LinearTraining &training,
                           const StreamProblem &problem,
                           const std::vector<int32_t> &delays) {
  VersionReplay versions;
  for (int32_t s = 0; s < problem.stages; ++s) {
    std::vector<int32_t> &reads = versions.forward.emplace_back();
    for (int32_t m = 0; m < problem.microBatches(); ++m)
      reads.push_back(std::max(problem.stepOf(m) - delays[s], 0));
  }
  versions.backward = versions.forward;
  return Trainer(training, problem, versions, WeightPolicy::Stash).run();
}

WeightHistory trainReplayed(const LinearTraining &training,
                            const StreamProblem &problem,
                            const VersionReplay &replay, WeightPolicy policy) {
  return Trainer(training, problem, replay, policy).run();
}

double largestStableRate(int32_t delay) {
  const double pi = std::acos(-1.0);
  return 2 * std::sin(pi / (4.0 * delay + 2));
}

double timeOneStepDelayed(int32_t steps, double update, double compute,
                          double reduce) {
  double computed = 0;                // end of the last step's compute
  double reduced = 0, reducedOne = 0; // of the gradients of the last two
  for (int32_t t = 0; t < steps; ++t) {
    computed = std::max(computed, reducedOne) + update + compute;
    reducedOne = reduced;
    reduced = std::max(computed, reduced) + reduce;
  }
  return reduced;
}

} // namespace takt
