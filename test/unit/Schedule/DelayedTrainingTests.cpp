//===- DelayedTrainingTests.cpp - streams train to the reference's bits ---===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The parallel side of the comparison is a small executor that knows nothing of
// tags: each stage has its newest weights, copies that policies tell it to
// keep, and messages.
//
//===----------------------------------------------------------------------===//

#include "VersionStreams.h"

#include "takt/Schedule/DelayedTraining.h"

#include <cmath>
#include <map>
#include <random>

using namespace takt;

namespace {

using Vector = LinearTraining::Vector;
using Kind = StreamAction::Kind;

LinearTraining randomTraining(const StreamProblem &problem, int32_t width) {
  std::mt19937 random(problem.stages + 31 * problem.perStep);
  std::uniform_real_distribution<double> value(-1, 1);
  LinearTraining training;
  training.width = width;
  training.rate = 0.03;
  training.momentum = 0.5;
  auto fill = [&](std::vector<Vector> &all, size_t count, size_t size) {
    all.assign(count, Vector(size));
    for (Vector &vector : all)
      for (double &x : vector)
        x = value(random);
  };
  fill(training.weights, problem.stages, size_t(width) * width);
  fill(training.inputs, problem.microBatches(), width);
  fill(training.targets, problem.microBatches(), width);
  EXPECT_EQ(training.check(problem), std::nullopt);
  return training;
}

/// Runs lists with one stage a rank and whole backwards.
class Executor {
public:
  Executor(const LinearTraining &training, const StreamProblem &problem,
           WeightPolicy policy)
      : training(training), problem(problem), policy(policy),
        stages(problem.stages) {
    for (int32_t s = 0; s < problem.stages; ++s) {
      stages[s].newest = training.weights[s];
      stages[s].velocity.assign(training.weights[s].size(), 0.0);
    }
    for (int32_t m = 0; m < problem.microBatches(); ++m)
      stages[0].inputs[m] = training.inputs[m];
  }

  std::vector<Vector> run(const UpdateStream &stream) {
    std::vector<size_t> next(stream.ranks.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < next.size(); ++rank) {
        if (next[rank] == stream.ranks[rank].size() ||
            !perform(stream.ranks[rank][next[rank]]))
          continue;
        ++next[rank];
        moved = true;
      }
    }
    std::vector<Vector> weights;
    for (const Stage &stage : stages) {
      EXPECT_EQ(stage.updates, problem.steps);
      weights.push_back(stage.newest);
    }
    return weights;
  }

private:
  struct Stage {
    Vector newest, velocity, before; ///< `before` is for 2BW and look-ahead
    int32_t updates = 0;
    std::map<int32_t, Vector> inputs, gradients; ///< arrived, by micro-batch
    std::map<int32_t, Vector> stashed;           ///< what F read
    std::map<int32_t, int32_t> stashedAt;        ///< updates then
    std::map<int32_t, Vector> kept;   ///< old versions: vertical sync
    std::map<int32_t, Vector> sums;   ///< gradients by step
    std::map<int32_t, int32_t> label; ///< that arrived with the input
  };

  Vector weightsFor(Stage &stage, int32_t m, bool forward) {
    const int32_t step = m / problem.perStep;
    switch (policy) {
    case WeightPolicy::DoubleBuffer:
    case WeightPolicy::OneStepDelayed:
      // The version of the step before: the newest until it is made.
      return stage.updates == step && step > 0 ? stage.before : stage.newest;
    case WeightPolicy::Stash:
      return forward ? stage.newest : stage.stashed[m];
    case WeightPolicy::VerticalSync:
      return stage.label[m] == stage.updates ? stage.newest
                                             : stage.kept[stage.label[m]];
    case WeightPolicy::Blend: {
      if (forward || stage.stashedAt[m] == stage.updates)
        return stage.newest;
      const double share =
          std::pow(training.share, stage.updates - stage.stashedAt[m]);
      Vector mean = stage.newest;
      for (size_t i = 0; i < mean.size(); ++i)
        mean[i] = share * stage.stashed[m][i] + (1 - share) * mean[i];
      return mean;
    }
    case WeightPolicy::LookAhead: {
      Vector ahead = stage.newest;
      for (size_t i = 0; i < ahead.size() && stage.updates > 0; ++i)
        ahead[i] += training.reach * (ahead[i] - stage.before[i]);
      return ahead;
    }
    case WeightPolicy::Sync:
    case WeightPolicy::Latest:
      break;
    }
    return stage.newest;
  }

