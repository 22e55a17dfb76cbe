//===- VersionPropertyTests.cpp - version tags against brute force --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The replay against definitions: the newest version is the number of updates
// before an action, a version is alive while a later action reads it, and a
// stream runs if repeatedly running any action at the head of a list ends.
//
//===----------------------------------------------------------------------===//

#include "VersionStreams.h"

#include <map>
#include <random>
#include <set>

using namespace takt;

namespace {

using Kind = StreamAction::Kind;
using Key = std::tuple<Kind, int32_t, int32_t>; // kind, stage, index

struct Expected {
  std::vector<std::vector<int32_t>> forward, backward;
  std::vector<int32_t> alive;
};

/// Work of an action in single pieces; B is I and W.
std::vector<Key> pieces(const StreamAction &action) {
  std::vector<Key> keys;
  for (int32_t i = action.first; i < action.first + action.count; ++i)
    if (action.kind == Kind::B) {
      keys.push_back({Kind::I, action.stage, i});
      keys.push_back({Kind::W, action.stage, i});
    } else {
      keys.push_back({action.kind, action.stage, i});
    }
  return keys;
}

std::vector<Key> needs(const StreamProblem &problem, const Key &key) {
  auto [kind, s, i] = key;
  std::vector<Key> keys;
  if (kind == Kind::F && s > 0)
    keys.push_back({Kind::F, s - 1, i});
  if (kind == Kind::I) {
    keys.push_back({Kind::F, s, i});
    if (s + 1 < problem.stages)
      keys.push_back({Kind::I, s + 1, i});
  }
  if (kind == Kind::W)
    keys.push_back({Kind::I, s, i});
  if (kind == Kind::Update) {
    if (i > 0)
      keys.push_back({Kind::Update, s, i - 1});
    for (int32_t m = i * problem.perStep; m < (i + 1) * problem.perStep; ++m)
      keys.push_back({Kind::W, s, m});
  }
  return keys;
}

/// Everything exactly once, all of it after what it needs.
bool runs(const StreamProblem &problem, const UpdateStream &stream) {
  std::set<Key> all;
  size_t count = 0;
  for (const auto &list : stream.ranks)
    for (const StreamAction &action : list)
      for (const Key &key : pieces(action)) {
        all.insert(key);
        ++count;
      }
  if (count != all.size() ||
      count !=
          size_t(problem.stages) * (3 * problem.microBatches() + problem.steps))
    return false;
  std::set<Key> done;
  std::vector<size_t> next(stream.ranks.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < next.size(); ++rank) {
      if (next[rank] == stream.ranks[rank].size())
        continue;
      // Pieces of one action may need each other.
      std::set<Key> now = done;
      for (const Key &key : pieces(stream.ranks[rank][next[rank]]))
        now.insert(key);
      bool ready = true;
      for (const Key &key : pieces(stream.ranks[rank][next[rank]]))
        for (const Key &need : needs(problem, key))
          ready &= now.count(need) > 0;
      if (!ready)
        continue;
      done = now;
      ++next[rank];
      moved = true;
    }
  }
  return done.size() == count;
}

/// Nothing if the policy asks for a version that it cannot have.
std::optional<Expected> expect(const StreamProblem &problem,
                               const UpdateStream &stream,
                               WeightPolicy policy) {
  Expected expected;
  std::map<std::pair<int32_t, int32_t>, int32_t> newestAtForward;
  for (const auto &list : stream.ranks) {
    std::map<int32_t, int32_t> updates;
    for (const StreamAction &action : list) {
      updates[action.stage] += action.kind == Kind::Update;
      if (action.kind == Kind::F)
        for (int32_t m = action.first; m < action.first + action.count; ++m)
          newestAtForward[{action.stage, m}] = updates[action.stage];
    }
  }
  for (int32_t s = 0; s < problem.stages; ++s) {
    auto &f = expected.forward.emplace_back(problem.microBatches(), -1);
    auto &b = expected.backward.emplace_back(problem.microBatches(), -1);
    std::vector<StreamAction> own;
    for (const auto &list : stream.ranks)
      for (const StreamAction &action : list)
        if (action.stage == s)
          own.push_back(action);
    // Versions read by each action, and the newest behind it.
    std::vector<std::set<int32_t>> read(own.size());
    std::vector<int32_t> newest(own.size(), 0);
    int32_t version = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      newest[i] = version += own[i].kind == Kind::Update;
      if (own[i].kind == Kind::Update || own[i].kind == Kind::W)
        continue;
      for (int32_t m = own[i].first; m < own[i].first + own[i].count; ++m) {
        const bool isForward = own[i].kind == Kind::F;
        const int32_t step = m / problem.perStep;
        int32_t tag = version;
        if (policy == WeightPolicy::Sync)
          tag = step;
        if (policy == WeightPolicy::DoubleBuffer ||
            policy == WeightPolicy::OneStepDelayed)
          tag = step > 0 ? step - 1 : 0;
        if (policy == WeightPolicy::Stash)
          tag = newestAtForward[{s, m}];
        if (policy == WeightPolicy::VerticalSync)
          tag = newestAtForward[{0, m}];
        if (tag > version ||
            (policy == WeightPolicy::OneStepDelayed && tag != version))
          return std::nullopt;
        (isForward ? f : b)[m] = tag;
        read[i].insert(tag);
        if (policy == WeightPolicy::Blend && !isForward)
          read[i].insert(newestAtForward[{s, m}]);
      }
    }
    size_t most = 1;
    for (size_t i = 0; i < own.size(); ++i) {
      std::set<int32_t> alive = {newest[i]};
      for (size_t j = i + 1; j < own.size(); ++j)
        for (int32_t tag : read[j])
          if (tag <= newest[i])
            alive.insert(tag);
      most = std::max(most, alive.size());
    }
    expected.alive.push_back(int32_t(most));
  }
  return expected;
}

