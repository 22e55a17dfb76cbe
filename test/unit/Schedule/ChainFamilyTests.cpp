//===- ChainFamilyTests.cpp - helix, janus, skip --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/ChainFamilies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace takt;

namespace {

double makespan(const ChainPlan &plan) {
  EXPECT_EQ(plan.problem.check(), std::nullopt);
  EXPECT_EQ(verify(plan.problem, plan.schedule), std::nullopt);
  const auto timing = timeChains(plan.problem, plan.schedule);
  EXPECT_TRUE(timing);
  EXPECT_LE(boundChains(plan.problem), timing->makespan + 1e-9);
  return timing->makespan;
}

HelixProblem helix(int32_t p, int32_t layers, int32_t folds, double attention,
                   double hop = 0) {
  HelixProblem problem;
  problem.ranks = p;
  problem.layers = layers;
  problem.folds = folds;
  problem.attention = attention;
  problem.hop = hop;
  EXPECT_EQ(problem.check(), std::nullopt);
  return problem;
}

TEST(Helix, HasThePublishedMakespans) {
  struct Row {
    HelixProblem problem;
    double total, ideal;
  };
  for (const Row &row : {Row{helix(4, 8, 1, 1), 123, 96},
                         {helix(4, 8, 2, 1), 234, 192},
                         {helix(4, 8, 2, 6), 468, 432},
                         {helix(4, 8, 2, 24), 1332, 1296},
                         {helix(4, 16, 2, 6), 900, 864},
                         {helix(8, 16, 2, 6), 972, 864},
                         {helix(8, 32, 2, 24), 5292, 5184},
                         {helix(4, 8, 2, 6, 1), 474, 432},
                         {helix(4, 8, 1, 6, 1), 271, 216}}) {
    const ChainPlan plan = generateHelix(row.problem);
    EXPECT_EQ(makespan(plan), row.total);
    const auto timing = timeChains(plan.problem, plan.schedule);
    for (double busy : timing->busy)
      EXPECT_LE(busy, row.total);
    double work = 0;
    for (double busy : timing->busy)
      work += busy;
    EXPECT_EQ(work / row.problem.ranks, row.ideal);
  }
}

TEST(Helix, PutsEachAttentionOnTheRankOfTheFormula) {
  for (int32_t p = 2; p <= 8; ++p)
    for (int32_t loops = 1; loops <= 3; ++loops)
      for (int32_t folds = 1; folds <= 3; ++folds) {
        HelixProblem problem = helix(p, p * loops, folds, 3);
        problem.repeats = 1 + (p + loops) % 2;
        const ChainPlan plan = generateHelix(problem);
        makespan(plan);
        size_t count = 0;
        for (int32_t rank = 0; rank < p; ++rank)
          for (const ChainAction &action : plan.schedule.ranks[rank]) {
            const std::string text = toText(plan.problem, action);
            const bool backward = text[0] == 'b';
            const char kind = text[backward];
            const int32_t layer = std::stoi(text.substr(backward + 1));
            const int32_t d = action.microBatch % p;
            EXPECT_EQ(rank, (kind == 'A' ? layer + d + 1 : layer) % p) << text;
            ++count;
          }
        const size_t forward = size_t(2 * p * loops + 1) * p * folds;
        EXPECT_EQ(count, 2 * forward * problem.repeats);
      }
}

TEST(Helix, BubbleDoesNotDependOnAttentionOrDepth) {
  for (int32_t p = 2; p <= 8; ++p)
    for (int32_t folds = 1; folds <= 3; ++folds) {
      double bubble = 3 * 3 * std::max(p - 1, folds * (p - 3) + 2);
      if (p == 3 && folds > 1)
        bubble = 3 * (2 * folds + 3);
      for (int32_t loops : {1, 2, 4})
        for (double attention : {3.0, 6.0, 24.0}) {
          const HelixProblem problem = helix(p, p * loops, folds, attention);
          const double work =
              problem.microBatches() * loops * (3 + attention) * 3;
          EXPECT_EQ(makespan(generateHelix(problem)) - work, bubble)
              << p << " ranks, " << folds << " folds, " << loops << " loops";
        }
    }
}

TEST(Helix, HoldsAboutAsMuchOnEveryRank) {
  const ChainPlan plan = generateHelix(helix(4, 8, 2, 6));
  const auto timing = timeChains(plan.problem, plan.schedule);
  // Two blocks and two attentions of eight micro-batches; rank 0 has the last
  // block besides.
  EXPECT_EQ(timing->peakHeld, (std::vector<double>{40, 32, 32, 32}));
}

TEST(Helix, SendsWeightsWhereTheyAreSmaller) {
  const HelixMessage longer = helixMessage(131072, 1, 4096);
  EXPECT_TRUE(longer.sendsWeights);
  EXPECT_EQ(longer.elements,
            int64_t(131072) * 4096 + int64_t(3) * 4096 * 4096 + 3 * 4096);
  const HelixMessage shorter = helixMessage(1024, 1, 4096);
  EXPECT_FALSE(shorter.sendsWeights);
  EXPECT_EQ(shorter.elements, int64_t(3) * 1024 * 4096);
}

TEST(Helix, NamesWhatItCannotDo) {
  HelixProblem problem;
  problem.ranks = 1;
  EXPECT_EQ(problem.check().value(), "'ranks' is 1, not from 2 to 1024");
  problem.ranks = 4;
  problem.layers = 6;
  EXPECT_EQ(problem.check().value(),
            "'layers' is 6, no multiple of the 4 ranks");
  problem.layers = 8;
  problem.folds = 0;
  EXPECT_EQ(problem.check().value(),
            "there are 0 folds and 1 repeats, not at least 1");
  problem.folds = 1 << 30;
  EXPECT_EQ(problem.check().value(), "8 layers of 4 x 1073741824 x 1 "
                                     "micro-batches are more than 16777216");
  problem.folds = 1;
  problem.hop = -1;
  EXPECT_EQ(problem.check().value(), "'hop' is -1");
}

JanusProblem janus(int32_t p, int32_t m, int32_t mostInFlight = 0) {
  JanusProblem problem;
  problem.ranks = p;
  problem.microBatches = m;
  problem.mostInFlight = mostInFlight;
  EXPECT_EQ(problem.check(), std::nullopt);
  return problem;
}

/// Shortest makespan of all orders with no more than so many in flight: all
/// ways to append, with the states that another dominates left out.
double shortestJanus(const JanusProblem &janus) {
  const ChainProblem chains = generateJanus(janus).problem;
  struct State {
    std::vector<double> clock, ended;
  };
  using Done = std::vector<int32_t>;
  std::map<Done, std::vector<State>> level;
  level[Done(janus.microBatches, 0)] = {
      {std::vector<double>(janus.ranks, 0),
       std::vector<double>(janus.microBatches, 0)}};
  const int32_t visits = 4 * janus.ranks;
  for (int32_t n = 0; n < visits * janus.microBatches; ++n) {
    std::map<Done, std::vector<State>> next;
    for (const auto &[done, states] : level)
      for (int32_t m = 0; m < janus.microBatches; ++m) {
        // Micro-batches are alike: they begin in their order.
        if (done[m] == visits || (m > 0 && done[m] >= done[m - 1]))
          continue;
        Done after = done;
        ++after[m];
        int32_t inFlight = 0;
        for (int32_t k : after)
          inFlight += k > 0 && k < visits;
        if (inFlight > janus.inFlight())
          continue;
        const ChainVisit &visit = chains.paths[m][done[m]];
        for (State state : states) {
          const double hop =
              done[m] > 0 ? chains.hopBetween(chains.paths[m][done[m] - 1].rank,
                                              visit.rank)
                          : 0;
          state.ended[m] = state.clock[visit.rank] =
              std::max(state.clock[visit.rank], state.ended[m] + hop) +
              visit.time;
          auto dominates = [](const State &a, const State &b) {
            for (size_t i = 0; i < a.clock.size(); ++i)
              if (a.clock[i] > b.clock[i])
                return false;
            for (size_t i = 0; i < a.ended.size(); ++i)
              if (a.ended[i] > b.ended[i])
                return false;
            return true;
          };
          auto &kept = next[after];
          if (std::any_of(kept.begin(), kept.end(), [&](const State &other) {
                return dominates(other, state);
              }))
            continue;
          kept.erase(std::remove_if(kept.begin(), kept.end(),
                                    [&](const State &other) {
                                      return dominates(state, other);
                                    }),
                     kept.end());
          kept.push_back(std::move(state));
        }
      }
    level = std::move(next);
  }
  double best = 1e300;
  for (const auto &[done, states] : level)
    for (const State &state : states)
      best = std::min(
          best, *std::max_element(state.clock.begin(), state.clock.end()));
  return best;
}

TEST(Janus, IsNeverLongerThanOneFOneB) {
  EXPECT_LE(makespan(generateJanus(janus(2, 8))),
            makespan(generateJanusOneFOneB(janus(2, 8))));
  for (int32_t p = 1; p <= 8; ++p)
    for (int32_t m : {1, 2, 5, 8, 24}) {
      const double best = makespan(generateJanus(janus(p, m)));
      EXPECT_LE(best, makespan(generateJanusOneFOneB(janus(p, m))))
          << p << " ranks, " << m << " micro-batches";
      // Nor does a larger limit make it longer than the smaller one's 1F1B.
      EXPECT_LE(makespan(generateJanus(janus(p, m, p))),
                makespan(generateJanusOneFOneB(janus(p, m, p))));
    }
}

TEST(Janus, KeepsItsLimit) {
  for (int32_t p : {1, 2, 4})
    for (int32_t limit = 1; limit <= p + 2; ++limit) {
      const ChainPlan plan = generateJanus(janus(p, 12, limit));
      makespan(plan);
      const auto timing = timeChains(plan.problem, plan.schedule);
      for (double peak : timing->peakHeld)
        EXPECT_LE(peak, 2 * limit);
    }
}

/// Bubbles of the shortest steady state with so many micro-batches in flight.
double steadyBubble(int32_t p, int32_t inFlight) {
  const ChainProblem problem = generateJanus(janus(p, 1)).problem;
  for (double period = 10;; ++period) {
    int64_t tried = 0;
    ChainRepeat repeat{period, inFlight * period, 1, 1 << 24};
    const auto starts = repeatPath(problem, problem.paths[0], repeat, &tried);
    if (!starts) {
      EXPECT_LT(tried, repeat.mostTries);
      continue;
    }
    // No two visits of a rank at a time, whatever micro-batches they are of.
    const auto &path = problem.paths[0];
    for (size_t a = 0; a < path.size(); ++a)
      for (size_t b = 0; b < path.size(); ++b)
        for (int32_t k = -inFlight; k <= inFlight; ++k)
          if (path[a].rank == path[b].rank && (a != b || k != 0)) {
            const double start = (*starts)[b] + k * period;
            EXPECT_TRUE(start >= (*starts)[a] + path[a].time ||
                        start + path[b].time <= (*starts)[a]);
          }
    EXPECT_LE(starts->back() + path.back().time, inFlight * period);
    return period - 10;
  }
}

TEST(Janus, SteadyStatesHaveThePublishedBubbles) {
  EXPECT_EQ(steadyBubble(2, 2), 3);
  EXPECT_EQ(steadyBubble(2, 3), 0);
  EXPECT_EQ(steadyBubble(3, 3), 4);
  EXPECT_EQ(steadyBubble(3, 4), 0);
}

TEST(Janus, MoreMicroBatchesMakeNoMoreBubbles) {
  for (int32_t p : {2, 3}) {
    EXPECT_LE(makespan(generateJanus(janus(p, 48))) -
                  makespan(generateJanus(janus(p, 24))),
              240);
    EXPECT_GT(makespan(generateJanusOneFOneB(janus(p, 48))) -
                  makespan(generateJanusOneFOneB(janus(p, 24))),
              240);
  }
}

TEST(Janus, IsShortestForFewMicroBatches) {
  for (int32_t limit : {1, 2, 3})
    for (int32_t m : {1, 2, 3}) {
      const JanusProblem problem = janus(2, m, limit);
      EXPECT_EQ(makespan(generateJanus(problem)), shortestJanus(problem))
          << m << " micro-batches, limit " << limit;
    }
}

TEST(Janus, BalancesAtoms) {
  std::vector<double> atoms;
  for (int32_t i = 1; i <= 16; ++i)
    atoms.push_back(i);
  std::vector<double> sums(4, 0);
  const std::vector<int32_t> bins = balanceSizes(atoms, 4);
  for (size_t i = 0; i < atoms.size(); ++i)
    sums[bins[i]] += atoms[i];
  EXPECT_EQ(sums, (std::vector<double>{34, 34, 34, 34}));
  EXPECT_EQ(balanceSizes({1, 1, 5}, 2), (std::vector<int32_t>{1, 1, 0}));
}

TEST(Janus, NamesWhatItCannotDo) {
  JanusProblem problem;
  problem.ranks = 0;
  EXPECT_EQ(problem.check().value(),
            "there are 0 ranks and 2 micro-batches, not at least 1");
  problem.ranks = 2000;
  EXPECT_EQ(problem.check().value(), "'ranks' is 2000, more than 1024");
  problem.ranks = 2;
  problem.force = -1;
  EXPECT_EQ(problem.check().value(), "'force' is -1");
  problem.force = 1;
  problem.mostInFlight = -1;
  EXPECT_EQ(problem.check().value(), "'mostInFlight' is -1, not at least 0");
  problem.mostInFlight = INT32_MAX;
  EXPECT_EQ(problem.check(), std::nullopt);
  makespan(generateJanus(problem));
}

/// Three stages of two nodes.
SkipProblem toy(int32_t microBatches) {
  SkipProblem problem;
  problem.stages = 3;
  problem.stageOfNode = {0, 0, 1, 1, 2, 2};
  problem.hop = equalHops(6, 0.25);
  problem.microBatches = microBatches;
  problem.visits = 3;
  return problem;
}

/// Shortest makespan over all choices of nodes, by recursion over micro-batches
/// and positions, with a queue at every node.
double shortestToy(const SkipProblem &problem,
                   std::vector<std::vector<int32_t>> &paths) {
  if (paths.size() == size_t(problem.microBatches)) {
    ChainProblem chains;
    chains.ranks = problem.nodes();
    chains.hop = problem.hop;
    chains.mostHeld.assign(chains.ranks, problem.mostInFlight);
    chains.steps = {{"F0"}, {"F1"}, {"F2"}, {"B0"}, {"B1"}, {"B2"}};
    for (const std::vector<int32_t> &nodes : paths) {
      auto &path = chains.paths.emplace_back();
      for (int32_t i = 0; i < 3; ++i)
        path.push_back({i, nodes[i], problem.forward, 1, 0});
      for (int32_t i = 2; i >= 0; --i)
        path.push_back({3 + i, nodes[i], problem.backward, 0, 1, 1, i});
    }
    return timeChains(chains, listChains(chains).value())->makespan;
  }
  double best = 1e300;
  for (int32_t choice = 0; choice < 8; ++choice) {
    paths.push_back({choice & 1, 2 + (choice >> 1 & 1), 4 + (choice >> 2)});
    best = std::min(best, shortestToy(problem, paths));
    paths.pop_back();
  }
  return best;
}

TEST(Skip, RoutesAroundASlowLink) {
  for (int32_t m : {2, 3, 4}) {
    SkipProblem problem = toy(m);
    problem.hop[0][2] = problem.hop[2][0] = 40;
    ASSERT_EQ(problem.check(), std::nullopt);
    const auto plan = planSkip(problem);
    ASSERT_TRUE(plan);
    EXPECT_TRUE(plan->allTried);
    EXPECT_EQ(makespan(plan->plan), plan->makespan);
    std::vector<std::vector<int32_t>> paths;
    EXPECT_EQ(plan->makespan, shortestToy(problem, paths));
    for (const std::vector<int32_t> &nodes : plan->nodes)
      EXPECT_FALSE(nodes[0] == 0 && nodes[1] == 2);
  }
}

/// Twenty nodes in five places far from each other, three or four to a stage.
SkipProblem spread(int32_t microBatches, int32_t visits) {
  SkipProblem problem;
  problem.stages = 6;
  problem.microBatches = microBatches;
  problem.visits = visits;
  std::mt19937 random(41);
  problem.hop = equalHops(20, 0);
  for (int32_t a = 0; a < 20; ++a) {
    problem.stageOfNode.push_back(a % 6);
    for (int32_t b = 0; b < a; ++b)
      problem.hop[a][b] = problem.hop[b][a] =
          a / 4 == b / 4 ? 0.1 : 1 + 0.25 * double(random() % 12);
  }
  return problem;
}

TEST(Skip, VisitingFewerStagesIsFasterAndBalanced) {
  std::vector<double> makespans;
  for (const SkipProblem &problem : {spread(8, 6), spread(8, 4)}) {
    ASSERT_EQ(problem.check(), std::nullopt);
    const auto plan = planSkip(problem);
    ASSERT_TRUE(plan);
    EXPECT_FALSE(plan->allTried);
    EXPECT_EQ(makespan(plan->plan), plan->makespan);
    makespans.push_back(plan->makespan);
    std::vector<int32_t> counts(6, 0);
    for (const std::vector<int32_t> &nodes : plan->nodes) {
      EXPECT_EQ(nodes.size(), size_t(problem.visits));
      EXPECT_TRUE(
          std::is_sorted(nodes.begin(), nodes.end(), [&](int32_t a, int32_t b) {
            return problem.stageOfNode[a] < problem.stageOfNode[b];
          }));
      for (int32_t node : nodes)
        ++counts[problem.stageOfNode[node]];
    }
    const auto [least, most] =
        std::minmax_element(counts.begin() + 1, counts.end() - 1);
    EXPECT_LE(*most - *least, 1);
    // A node never runs two at a time, by the times themselves.
    const auto timing = timeChains(plan->plan.problem, plan->plan.schedule);
    for (size_t node = 0; node < timing->start.size(); ++node)
      for (size_t i = 1; i < timing->start[node].size(); ++i)
        EXPECT_GE(timing->start[node][i], timing->end[node][i - 1]);
  }
  EXPECT_LT(makespans[1], makespans[0]);
}

TEST(Skip, LocalSearchComesNearAllCombinations) {
  // What eight micro-batches cost cannot be less than what four cost alone.
  SkipProblem problem = toy(5);
  problem.hop[0][2] = problem.hop[2][0] = 40;
  const auto plan = planSkip(problem);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->allTried);
  std::vector<std::vector<int32_t>> paths;
  EXPECT_LE(plan->makespan, 1.1 * shortestToy(problem, paths));
}