  bool perform(const StreamAction &action) {
    Stage &stage = stages[action.stage];
    const int32_t n = training.width, m = action.first;
    if (action.kind == Kind::F) {
      if (!stage.inputs.count(m))
        return false;
      if (action.stage == 0)
        stage.label[m] = stage.updates;
      const Vector weights = weightsFor(stage, m, true);
      stage.stashed[m] = weights;
      stage.stashedAt[m] = stage.updates;
      Vector out(n, 0.0);
      for (int32_t i = 0; i < n; ++i)
        for (int32_t j = 0; j < n; ++j)
          out[i] += weights[i * n + j] * stage.inputs[m][j];
      if (action.stage + 1 < problem.stages) {
        stages[action.stage + 1].inputs[m] = out;
        stages[action.stage + 1].label[m] = stage.label[m];
      } else {
        for (int32_t i = 0; i < n; ++i)
          out[i] -= training.targets[m][i];
        stage.gradients[m] = out;
      }
      return true;
    }
    if (action.kind == Kind::B) {
      if (!stage.gradients.count(m))
        return false;
      const Vector weights = weightsFor(stage, m, false);
      const Vector &g = stage.gradients[m], &x = stage.inputs[m];
      Vector &sum = stage.sums[m / problem.perStep];
      sum.resize(weights.size(), 0.0);
      Vector down(n, 0.0);
      for (int32_t i = 0; i < n; ++i)
        for (int32_t j = 0; j < n; ++j) {
          sum[i * n + j] += g[i] * x[j];
          down[j] += weights[i * n + j] * g[i];
        }
      if (action.stage > 0)
        stages[action.stage - 1].gradients[m] = down;
      return true;
    }
    stage.before = stage.kept[stage.updates] = stage.newest;
    for (size_t i = 0; i < stage.newest.size(); ++i) {
      stage.velocity[i] =
          training.momentum * stage.velocity[i] + stage.sums[action.first][i];
      stage.newest[i] -= training.rate * stage.velocity[i];
    }
    ++stage.updates;
    return true;
  }

  const LinearTraining &training;
  const StreamProblem &problem;
  WeightPolicy policy;
  std::vector<Stage> stages;
};

struct Case {
  WeightPolicy policy;
  StreamProblem problem;
  bool flushed = false;
  int32_t putOff = 0;
};

UpdateStream streamOf(const Case &c) {
  const StreamProblem &p = c.problem;
  const Schedule schedule =
      c.flushed ? repeatSteps(generateOneFOneB({p.stages, p.perStep}),
                              p.perStep, p.steps)
                : generateOneFOneB({p.stages, p.microBatches()});
  return withUpdates(p, schedule, c.putOff);
}

TEST(DelayedTraining, StreamsEndWithTheBitsOfTheirTags) {
  for (const Case &c : {Case{WeightPolicy::Sync, {4, 6, 5}, true},
                        Case{WeightPolicy::Stash, {4, 12, 1}},
                        Case{WeightPolicy::Stash, {3, 5, 4}},
                        Case{WeightPolicy::VerticalSync, {4, 12, 1}},
                        Case{WeightPolicy::DoubleBuffer, {4, 6, 4}},
                        Case{WeightPolicy::OneStepDelayed, {2, 7, 3}, true, 1},
                        Case{WeightPolicy::Latest, {4, 12, 1}},
                        Case{WeightPolicy::Blend, {4, 12, 1}},
                        Case{WeightPolicy::LookAhead, {4, 12, 1}}}) {
    const UpdateStream stream = streamOf(c);
    const VersionReplay replay = replayed(c.problem, stream, c.policy);
    const LinearTraining training = randomTraining(c.problem, 3);
    EXPECT_EQ(Executor(training, c.problem, c.policy).run(stream),
              trainReplayed(training, c.problem, replay, c.policy).back())
        << toText(c.policy);
  }
}

TEST(DelayedTraining, KindsMeanWhatTheySay) {
  // What the report says, put into the definition, trains to the same bits.
  for (const Case &c :
       {Case{WeightPolicy::Sync, {4, 6, 5}, true},
        Case{WeightPolicy::Stash, {4, 12, 1}},
        Case{WeightPolicy::VerticalSync, {4, 12, 1}},
        Case{WeightPolicy::DoubleBuffer, {4, 6, 4}},
        Case{WeightPolicy::OneStepDelayed, {2, 7, 3}, true, 1}}) {
    const UpdateStream stream = streamOf(c);
    const VersionReport report =
        reportVersions(c.problem, replayed(c.problem, stream, c.policy));
    EXPECT_LE(report.consistency, Consistency::StageDelay);
    std::vector<int32_t> delays;
    for (const StageVersions &stage : report.stages)
      delays.push_back(stage.forwardLag);
    const LinearTraining training = randomTraining(c.problem, 3);
    const auto end = Executor(training, c.problem, c.policy).run(stream);
    EXPECT_EQ(end, trainDelayed(training, c.problem, delays).back());
    ++delays.front();
    EXPECT_NE(end, trainDelayed(training, c.problem, delays).back());
  }
}