/// Continuous or flushed steps with updates at once or put off, backwards whole
/// or apart, moved about by a few swaps that may break it.
UpdateStream randomStream(const StreamProblem &problem, std::mt19937 &random) {
  auto below = [&](size_t n) { return size_t(random() % n); };
  Schedule schedule =
      below(2)
          ? generateOneFOneB({problem.stages, problem.microBatches()})
          : repeatSteps(generateOneFOneB({problem.stages, problem.perStep}),
                        problem.perStep, problem.steps);
  if (below(2))
    for (std::vector<Action> &actions : schedule.roles) {
      std::vector<Action> apart;
      for (Action action : actions) {
        if (action.kind != ActionKind::B) {
          apart.push_back(action);
          continue;
        }
        apart.push_back({action.stage, ActionKind::I, action.microBatch});
        apart.push_back({action.stage, ActionKind::W, action.microBatch});
      }
      actions = apart;
    }
  UpdateStream stream = withUpdates(problem, schedule, int32_t(below(3)));
  for (size_t swaps = below(4); swaps > 0; --swaps) {
    auto &list = stream.ranks[below(stream.ranks.size())];
    const size_t at = below(list.size() - 1);
    std::swap(list[at], list[at + 1]);
  }
  auto &list = stream.ranks[below(stream.ranks.size())];
  const size_t at = below(list.size());
  switch (below(8)) {
  case 0:
    list.erase(list.begin() + at);
    break;
  case 1:
    list.insert(list.begin() + at, list[below(list.size())]);
    break;
  case 2:
    std::swap(list[at], list[below(list.size())]);
    break;
  default:
    break;
  }
  return stream;
}

TEST(VersionProperties, AgreeWithBruteForce) {
  std::mt19937 random(20);
  size_t accepted = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    const StreamProblem problem{int32_t(1 + random() % 8),
                                int32_t(1 + random() % 6),
                                int32_t(1 + random() % 4)};
    const UpdateStream stream = randomStream(problem, random);
    const bool whole = runs(problem, stream);
    for (std::string_view name : weightPolicyNames()) {
      const WeightPolicy policy = parseWeightPolicy(name).value();
      std::string why;
      const auto replay = replayVersions(problem, stream, policy, why);
      const auto expected =
          whole ? expect(problem, stream, policy) : std::nullopt;
      ASSERT_EQ(replay.has_value(), expected.has_value())
          << "round " << round << ", " << name << ": " << why;
      (replay ? accepted : refused)++;
      if (!replay) {
        EXPECT_FALSE(why.empty());
        continue;
      }
      ASSERT_EQ(replay->forward, expected->forward) << name;
      ASSERT_EQ(replay->backward, expected->backward) << name;
      ASSERT_EQ(replay->alive, expected->alive) << "round " << round << name;
    }
  }
  // Both sides are tried.
  EXPECT_GT(accepted, 3000u);
  EXPECT_GT(refused, 3000u);
}

/// Starts and ends of all actions, relaxed until they stand still.
struct Times {
  std::vector<std::vector<double>> start, end; ///< like the lists
  double makespan = 0;
};
Times relax(const StreamProblem &problem, const UpdateStream &stream) {
  Times times;
  for (const auto &list : stream.ranks) {
    times.start.emplace_back(list.size(), 0);
    times.end.emplace_back(list.size(), 0);
  }
  std::map<Key, std::pair<size_t, size_t>> place;
  for (size_t rank = 0; rank < stream.ranks.size(); ++rank)
    for (size_t i = 0; i < stream.ranks[rank].size(); ++i)
      for (const Key &key : pieces(stream.ranks[rank][i]))
        place[key] = {rank, i};
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t rank = 0; rank < stream.ranks.size(); ++rank)
      for (size_t i = 0; i < stream.ranks[rank].size(); ++i) {
        const StreamAction &action = stream.ranks[rank][i];
        double start = i > 0 ? times.end[rank][i - 1] : 0;
        double time = 0;
        for (const Key &key : pieces(action)) {
          const StageTimes stage = problem.at(action.stage);
          time += std::get<0>(key) == Kind::F   ? stage.forward
                  : std::get<0>(key) == Kind::I ? stage.inputGrad
                  : std::get<0>(key) == Kind::W ? stage.weightGrad
                                                : 0;
          for (const Key &need : needs(problem, key)) {
            const auto [other, at] = place[need];
            if (other != rank || at != i)
              start = std::max(start, times.end[other][at] +
                                          (other != rank ? problem.hop : 0));
          }
        }
        changed |= times.start[rank][i] != start;
        times.start[rank][i] = start;
        times.end[rank][i] = start + time;
        times.makespan = std::max(times.makespan, start + time);
      }
  }
  return times;
}

