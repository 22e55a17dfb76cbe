//===- JanusTests.cpp - four phases, waves and steady states --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "ChainMakespan.h"

#include <algorithm>
#include <map>

using namespace takt;

namespace {

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

} // namespace