TEST(DelayedTraining, BehindASwitchItIsSequential) {
  // 1F1B without a break, drained, then a micro-batch at a time.
  const int32_t stages = 4, stale = 12, steps = 20;
  const StreamProblem problem{stages, steps, 1};
  Schedule schedule = generateOneFOneB({stages, stale});
  for (int32_t m = stale; m < steps; ++m)
    for (int32_t s = 0; s < stages; ++s) {
      schedule.roles[s].push_back({s, ActionKind::F, m});
      schedule.roles[s].push_back({s, ActionKind::B, m});
    }
  const UpdateStream stream = withUpdates(problem, schedule);
  LinearTraining training = randomTraining(problem, 3);
  training.momentum = 0;
  const auto replay = replayed(problem, stream, WeightPolicy::Latest);
  const auto history =
      trainReplayed(training, problem, replay, WeightPolicy::Latest);
  EXPECT_EQ(Executor(training, problem, WeightPolicy::Latest).run(stream),
            history.back());
  // From the weights at the switch.
  const StreamProblem rest{stages, steps - stale, 1};
  training.weights = history[stale];
  for (auto *samples : {&training.inputs, &training.targets})
    samples->erase(samples->begin(), samples->begin() + stale);
  EXPECT_EQ(trainDelayed(training, rest, {0, 0, 0, 0}).back(), history.back());
  EXPECT_NE(trainDelayed(training, rest, {1, 0, 0, 0}).back(), history.back());
}

TEST(DelayedTraining, ScalarRecurrence) {
  // w x against 0: the gradient is w, so w(k+1) = w(k) - rate w(k-1).
  const StreamProblem problem{1, 40, 1};
  LinearTraining training;
  training.weights = {{1.0}};
  training.inputs.assign(40, {1.0});
  training.targets.assign(40, {0.0});
  const WeightHistory history = trainDelayed(training, problem, {1});
  double w = 1, before = 1;
  for (int32_t k = 0; k < 40; ++k) {
    const double next = w - training.rate * before;
    before = w;
    w = next;
    EXPECT_EQ(history[k + 1][0][0], w);
  }
}

/// |w| after so many steps from 1.
double after(int32_t steps, int32_t delay, double rate) {
  const StreamProblem problem{1, steps, 1};
  LinearTraining training;
  training.rate = rate;
  training.weights = {{1.0}};
  training.inputs.assign(steps, {1.0});
  training.targets.assign(steps, {0.0});
  return std::abs(trainDelayed(training, problem, {delay}).back()[0][0]);
}

TEST(DelayedTraining, DelayLimitsTheRate) {
  EXPECT_NEAR(largestStableRate(7), 0.2091, 5e-5);
  EXPECT_LT(after(6000, 7, 0.20), 1e-6);
  EXPECT_FALSE(after(6000, 7, 0.25) < 1e6); // infinite or no number at last
  // A delay that is off by one moves the limit.
  EXPECT_GT(after(6000, 8, 0.20), 1e6);
  EXPECT_LT(after(6000, 6, 0.22), 1e-6);
  for (int32_t delay = 0; delay <= 8; ++delay) {
    const double limit = largestStableRate(delay);
    EXPECT_LT(after(6000, delay, 0.98 * limit), 1e-3) << delay;
    EXPECT_FALSE(after(6000, delay, 1.02 * limit) < 1e3) << delay;
  }
}

TEST(DelayedTraining, OneStepDelayHidesReduction) {
  EXPECT_DOUBLE_EQ(timeOneStepDelayed(1000, 0.5, 10, 2), 10502);
  EXPECT_DOUBLE_EQ(timeOneStepDelayed(1000, 0.5, 10, 10), 10510);
  EXPECT_DOUBLE_EQ(timeOneStepDelayed(1000, 0.5, 10, 30), 30010.5);
  EXPECT_DOUBLE_EQ(timeOneStepDelayed(1, 0.5, 10, 30), 40.5);
}

TEST(DelayedTraining, NamesSizesThatDoNotFit) {
  const StreamProblem problem{2, 1, 1};
  LinearTraining training;
  EXPECT_EQ(training.check(problem).value(), "there are 0 'weights', not 2");
  training.weights = {{1.0}, {1.0, 2.0}};
  EXPECT_EQ(training.check(problem).value(),
            "one of 'weights' has 2 numbers, not 1");
  training.weights = {{1.0}, {1.0}};
  EXPECT_EQ(training.check(problem).value(), "there are 0 'inputs', not 1");
  training.width = 0;
  EXPECT_EQ(training.check(problem).value(),
            "'width' is 0, not from 1 to 4096");
}

} // namespace
