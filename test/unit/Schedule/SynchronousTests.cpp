//===- SynchronousTests.cpp - published figures of the families -----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Orders, makespans and stashes as published, and what a family refuses.
//
//===----------------------------------------------------------------------===//

#include "FamilyReplay.h"

#include <gtest/gtest.h>

#include <random>

using namespace takt;

namespace {

Pipeline make(const char *family, const PipelineProblem &problem) {
  std::string why;
  auto pipeline = generatePipeline(family, problem, why);
  EXPECT_TRUE(pipeline) << family << ": " << why;
  return pipeline ? *pipeline : Pipeline{};
}

std::string refusal(const char *family, const PipelineProblem &problem) {
  std::string why;
  EXPECT_FALSE(generatePipeline(family, problem, why));
  return why;
}

PipelineTiming timeOf(const PipelineProblem &problem,
                      const Pipeline &pipeline) {
  const auto timing = timePipeline(problem, pipeline);
  EXPECT_TRUE(timing);
  return timing ? *timing : PipelineTiming{};
}

std::string textOf(const std::vector<Action> &list, size_t most = 1000) {
  std::string text;
  for (size_t i = 0; i < std::min(most, list.size()); ++i)
    text += (i ? " " : "") + toText(list[i]);
  return text;
}

/// Kinds alone, without stages and micro-batches.
std::string kindsOf(const std::vector<Action> &list) {
  std::string text;
  for (const Action &a : list)
    text += toText(a)[std::to_string(a.stage).size()];
  return text;
}

using Numbers = std::vector<double>;

TEST(Orders, GPipeAndOneFOneB) {
  const Pipeline gpipe = make("gpipe", {4, 1, 4});
  for (const auto &list : gpipe.schedule.roles)
    EXPECT_EQ(kindsOf(list), "FFFFBBBB");
  const Pipeline pipeline = make("1f1b", {4, 1, 8});
  EXPECT_EQ(kindsOf(pipeline.schedule.roles[0]), "FFFFBFBFBFBFBBBB");
  EXPECT_EQ(kindsOf(pipeline.schedule.roles[3]), "FBFBFBFBFBFBFBFB");
  EXPECT_EQ(timeOf({4, 1, 8}, pipeline).makespan, 33);
}

TEST(EarlyBackward, PolicyAIsOneFOneB) {
  const PipelineProblem problem{4, 1, 8};
  const Pipeline a = make("dapple-a", problem);
  EXPECT_EQ(a.schedule.roles, make("1f1b", problem).schedule.roles);
  EXPECT_EQ(timeOf(problem, a).peakHeld, (Numbers{4, 3, 2, 1}));
  EXPECT_EQ(timeOf(problem, a).makespan, 33);
}

// A message of half a forward: policy B hides it, policy A waits for it each
// time. Published: K_i = min(2 (S - i) - 1, D).
TEST(EarlyBackward, PolicyBHidesMessages) {
  PipelineProblem problem{4, 1, 32};
  problem.hop = 0.5;
  const Pipeline a = make("dapple-a", problem), b = make("dapple-b", problem);
  EXPECT_EQ(timeOf(problem, b).peakHeld, (Numbers{7, 5, 3, 1}));
  EXPECT_EQ(timeOf(problem, b).makespan, 3 * (32 + 4 - 1) + 2 * 3 * 0.5);
  EXPECT_GT(timeOf(problem, a).makespan, timeOf(problem, b).makespan + 10);
}

TEST(EarlyBackward, MemoryLimitsTheWarmUp) {
  PipelineProblem problem{4, 1, 8};
  problem.mostHeld = {9, 2, 9, 9};
  // No later stage is further ahead than one before it.
  EXPECT_EQ(timeOf(problem, make("dapple-b", problem)).peakHeld,
            (Numbers{7, 2, 2, 1}));
  problem.mostHeld = {1, 1, 1, 1};
  const Pipeline one = make("dapple-a", problem);
  EXPECT_EQ(timeOf(problem, one).peakHeld, (Numbers{1, 1, 1, 1}));
  EXPECT_EQ(timeOf(problem, one).makespan, 8 * 4 * 3);
  problem.mostHeld = {1, 1, 0.5, 1};
  EXPECT_EQ(refusal("dapple-a", problem),
            "no schedule fits: rank 2 may hold 0.5, one micro-batch needs 1");
}

// Published for t_f = 1, t_b = 2 of the whole rank.
TEST(Interleaved, MakespansAndStashes) {
  const struct {
    int32_t p, m, v;
    double makespan;
    Numbers stashes;
  } rows[] = {
      {4, 8, 1, 33.0, {4, 3, 2, 1}},
      {4, 8, 2, 28.5, {11, 9, 7, 5}},
      {4, 8, 4, 26.25, {19, 17, 15, 13}},
      {8, 32, 4, 101.25, {39, 37, 35, 33, 31, 29, 27, 25}},
      {2, 4, 2, 13.5, {5, 3}},
      {8, 8, 2, 34.5, {16, 16, 16, 16, 15, 13, 11, 9}},
  };
  for (const auto &row : rows) {
    PipelineProblem problem{row.p, row.v, row.m};
    const double f = 1.0 / row.v;
    problem.times.assign(problem.stages(), {f, f, f, 1, 0.5});
    const PipelineTiming timing =
        timeOf(problem, make("interleaved-1f1b", problem));
    EXPECT_EQ(timing.makespan, row.makespan);
    EXPECT_EQ(timing.peakHeld, row.stashes);
  }
}

TEST(Interleaved, PublishedOrder) {
  const auto roles = make("interleaved-1f1b", {2, 2, 4}).schedule.roles;
  EXPECT_EQ(textOf(roles[0]), "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 "
                              "2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
  EXPECT_EQ(textOf(roles[1]), "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 "
                              "1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
}

// Groups of three on two ranks: micro-batches 0 1 2 0 1 2 3 4 3 4 through
// chunks 0 0 0 1 1 1 0 0 1 1.
TEST(Interleaved, GroupsLargerThanTheRanks) {
  PipelineProblem problem{2, 2, 5};
  problem.group = 3;
  const Pipeline pipeline = make("interleaved-1f1b", problem);
  std::string forwards;
  for (const Action &a : pipeline.schedule.roles[0])
    if (a.kind == ActionKind::F)
      forwards += toText(a) + " ";
  EXPECT_EQ(forwards, "0F0 0F1 0F2 2F0 2F1 2F2 0F3 0F4 2F3 2F4 ");
}

// The closed form of multiples of p holds for every m from p on, and a last
// group of more than p costs its own activations; fewer than p follow one
// another.
TEST(Interleaved, AnyNumberOfMicroBatches) {
  for (int32_t p = 1; p <= 8; ++p)
    for (int32_t v = 1; v <= 4; ++v)
      for (int32_t m = 1; m <= 24; ++m) {
        const PipelineProblem problem{p, v, m};
        const int32_t more = std::max(m, p), fewer = std::min(m, p);
        const PipelineTiming timing =
            timeOf(problem, make("interleaved-1f1b", problem));
        EXPECT_EQ(timing.makespan, 3 * (v * more + fewer - 1))
            << "p " << p << " v " << v << " m " << m;
        for (int32_t r = 0; r < p; ++r)
          EXPECT_LE(timing.peakHeld[r],
                    2 * (p - r - 1) + (v - 1) * (p + m % p) + 1)
              << "p " << p << " v " << v << " m " << m << " rank " << r;
      }
}

TEST(Interleaved, MemoryTooLow) {
  PipelineProblem problem{4, 2, 8};
  problem.mostHeld = {11, 9, 7, 5};
  make("interleaved-1f1b", problem);
  problem.mostHeld[0] = 10;
  EXPECT_EQ(refusal("interleaved-1f1b", problem),
            "'interleaved-1f1b' has no order within the memory limits");
}

TEST(BreadthFirst, Order) {
  const auto roles = make("breadth-first", {2, 2, 2}).schedule.roles;
  EXPECT_EQ(textOf(roles[0]), "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1");
  EXPECT_EQ(textOf(roles[1]), "1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1");
  // As long as the interleaved order with m a multiple of p.
  const PipelineProblem problem{4, 2, 8};
  const PipelineTiming timing = timeOf(problem, make("breadth-first", problem));
  EXPECT_EQ(timing.makespan, 2 * 28.5);
  EXPECT_EQ(timing.peakHeld, (Numbers{16, 16, 16, 16}));
}

/// Forwards before the first backward of a replica.
int32_t warmUp(const std::vector<Action> &list) {
  return int32_t(kindsOf(list).find('B')) - 1;
}

TEST(RoundRobin, PublishedWarmUps) {
  const struct {
    std::vector<int32_t> replicas, ahead;
  } rows[] = {
      {{3, 1}, {1, 0}}, {{7, 6, 3}, {2, 1, 0}}, {{1, 1, 1, 1}, {3, 2, 1, 0}}};
  for (const auto &row : rows) {
    PipelineProblem problem{0, 1, 100};
    problem.ranks = 0;
    for (const int32_t count : row.replicas)
      problem.ranks += count;
    problem.replicas = row.replicas;
    const Pipeline pipeline = make("pipedream", problem);
    for (size_t s = 0; s < row.replicas.size(); ++s)
      for (int32_t i = 0; i < row.replicas[s]; ++i)
        EXPECT_EQ(warmUp(pipeline.schedule.roles[pipeline.rankOfStage[s] + i]),
                  row.ahead[s]);
  }
}

TEST(RoundRobin, AnyReplicasRun) {
  std::mt19937 random(2);
  int refused = 0, accepted = 0;
  for (int round = 0; round < 2000; ++round) {
    PipelineProblem problem{0, 1, int32_t(1 + random() % 24)};
    problem.ranks = 0;
    for (int32_t s = 1 + random() % 6; s > 0; --s) {
      problem.replicas.push_back(1 + random() % 5);
      problem.ranks += problem.replicas.back();
    }
    Pipeline pipeline = make("pipedream", problem);
    EXPECT_TRUE(test::runsToItsEnd(problem, pipeline));
    // Two actions change places, on one rank or between two.
    auto &roles = pipeline.schedule.roles;
    auto &one = roles[random() % roles.size()];
    auto &other = random() % 4 ? one : roles[random() % roles.size()];
    if (one.empty() || other.empty())
      continue;
    std::swap(one[random() % one.size()], other[random() % other.size()]);
    const bool fails = verifyPipeline(problem, pipeline).has_value();
    EXPECT_EQ(fails, !test::runsToItsEnd(problem, pipeline));
    ++(fails ? refused : accepted);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 100);
}

/// Time from one micro-batch's last backward to the next's, late in a stream.
double steadyPeriod(const PipelineProblem &problem, const Pipeline &pipeline) {
  const PipelineTiming timing = timeOf(problem, pipeline);
  Numbers ends(problem.microBatches);
  const auto &roles = pipeline.schedule.roles;
  for (size_t rank = 0; rank < roles.size(); ++rank)
    for (size_t i = 0; i < roles[rank].size(); ++i)
      if (roles[rank][i].stage == 0 && roles[rank][i].kind == ActionKind::B)
        ends[roles[rank][i].microBatch] = timing.end[rank][i];
  const size_t m = problem.microBatches;
  return (ends[3 * m / 4] - ends[m / 4]) / double(m / 2);
}

// Stages as long as they have replicas: none of them waits with the published
// warm-up, and all do without.
TEST(RoundRobin, SteadyPeriodIsTheSlowestShare) {
  for (const std::vector<int32_t> &replicas :
       {std::vector<int32_t>{3, 1}, {2, 2}, {1, 1, 1, 1}, {4, 2, 1}}) {
    PipelineProblem problem{0, 1, 96};
    problem.ranks = 0;
    problem.replicas = replicas;
    for (const int32_t count : replicas) {
      problem.ranks += count;
      problem.times.push_back({1.0 * count, 1.0 * count, 1.0 * count});
    }
    const Pipeline pipeline = make("pipedream", problem);
    EXPECT_NEAR(steadyPeriod(problem, pipeline), 3, 1e-9);
    // Every forward but the first behind the backward before it.
    Pipeline none = pipeline;
    for (auto &list : none.schedule.roles)
      std::stable_sort(list.begin(), list.end(),
                       [](const Action &a, const Action &b) {
                         return a.microBatch < b.microBatch;
                       });
    EXPECT_GT(steadyPeriod(problem, none), 3.4);
  }
}

// VGG-16 on four GPUs without replicas: stages 0-3, 3-11, 11-22 and 22-40 of
// the published profile (test/data/pipedream/vgg16.txt), in ms; 0.21645 s a
// batch.
TEST(RoundRobin, PeriodOfAPublishedPartition) {
  PipelineProblem problem{4, 1, 200};
  problem.times = {{72.954, 143.496, 0},
                   {63.364, 130.398, 0},
                   {75.695, 133.107, 0},
                   {21.889, 31.632, 0}};
  EXPECT_NEAR(steadyPeriod(problem, make("pipedream", problem)), 216.45, 1e-9);
}

// One stream without flushes takes a step as long as the slowest stage takes
// its micro-batches; a flush makes it (m + d - 1) / m of that.
TEST(Continuous, StepsWithoutFlushes) {
  for (const int32_t m : {8, 64}) {
    const int32_t d = 8;
    PipelineProblem stream{d, 1, 12 * m};
    stream.group = m;
    const Pipeline pipeline = make("pipedream-2bw", stream);
    EXPECT_NEAR(steadyPeriod(stream, pipeline), 3, 1e-9);
    const PipelineProblem step{d, 1, m};
    EXPECT_NEAR(timeOf(step, make("1f1b", step)).makespan,
                3.0 * m * (m + d - 1) / m, 1e-9);
    EXPECT_EQ(timeOf(stream, pipeline).peakHeld,
              (Numbers{8, 7, 6, 5, 4, 3, 2, 1}));
  }
}

TEST(Continuous, StepsOfFewerMicroBatchesThanRanks) {
  PipelineProblem problem{4, 1, 8};
  for (const int32_t group : {4, 8}) {
    problem.group = group;
    make("pipedream-2bw", problem);
  }
  problem.group = 2;
  EXPECT_NE(refusal("pipedream-2bw", problem)
                .find("with steps of 2 micro-batches on 4 ranks"),
            std::string::npos);
}

// Three stages, two micro-batches a mini-batch; micro-batch 2 j + i is part i
// of mini-batch j, and its backwards are one.
TEST(GroupBackward, PublishedOrder) {
  PipelineProblem problem{3, 1, 24};
  problem.group = 2;
  const auto roles = make("nf1b", problem).schedule.roles;
  const char *const expected[] = {
      "0F0 0F1 0F2 0F3 0F4 0F5 0B0 0B1 0F6 0F7 0B2 0B3",
      "1F0 1F1 1F2 1F3 1B0 1B1 1F4 1F5 1B2 1B3 1F6",
      "2F0 2F1 2B0 2B1 2F2 2F3 2B2 2B3 2F4 2F5"};
  for (size_t s = 0; s < 3; ++s) {
    const std::string text = expected[s];
    EXPECT_EQ(textOf(roles[s]).substr(0, text.size()), text);
  }
}

// DualPipe's published memory is p + 1 stages' worth a rank of its own depth,
// DualPipeV's on half as many ranks the same.
TEST(DualPipe, PublishedMemory) {
  for (const int32_t p : {2, 4, 8}) {
    PipelineProblem problem{p, 2, 2 * p};
    problem.chains = 2;
    const Pipeline pipeline = make("dualpipe", problem);
    for (const double peak : timeOf(problem, pipeline).peakHeld)
      EXPECT_LE(peak, p + 1);
  }
}

// The published bubble with nothing overlapped: F&B = F + B, B = I + W.
TEST(DualPipe, PublishedBubble) {
  for (const int32_t p : {4, 8})
    for (const int32_t m : {2 * p, 3 * p}) {
      PipelineProblem problem{p, 2, m};
      problem.chains = 2;
      const double work = 2.0 * m * 3;
      const double bubble = (p / 2 - 1) * (3 + 2 - 3.0);
      const PipelineTiming timing = timeOf(problem, make("dualpipe", problem));
      EXPECT_LE(timing.makespan, work + bubble + 1e-9) << p << " " << m;
    }
}

TEST(DualPipe, Orders) {
  PipelineProblem problem{2, 2, 4};
  const auto roles = make("dualpipev", problem).schedule.roles;
  EXPECT_EQ(textOf(roles[0]),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3F2 0B0 3B2 3F3 0B1 3B3 0I2 "
            "0W2 0I3 0W3");
  EXPECT_EQ(textOf(roles[1]),
            "1F0 2F0 1F1 2F1 1F2 2B0 2F2 1B0 1F3 2B1 2F3 1B1 2B2 1B2 2I3 1I3 "
            "2W3 1W3");
}

TEST(DualPipe, Refuses) {
  PipelineProblem problem{3, 2, 4};
  problem.chains = 2;
  EXPECT_EQ(refusal("dualpipe", problem),
            "two directions meet between two ranks: 3 ranks are odd");
  problem = {4, 2, 4};
  EXPECT_EQ(refusal("dualpipe", problem),
            "'dualpipe' is made for 2 chains of stages, not 1");
  problem.chunks = 1;
  EXPECT_EQ(refusal("dualpipev", problem),
            "'dualpipev' is made for 2 stages a rank, not 1");
}

} // namespace
