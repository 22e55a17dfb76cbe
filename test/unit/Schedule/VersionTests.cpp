//===- VersionTests.cpp - published weight policies, replayed -------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "VersionStreams.h"

using namespace takt;

namespace {

/// The lists of one step of GPipe or 1F1B, emptied after each step.
Schedule flushed(Schedule (*generate)(const ScheduleProblem &),
                 const StreamProblem &problem) {
  return repeatSteps(generate({problem.stages, problem.perStep}),
                     problem.perStep, problem.steps);
}

TEST(Versions, FlushedStepsAreExactWithOneVersion) {
  for (auto *generate : {&generateGPipe, &generateOneFOneB}) {
    const StreamProblem problem{4, 3, 8};
    const UpdateStream stream =
        withUpdates(problem, flushed(generate, problem));
    // With a flush the newest weights are the right ones, whatever the policy.
    for (WeightPolicy policy :
         {WeightPolicy::Sync, WeightPolicy::Stash, WeightPolicy::VerticalSync,
          WeightPolicy::Latest, WeightPolicy::Blend}) {
      const VersionReport report =
          reportVersions(problem, replayed(problem, stream, policy));
      EXPECT_EQ(report.consistency, Consistency::Exact);
      for (const StageVersions &stage : report.stages) {
        EXPECT_EQ(stage.alive, 1);
        EXPECT_EQ(stage.gradients, 1);
      }
    }
  }
}

TEST(Versions, PipeDreamKeepsWarmUpAndOneVersions) {
  for (int32_t stages = 1; stages <= 8; ++stages) {
    const StreamProblem problem{stages, 4 * stages, 1};
    const VersionReport report =
        reportVersions(problem, replayed(problem, continuousOneFOneB(problem),
                                         WeightPolicy::Stash));
    EXPECT_EQ(report.consistency,
              stages == 1 ? Consistency::Exact : Consistency::StageDelay);
    for (int32_t s = 0; s < stages; ++s) {
      EXPECT_EQ(report.stages[s].alive, stages - s);
      EXPECT_EQ(report.stages[s].forwardLag, stages - 1 - s);
      EXPECT_EQ(report.stages[s].mismatches, 0);
    }
  }
}

TEST(Versions, VerticalSyncDelaysAllStagesByTheDepth) {
  for (int32_t stages = 2; stages <= 8; ++stages) {
    const StreamProblem problem{stages, 4 * stages, 1};
    const VersionReport report =
        reportVersions(problem, replayed(problem, continuousOneFOneB(problem),
                                         WeightPolicy::VerticalSync));
    EXPECT_EQ(report.consistency, Consistency::UniformDelay);
    EXPECT_EQ(report.delay, stages - 1);
    // The last stage, which needs one with stashing, now keeps all that stage 0
    // still asks for.
    EXPECT_EQ(report.stages.front().alive, stages);
    EXPECT_EQ(report.stages.back().alive, stages);
  }
}

TEST(Versions, DoubleBufferingReadsThePublishedVersions) {
  const StreamProblem problem{4, 4, 4};
  const VersionReplay replay = replayed(problem, continuousOneFOneB(problem),
                                        WeightPolicy::DoubleBuffer);
  const std::vector<int32_t> published = {0, 0, 0, 0, 0, 0, 0, 0,
                                          1, 1, 1, 1, 2, 2, 2, 2};
  for (int32_t s = 0; s < 4; ++s) {
    EXPECT_EQ(replay.forward[s], published);
    EXPECT_EQ(replay.backward[s], published);
  }
}

TEST(Versions, DoubleBufferingKeepsTwoVersionsAndDelaysByOne) {
  for (auto [depth, perStep] :
       {std::pair(2, 2), {4, 4}, {4, 8}, {8, 8}, {8, 16}, {16, 16}}) {
    const StreamProblem problem{depth, 5, perStep};
    const VersionReport report =
        reportVersions(problem, replayed(problem, continuousOneFOneB(problem),
                                         WeightPolicy::DoubleBuffer));
    EXPECT_EQ(report.consistency, Consistency::UniformDelay);
    EXPECT_EQ(report.delay, 1);
    int32_t most = 0;
    for (const StageVersions &stage : report.stages)
      most = std::max(most, stage.alive);
    EXPECT_EQ(most, 2);
  }
}

TEST(Versions, DoubleBufferingNeedsAsManyMicroBatchesAsStages) {
  const StreamProblem problem{4, 4, 2};
  EXPECT_EQ(
      refusal(problem, continuousOneFOneB(problem), WeightPolicy::DoubleBuffer),
      "'0F4' reads version 1 of the weights under policy '2bw', but "
      "stage 0 is at version 0 then");
}

TEST(Versions, OneStepDelayKeepsOneVersionAndTwoGradients) {
  const StreamProblem problem{1, 6, 2};
  const UpdateStream stream =
      withUpdates(problem, flushed(&generateGPipe, problem), 1);
  const VersionReport report = reportVersions(
      problem, replayed(problem, stream, WeightPolicy::OneStepDelayed));
  EXPECT_EQ(report.consistency, Consistency::UniformDelay);
  EXPECT_EQ(report.delay, 1);
  EXPECT_EQ(report.stages[0].alive, 1);
  EXPECT_EQ(report.stages[0].gradients, 2);
  // An update that comes at once, or two steps late, is not that policy.
  EXPECT_EQ(
      refusal(problem, withUpdates(problem, flushed(&generateGPipe, problem)),
              WeightPolicy::OneStepDelayed),
      "'0F2' reads version 0 of the weights under policy 'one-step-delayed', "
      "which keeps one, and stage 0 is at version 1");
  EXPECT_EQ(refusal(problem,
                    withUpdates(problem, flushed(&generateGPipe, problem), 2),
                    WeightPolicy::OneStepDelayed),
            "'0F4' reads version 1 of the weights under policy "
            "'one-step-delayed', but stage 0 is at version 0 then");
}

TEST(Versions, AsynchronousPipelineDelaysFirstStagesMost) {
  const StreamProblem problem{8, 32, 1};
  for (WeightPolicy policy : {WeightPolicy::LookAhead, WeightPolicy::Latest}) {
    const VersionReport report = reportVersions(
        problem, replayed(problem, continuousOneFOneB(problem), policy));
    EXPECT_EQ(report.consistency, Consistency::Inconsistent);
    for (int32_t s = 0; s < 8; ++s) {
      EXPECT_EQ(report.stages[s].forwardLag, 7 - s);
      EXPECT_EQ(report.stages[s].backwardLag, 0);
      EXPECT_EQ(report.stages[s].widest, 7 - s);
      EXPECT_EQ(report.stages[s].alive, 1);
    }
  }
}

TEST(Versions, BlendKeepsWhatItsForwardsRead) {
  const StreamProblem problem{4, 16, 1};
  const UpdateStream stream = continuousOneFOneB(problem);
  const VersionReplay blend = replayed(problem, stream, WeightPolicy::Blend);
  const VersionReplay latest = replayed(problem, stream, WeightPolicy::Latest);
  EXPECT_EQ(blend.alive, (std::vector<int32_t>{4, 3, 2, 1}));
  EXPECT_EQ(blend.forward, latest.forward);
  EXPECT_EQ(blend.backward, latest.backward);
  EXPECT_EQ(reportVersions(problem, blend).consistency,
            Consistency::Inconsistent);
}

TEST(Versions, SlotsOfNF1BAreThePublishedOnes) {
  const UpdateStream stream = slotNF1B(3, 2, 8);
  const std::vector<std::string> published = {
      "0F0 0F1 0F2 0F3 0F4 0F5 0B0-1 0U0 0F6 0F7 0B2-3 0U1",
      "1F0 1F1 1F2 1F3 1B0-1 1U0 1F4 1F5 1B2-3 1U1 1F6",
      "2F0 2F1 2B0-1 2U0 2F2 2F3 2B2-3 2U1 2F4 2F5 2B4-5 2U2 2F6"};
  for (size_t s = 0; s < 3; ++s) {
    std::string text;
    for (const StreamAction &action : stream.ranks[s])
      if (text.size() < published[s].size())
        text += (text.empty() ? "" : " ") + toText(action);
    EXPECT_EQ(text, published[s]);
  }
}

/// Largest distance between a mini-batch and the newest weights that all stages
/// have; 1 where all earlier updates are in. Mini-batches before those that the
/// drain at the end speeds up.
int32_t distance(const std::vector<int32_t> &whole, int32_t n, int32_t steps) {
  int32_t most = 0;
  for (int32_t k = 0; k < steps; ++k)
    most = std::max(most, k + 1 - whole[k * n]);
  return most;
}

TEST(Versions, LagOfNF1BIsTheReplayedOne) {
  const std::vector<std::vector<int32_t>> backward = {{1, 2, 2, 3, 3, 4, 4},
                                                      {1, 1, 2, 2, 2, 3, 3}};
  for (int32_t n : {1, 2})
    for (int32_t stages = 2; stages <= 8; ++stages) {
      const StreamProblem problem = nF1BProblem(stages, n, 32);
      const VersionReplay replay =
          replayed(problem, slotNF1B(stages, n, 32), WeightPolicy::Latest);
      EXPECT_EQ(distance(replay.wholeAtBackward, n, 24),
                backward[n - 1][stages - 2])
          << stages << " stages, " << n;
      if (n == 1) {
        EXPECT_EQ(distance(replay.wholeAtForward, n, 24), 2 * stages - 1);
      }
      // Zero staleness of backwards, at the price of other forwards.
      const VersionReport report = reportVersions(problem, replay);
      EXPECT_EQ(report.consistency, Consistency::Inconsistent);
      for (const StageVersions &stage : report.stages) {
        EXPECT_EQ(stage.backwardLag, 0);
        EXPECT_EQ(stage.alive, 1);
      }
    }
  const VersionReplay replay =
      replayed(nF1BProblem(4, 2, 32), slotNF1B(4, 2, 32), WeightPolicy::Latest);
  EXPECT_EQ(distance(replay.wholeAtForward, 2, 24), 4);
}

TEST(Versions, BackwardsOfNF1BSeeAllUpdatesIfStagesAreFew) {
  for (int32_t n = 1; n <= 7; ++n)
    for (int32_t stages = 2; stages <= 8; ++stages) {
      const VersionReplay replay =
          replayed(nF1BProblem(stages, n, 24), slotNF1B(stages, n, 24),
                   WeightPolicy::Latest);
      EXPECT_EQ(distance(replay.wholeAtBackward, n, 16),
                (stages + n) / (n + 1));
      EXPECT_EQ(distance(replay.wholeAtBackward, n, 16) == 1, stages <= n + 1);
    }
}

/// A forward and a backward of every stage in every cycle; the last stage's are
/// of one mini-batch (arXiv 1912.12675).
Schedule unstalled(int32_t stages, int32_t count) {
  Schedule schedule;
  schedule.roles.resize(stages);
  for (int32_t s = 0; s < stages; ++s) {
    const int32_t apart = 2 * (stages - 1 - s);
    for (int32_t m = 0; m < count + apart; ++m) {
      if (m < count)
        schedule.roles[s].push_back({s, ActionKind::F, m});
      if (m >= apart)
        schedule.roles[s].push_back({s, ActionKind::B, m - apart});
    }
  }
  return schedule;
}

TEST(Versions, StaleWeightsFallToNoneAtTheLastStage) {
  const int32_t stages = 4, stale = 20, steps = 28;
  const StreamProblem problem{stages, steps, 1};
  // The switch to training without a pipeline at a step boundary: drained, then
  // a micro-batch at a time.
  Schedule schedule = unstalled(stages, stale);
  for (int32_t m = stale; m < steps; ++m)
    for (int32_t s = 0; s < stages; ++s) {
      schedule.roles[s].push_back({s, ActionKind::F, m});
      schedule.roles[s].push_back({s, ActionKind::B, m});
    }
  const VersionReplay replay =
      replayed(problem, withUpdates(problem, schedule), WeightPolicy::Latest);
  const VersionReport before = reportVersions(problem, replay, 0, stale);
  EXPECT_EQ(before.consistency, Consistency::Inconsistent);
  for (int32_t s = 0; s < stages; ++s)
    EXPECT_EQ(before.stages[s].forwardLag, 2 * (stages - 1 - s));
  const VersionReport after = reportVersions(problem, replay, stale, steps);
  EXPECT_EQ(after.consistency, Consistency::Exact);
  EXPECT_EQ(after.delay, 0);
  EXPECT_EQ(reportVersions(problem, replay).consistency,
            Consistency::Inconsistent);
}

TEST(Versions, ContinuousStepsOfSeveralMicroBatchesVary) {
  // A step of three lies across the 1F1B pattern of four stages: the lag of
  // stage 0 is one update for some micro-batches and none for others.
  const StreamProblem problem{4, 8, 3};
  const VersionReport report =
      reportVersions(problem, replayed(problem, continuousOneFOneB(problem),
                                       WeightPolicy::Stash));
  EXPECT_EQ(report.consistency, Consistency::VaryingDelay);
  EXPECT_EQ(report.stages[0].forwardLag, 1);
  EXPECT_EQ(report.stages[3].forwardLag, 0);
}

/// Makespan of so many steps more, a step.
double periodOf(StreamProblem problem, bool flush) {
  auto makespan = [&](int32_t steps) {
    problem.steps = steps;
    const UpdateStream stream =
        flush ? withUpdates(problem, flushed(&generateOneFOneB, problem))
              : continuousOneFOneB(problem);
    return replayed(problem, stream, WeightPolicy::Stash).makespan;
  };
  const int32_t steps = 2 * problem.stages;
  return (makespan(2 * steps) - makespan(steps)) / steps;
}

TEST(Versions, StreamsTakeTheSlowestStagesTime) {
  // The stages of PipeDream's profile of vgg16 cut for four ranks, in ms.
  StreamProblem problem{4, 1, 1};
  problem.times = {{72.954, 71.748, 71.748},
                   {63.364, 65.199, 65.199},
                   {75.695, 66.5535, 66.5535},
                   {21.889, 15.816, 15.816}};
  EXPECT_NEAR(periodOf(problem, false), 216.45, 1e-6);
}

TEST(Versions, FlushesCostTheDepthOfThePipeline) {
  for (auto [perStep, factor] : {std::pair(8, 1.875), {64, 1.109375}}) {
    const StreamProblem problem{8, 1, perStep};
    EXPECT_DOUBLE_EQ(periodOf(problem, true), 3 * perStep * factor);
    EXPECT_DOUBLE_EQ(periodOf(problem, false), 3 * perStep);
  }
}

TEST(Versions, NamesWhatIsWrongWithAStream) {
  using Kind = StreamAction::Kind;
  const StreamProblem problem{1, 2, 1};
  auto why = [&](std::vector<StreamAction> actions) {
    return refusal(problem, {{std::move(actions)}}, WeightPolicy::Latest);
  };
  const StreamAction f0{0, Kind::F, 0}, b0{0, Kind::B, 0}, u0{0, Kind::Update},
      f1{0, Kind::F, 1}, b1{0, Kind::B, 1}, u1{0, Kind::Update, 1};
  EXPECT_EQ(why({f0, b0, u0, f1, b1, u1}), "");
  EXPECT_EQ(why({f0, b0, u0, f1, b1}), "'0U1' is missing");
  EXPECT_EQ(why({f0, b0, u0, u1}),
            "'0U1' comes before 1 of the 1 gradients of step 1");
  EXPECT_EQ(why({f0, b0, f1, b1, u1, u0}),
            "'0U1' comes after 0 updates of stage 0, not 1");
  EXPECT_EQ(why({b0, f0}), "'0B0' on rank 0 never has its inputs");
  EXPECT_EQ(why({f0, f0}), "'0F0' repeats a pass of micro-batch 0");
  EXPECT_EQ(why({f0, {0, Kind::I, 0}, f1, b1, {0, Kind::Update}}),
            "'0U0' comes before 1 of the 1 gradients of step 0");
  EXPECT_EQ(why({f0, {0, Kind::I, 0}, f1, b1}), "'0W0' is missing");
  EXPECT_EQ(why({{1, Kind::F, 0}}),
            "'1F0' on rank 0: there is no stage 1, only 1 stages");
  EXPECT_EQ(why({{0, Kind::F, 1, 2}}),
            "'0F1-2' on rank 0: there are 2 micro-batches");
  EXPECT_EQ(why({{0, Kind::Update, 2}}), "'0U2' on rank 0: there are 2 steps");
  EXPECT_EQ(refusal({0, 1, 1}, {}, WeightPolicy::Sync),
            "'stages' is 0, not at least 1");
  StreamProblem timed{2, 1, 1};
  timed.times = {{}};
  EXPECT_EQ(timed.check().value(), "'times' has 1 entries for 2 stages");
  timed.times = {{}, {1, -1, 1}};
  EXPECT_EQ(timed.check().value(), "'inputGrad' is -1, not a time");
  timed.times.clear();
  timed.hop = -2;
  EXPECT_EQ(timed.check().value(), "'hop' is -2, not a time");
  EXPECT_EQ(refusal({INT32_MAX, INT32_MAX, INT32_MAX}, {}, WeightPolicy::Sync),
            "2147483647 steps of 2147483647 micro-batches through 2147483647 "
            "stages are more than 16777216 passes");
}

TEST(Semantics, WordsRoundTrip) {
  std::string why;
  for (const char *text : {"exact", "delayed=1", "bounded=1000", "any"}) {
    const auto semantics = parseSemantics(text, why);
    ASSERT_TRUE(semantics) << why;
    EXPECT_EQ(toText(*semantics), text);
  }
  for (const char *text : {"delayed=0", "delayed=", "bounded=1001",
                           "delayed=1x", "bounded=99999999999"})
    EXPECT_FALSE(parseSemantics(text, why)) << text;
  EXPECT_EQ(why, "'99999999999' is no number of updates from 1 to 1000");
  EXPECT_FALSE(parseSemantics("Exact", why));
  EXPECT_EQ(why, "'Exact' is none of 'exact', 'delayed=K', 'bounded=K', 'any'");
  for (std::string_view name : weightPolicyNames())
    EXPECT_EQ(toText(parseWeightPolicy(name).value()), name);
  EXPECT_FALSE(parseWeightPolicy("pipedream"));
}

TEST(Semantics, StreamsAreRefusedAtTheReadThatBreaksThem) {
  std::string why;
  auto refused = [&](const StreamProblem &problem, WeightPolicy policy,
                     const char *allowed) {
    return refuseStream(problem, continuousOneFOneB(problem), policy,
                        parseSemantics(allowed, why).value())
        .value_or("");
  };
  const StreamProblem deep{4, 16, 1}, wide{4, 4, 4};
  EXPECT_EQ(refused(wide, WeightPolicy::DoubleBuffer, "exact"),
            "not 'exact': '0F4' of step 1 reads version 0 of the weights, 1 "
            "update old");
  EXPECT_EQ(refused(wide, WeightPolicy::DoubleBuffer, "delayed=1"), "");
  EXPECT_EQ(refused(deep, WeightPolicy::Stash, "delayed=3"),
            "not 'delayed=3': '3F1' of step 1 reads version 1 of the weights, "
            "0 updates old, where others are 1");
  EXPECT_EQ(refused(deep, WeightPolicy::Stash, "bounded=3"), "");
  EXPECT_EQ(refused(deep, WeightPolicy::Stash, "bounded=2"),
            "not 'bounded=2': '0F3' of step 3 reads version 0 of the weights, "
            "3 updates old");
  EXPECT_EQ(refused(deep, WeightPolicy::VerticalSync, "delayed=3"), "");
  EXPECT_EQ(refused(deep, WeightPolicy::Latest, "bounded=9"),
            "not 'bounded=9': '0F1' of step 1 reads version 0 of the weights, "
            "its backward version 1");
  EXPECT_EQ(refused(deep, WeightPolicy::Latest, "any"), "");
  EXPECT_EQ(refused(deep, WeightPolicy::LookAhead, "bounded=9"),
            "not 'bounded=9': policy 'look-ahead' reads weights moved on from "
            "a version, not the version");
  EXPECT_EQ(refused(deep, WeightPolicy::Sync, "any"),
            "'0F1' reads version 1 of the weights under policy 'sync', but "
            "stage 0 is at version 0 then");
}

} // namespace