TEST(Skip, ReorderedPathsMayBeShorter) {
  // One node a stage; the middle ones are near the ends the wrong way round.
  SkipProblem problem;
  problem.stages = 4;
  problem.stageOfNode = {0, 1, 2, 3};
  problem.hop = equalHops(4, 1);
  problem.visits = 4;
  problem.hop[0][1] = problem.hop[1][0] = 9;
  problem.hop[2][3] = problem.hop[3][2] = 9;
  const double inOrder = planSkip(problem)->makespan;
  EXPECT_EQ(inOrder, 4 * 3 + 2 * (9 + 1 + 9));
  problem.reorder = true;
  const auto plan = planSkip(problem);
  EXPECT_EQ(plan->nodes[0], (std::vector<int32_t>{0, 2, 1, 3}));
  EXPECT_EQ(plan->makespan, 4 * 3 + 2 * 3);
}

TEST(Skip, NamesWhatItCannotDo) {
  auto why = [](auto change) {
    SkipProblem problem = toy(2);
    change(problem);
    return problem.check().value_or("");
  };
  using P = SkipProblem;
  EXPECT_EQ(why([](P &) {}), "");
  EXPECT_EQ(why([](P &p) { p.visits = 1; }), "'visits' is 1, not from 2 to 3");
  EXPECT_EQ(why([](P &p) { p.stageOfNode[2] = p.stageOfNode[3] = 0; }),
            "no node is of stage 1");
  EXPECT_EQ(why([](P &p) { p.stageOfNode[2] = 3; }),
            "a node is of stage 3, and there are 3");
  EXPECT_EQ(why([](P &p) { p.mostInFlight = 0; }),
            "'mostInFlight' is 0, not at least 1");
  EXPECT_EQ(why([](P &p) { p.hop.pop_back(); }),
            "'hop' has 5 rows for 6 ranks");
  EXPECT_EQ(why([](P &p) {
              p.stages = 64;
              p.visits = 32;
              p.hop.clear();
              p.stageOfNode.clear();
              for (int32_t s = 0; s < 64; ++s)
                p.stageOfNode.push_back(s);
            }),
            "a micro-batch has more than 16384 paths to choose from");
  SkipProblem one;
  one.stageOfNode = {0};
  one.microBatches = 3;
  EXPECT_EQ(one.check(), std::nullopt);
  EXPECT_EQ(planSkip(one)->makespan, 9);
}

} // namespace
