//===- ChainTests.cpp - chains of phases, checked and timed ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Chains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace takt;

namespace {

/// Steps S0, S1, ... without homes.
std::vector<ChainStep> freeSteps(int32_t count) {
  std::vector<ChainStep> steps;
  for (int32_t i = 0; i < count; ++i)
    steps.push_back({"S" + std::to_string(i)});
  return steps;
}

/// Two micro-batches there and back over two ranks.
ChainProblem thereAndBack() {
  ChainProblem problem;
  problem.ranks = 2;
  problem.steps = {{"F0", {0}}, {"F1", {1}}, {"B1", {1}}, {"B0", {0}}};
  std::vector<ChainVisit> path = {{0, 0, 1, 1, 0},
                                  {1, 1, 1, 1, 0},
                                  {2, 1, 2, 0, 1, 1, 1},
                                  {3, 0, 2, 0, 1, 1, 0}};
  problem.paths = {path, path};
  problem.hop = equalHops(2, 0.5);
  return problem;
}

TEST(Chains, RunsByItsTimeModel) {
  const ChainProblem problem = thereAndBack();
  EXPECT_EQ(problem.check(), std::nullopt);
  const ChainSchedule schedule = {
      {{{0, 0}, {1, 0}, {0, 3}, {1, 3}}, {{0, 1}, {0, 2}, {1, 1}, {1, 2}}}};
  EXPECT_EQ(verify(problem, schedule), std::nullopt);
  const auto timing = timeChains(problem, schedule);
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->start[0], (std::vector<double>{0, 1, 5, 8}));
  EXPECT_EQ(timing->start[1], (std::vector<double>{1.5, 2.5, 4.5, 5.5}));
  EXPECT_EQ(timing->makespan, 10);
  EXPECT_EQ(timing->busy, (std::vector<double>{6, 6}));
  EXPECT_EQ(timing->peakHeld, (std::vector<double>{2, 1}));
  // Rank 1: 1.5 to arrive, 6 of work, 2.5 back down.
  EXPECT_EQ(boundChains(problem), 10);
}

TEST(Chains, NamesWhatIsWrongWithAnOrder) {
  ChainProblem problem = thereAndBack();
  auto why = [&](std::vector<std::vector<ChainAction>> lists) {
    return verify(problem, {std::move(lists)}).value_or("");
  };
  const std::vector<ChainAction> up = {{0, 0}, {1, 0}, {0, 3}, {1, 3}};
  EXPECT_EQ(why({up}), "there are 1 lists for 2 ranks");
  EXPECT_EQ(why({up, {{0, 1}, {0, 2}, {1, 1}}}), "'B1.1' is missing");
  EXPECT_EQ(why({up, {{0, 1}, {0, 1}}}),
            "'F1.0' stands twice on rank 1, at places 0 and 1");
  EXPECT_EQ(why({up, {{0, 0}}}),
            "'F0.0' is in the list of rank 1, not of rank 0");
  EXPECT_EQ(why({{{2, 0}}, {}}), "place 0 of rank 0: there is no micro-batch "
                                 "2, only 2 micro-batches");
  EXPECT_EQ(why({{{0, 4}}, {}}),
            "place 0 of rank 0: micro-batch 0 has no visit 4, only 4");
  EXPECT_EQ(
      why({{{0, 0}, {0, 3}, {1, 0}, {1, 3}}, {{1, 1}, {0, 1}, {0, 2}, {1, 2}}}),
      "these wait in a circle: 'B0.0' on rank 0 for 'F1.0', 'F1.1' on "
      "rank 1 for 'F0.1'");
  EXPECT_EQ(why({up, {{0, 2}, {0, 1}, {1, 1}, {1, 2}}}),
            "these wait in a circle: 'B1.0' on rank 1 for 'F1.0'");
  problem.mostHeld = {1, 2};
  EXPECT_EQ(why({up, {{0, 1}, {0, 2}, {1, 1}, {1, 2}}}),
            "'F0.1' makes rank 0 hold 2, and it may hold 1");
}