TEST(VersionProperties, TimesAndCountsAgreeWithBruteForce) {
  std::mt19937 random(22);
  size_t accepted = 0;
  for (int round = 0; round < 1000; ++round) {
    StreamProblem problem{int32_t(1 + random() % 6), int32_t(1 + random() % 5),
                          int32_t(1 + random() % 4)};
    problem.hop = double(random() % 3);
    for (int32_t s = 0; s < problem.stages; ++s)
      problem.times.push_back({double(1 + random() % 3), double(random() % 3),
                               double(random() % 3)});
    const UpdateStream stream = randomStream(problem, random);
    std::string why;
    const auto replay =
        replayVersions(problem, stream, WeightPolicy::Latest, why);
    if (!replay)
      continue;
    ++accepted;
    const Times times = relax(problem, stream);
    EXPECT_EQ(replay->makespan, times.makespan);
    // Updates that all stages have had at a moment.
    auto whole = [&](double moment) {
      int32_t least = problem.steps;
      for (size_t rank = 0; rank < stream.ranks.size(); ++rank) {
        int32_t had = 0;
        for (size_t i = 0; i < stream.ranks[rank].size(); ++i)
          had += stream.ranks[rank][i].kind == Kind::Update &&
                 times.end[rank][i] <= moment;
        least = std::min(least, had);
      }
      return least;
    };
    for (int32_t rank = 0; rank < problem.stages; ++rank) {
      std::set<int32_t> waiting;
      size_t most = 0;
      for (size_t i = 0; i < stream.ranks[rank].size(); ++i) {
        const StreamAction &action = stream.ranks[rank][i];
        const double start = times.start[rank][i];
        if (action.kind == Kind::F && rank == 0) {
          EXPECT_EQ(replay->wholeAtForward[action.first], whole(start));
        }
        if ((action.kind == Kind::B || action.kind == Kind::I) &&
            rank == problem.stages - 1) {
          EXPECT_EQ(replay->wholeAtBackward[action.first], whole(start));
        }
        if (action.kind == Kind::B || action.kind == Kind::W)
          waiting.insert(problem.stepOf(action.first));
        if (action.kind == Kind::Update)
          waiting.erase(action.first);
        most = std::max(most, waiting.size());
      }
      EXPECT_EQ(size_t(replay->gradients[rank]), most);
    }
  }
  EXPECT_GT(accepted, 300u);
}

TEST(VersionProperties, DelayedIsAllowedExactlyWhereDefined) {
  std::mt19937 random(21);
  size_t allowed = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    const StreamProblem problem{int32_t(1 + random() % 4),
                                int32_t(1 + random() % 6),
                                int32_t(1 + random() % 3)};
    const UpdateStream stream = randomStream(problem, random);
    for (WeightPolicy policy : {WeightPolicy::Stash, WeightPolicy::VerticalSync,
                                WeightPolicy::Latest}) {
      std::string why;
      const auto replay = replayVersions(problem, stream, policy, why);
      if (!replay)
        continue;
      for (int32_t k = 0; k <= 3; ++k) {
        // Some delay d <= k explains every read of every stage.
        bool delayed = false, bounded = true;
        for (int32_t d = 0; d <= k; ++d) {
          bool all = true;
          for (int32_t s = 0; s < problem.stages; ++s)
            for (int32_t m = 0; m < problem.microBatches(); ++m) {
              const int32_t version = std::max(m / problem.perStep - d, 0);
              all &= replay->forward[s][m] == version &&
                     replay->backward[s][m] == version;
            }
          delayed |= all;
        }
        for (int32_t s = 0; s < problem.stages; ++s)
          for (int32_t m = 0; m < problem.microBatches(); ++m)
            bounded &= replay->forward[s][m] == replay->backward[s][m] &&
                       replay->forward[s][m] >= m / problem.perStep - k;
        const Semantics::Kind kind =
            k == 0 ? Semantics::Kind::Exact : Semantics::Kind::Delayed;
        EXPECT_EQ(!refuseStream(problem, stream, policy, {kind, k}), delayed)
            << "round " << round << ", k " << k;
        EXPECT_EQ(!refuseStream(problem, stream, policy,
                                {Semantics::Kind::Bounded, k}),
                  bounded)
            << "round " << round << ", k " << k;
        (delayed ? allowed : refused)++;
      }
    }
  }
  EXPECT_GT(allowed, 1000u);
  EXPECT_GT(refused, 1000u);
}

} // namespace