TEST(Chains, NamesWhatIsWrongWithAProblem) {
  auto why = [](auto change) {
    ChainProblem problem = thereAndBack();
    change(problem);
    return problem.check().value_or("");
  };
  using P = ChainProblem;
  EXPECT_EQ(why([](P &p) { p.ranks = 0; }), "'ranks' is 0, not at least 1");
  EXPECT_EQ(why([](P &p) { p.hop.pop_back(); }),
            "'hop' has 1 rows for 2 ranks");
  EXPECT_EQ(why([](P &p) { p.hop[1].pop_back(); }),
            "a row of 'hop' has 1 entries for 2 ranks");
  EXPECT_EQ(why([](P &p) { p.hop[1][0] = -1; }), "'hop' has an entry -1");
  EXPECT_EQ(why([](P &p) { p.mostHeld = {1}; }),
            "'mostHeld' has 1 entries for 2 ranks");
  EXPECT_EQ(why([](P &p) { p.steps[1].homes = {2}; }),
            "'F1' is at home on rank 2, and there are 2");
  EXPECT_EQ(why([](P &p) { p.paths[1][2].step = 4; }),
            "visit 2 of micro-batch 1 is of step 4, and there are 4");
  EXPECT_EQ(why([](P &p) { p.paths[1][2].rank = -1; }),
            "visit 2 of micro-batch 1 is on rank -1, and there are 2");
  EXPECT_EQ(why([](P &p) { p.paths[0][1].rank = 0; }),
            "visit 1 of micro-batch 0 is on rank 0, which has no parameters of "
            "'F1'");
  EXPECT_EQ(why([](P &p) { p.paths[0][1].time = -2; }),
            "visit 1 of micro-batch 0 has time -2");
  EXPECT_EQ(why([](P &p) { p.paths[0][1].with = 1; }),
            "visit 1 of micro-batch 0 reads what visit 1 saves");
  EXPECT_EQ(why([](P &p) { p.paths[0][3].with = 1; }),
            "visit 3 of micro-batch 0 is on rank 0, and what it reads is saved "
            "on rank 1");
}

TEST(Chains, ListsKeepLimits) {
  ChainProblem problem = thereAndBack();
  auto makespan = [&](const ChainOrder &order) {
    const auto schedule = listChains(problem, order);
    if (!schedule)
      return -1.0;
    EXPECT_EQ(verify(problem, *schedule), std::nullopt);
    return timeChains(problem, *schedule)->makespan;
  };
  EXPECT_EQ(makespan({}), 10);
  // One after the other: 7 each.
  EXPECT_EQ(makespan({{}, 1}), 14);
  problem.mostHeld = {1, 1};
  EXPECT_EQ(makespan({}), 14);
  problem.mostHeld = {0.5, 1};
  EXPECT_EQ(makespan({}), -1);
}

/// Paths of random length over random ranks; every second visit is freed later
/// on the same rank.
ChainProblem randomProblem(std::mt19937 &random) {
  auto below = [&](int32_t n) { return int32_t(random() % n); };
  ChainProblem problem;
  problem.ranks = 1 + below(8);
  problem.steps = freeSteps(6);
  problem.hop = equalHops(problem.ranks, 0);
  for (auto &row : problem.hop)
    for (double &hop : row)
      hop = below(4);
  problem.paths.resize(1 + below(24));
  for (auto &path : problem.paths)
    for (int32_t i = 0, n = below(6); i <= n; ++i) {
      ChainVisit visit;
      visit.step = i;
      visit.rank = below(problem.ranks);
      visit.time = below(4);
      visit.message = below(3);
      visit.held = below(2);
      if (i > 0 && below(2)) {
        visit.rank = path[i - 1].rank;
        visit.with = i - 1;
        visit.freed = path[i - 1].held;
      }
      path.push_back(visit);
    }
  EXPECT_EQ(problem.check(), std::nullopt);
  return problem;
}

/// Ends by relaxation of the edges along lists and paths; nothing if they still
/// change after as many rounds as there are actions.
std::optional<double> relax(const ChainProblem &problem,
                            const ChainSchedule &schedule) {
  std::map<std::pair<int32_t, int32_t>, double> end;
  size_t count = 0;
  for (const auto &list : schedule.ranks)
    for (const ChainAction &action : list) {
      end[{action.microBatch, action.visit}] = 0;
      ++count;
    }
  for (size_t round = 0; round <= count; ++round) {
    bool changed = false;
    double makespan = 0;
    for (const auto &list : schedule.ranks)
      for (size_t i = 0; i < list.size(); ++i) {
        const auto [m, v] = list[i];
        const ChainVisit &visit = problem.paths[m][v];
        double start = 0;
        if (i > 0)
          start = end[{list[i - 1].microBatch, list[i - 1].visit}];
        if (v > 0) {
          const int32_t from = problem.paths[m][v - 1].rank;
          const double hop =
              from == visit.rank ? 0 : problem.hop[from][visit.rank];
          start = std::max(start, end[{m, v - 1}] + visit.message * hop);
        }
        changed |= end[{m, v}] != start + visit.time;
        end[{m, v}] = start + visit.time;
        makespan = std::max(makespan, end[{m, v}]);
      }
    if (!changed)
      return makespan;
  }
  return std::nullopt;
}

/// Whole, on the right ranks, within limits, and without a circle: by taking
/// away, again and again, actions that nothing left comes before.
bool runs(const ChainProblem &problem, const ChainSchedule &schedule) {
  std::set<std::pair<int32_t, int32_t>> all;
  size_t count = 0, expected = 0;
  for (const auto &path : problem.paths)
    expected += path.size();
  for (int32_t rank = 0; rank < problem.ranks; ++rank) {
    double held = 0;
    for (const ChainAction &action : schedule.ranks[rank]) {
      const ChainVisit &visit = problem.paths[action.microBatch][action.visit];
      if (visit.rank != rank)
        return false;
      held += visit.held;
      if (!problem.mostHeld.empty() && held > problem.mostHeld[rank])
        return false;
      held -= visit.freed;
      all.insert({action.microBatch, action.visit});
      ++count;
    }
  }
  if (count != expected || all.size() != expected)
    return false;
  std::vector<std::vector<ChainAction>> left = schedule.ranks;
  for (bool moved = true; moved;) {
    moved = false;
    for (auto &list : left) {
      if (list.empty() || (list[0].visit > 0 &&
                           all.count({list[0].microBatch, list[0].visit - 1})))
        continue;
      all.erase({list[0].microBatch, list[0].visit});
      list.erase(list.begin());
      moved = true;
    }
  }
  return all.empty();
}

TEST(ChainProperties, ListsAreWholeAndTimedRight) {
  std::mt19937 random(31);
  for (int round = 0; round < 400; ++round) {
    const ChainProblem problem = randomProblem(random);
    ChainOrder order;
    order.mostInFlight = int32_t(random() % 5);
    for (const auto &path : problem.paths)
      for (auto &ranks = order.rank.emplace_back(); ranks.size() < path.size();)
        ranks.push_back(double(random() % 3));
    const auto schedule = listChains(problem, order);
    ASSERT_TRUE(schedule);
    ASSERT_EQ(verify(problem, *schedule), std::nullopt);
    const auto timing = timeChains(problem, *schedule);
    ASSERT_TRUE(timing);
    EXPECT_EQ(timing->makespan, relax(problem, *schedule));
    EXPECT_LE(boundChains(problem), timing->makespan);
  }
}

TEST(ChainProperties, ChangedListsAreRefusedExactlyWhereTheyFail) {
  std::mt19937 random(32);
  auto below = [&](size_t n) { return size_t(random() % n); };
  size_t accepted = 0, refused = 0;
  for (int round = 0; round < 6000; ++round) {
    ChainProblem problem = randomProblem(random);
    ChainSchedule schedule = listChains(problem).value();
    if (below(2))
      problem.mostHeld = timeChains(problem, schedule)->peakHeld;
    auto &list = schedule.ranks[below(problem.ranks)];
    if (list.empty())
      continue;
    const size_t at = below(list.size());
    switch (below(4)) {
    case 0:
      list.erase(list.begin() + at);
      break;
    case 1:
      list.insert(list.begin() + below(list.size() + 1), list[at]);
      break;
    case 2: {
      // To another place of the same list.
      const ChainAction action = list[at];
      list.erase(list.begin() + at);
      list.insert(list.begin() + below(list.size() + 1), action);
      break;
    }
    default: {
      // To another rank, or the same.
      const ChainAction action = list[at];
      list.erase(list.begin() + at);
      auto &other = schedule.ranks[below(problem.ranks)];
      other.insert(other.begin() + below(other.size() + 1), action);
      break;
    }
    }
    const auto fault = verify(problem, schedule);
    ASSERT_EQ(!fault, runs(problem, schedule)) << fault.value_or("");
    (fault ? refused : accepted)++;
    if (!fault) {
      EXPECT_EQ(timeChains(problem, schedule)->makespan,
                relax(problem, schedule));
    }
  }
  EXPECT_GT(accepted, 500u);
  EXPECT_GT(refused, 500u);
}

} // namespace
