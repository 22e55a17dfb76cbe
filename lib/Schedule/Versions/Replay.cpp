//===- Replay.cpp - a version tag on every read of weights ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One run over all lists, an action once its inputs are there, like the time
// model of Pipeline.h. What a stage reads depends on its own list and, with
// vertical sync, on that of stage 0, which passes its version along; so any
// order of ranks that respects inputs gives the same tags. Only what all stages
// have had at a moment depends on times and is counted afterwards.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace takt {

namespace {

using Kind = StreamAction::Kind;

constexpr double kNever = -1;
/// Times are sums in another order than those they are compared with.
constexpr double kTimeSlack = 1e-9;

class Replayer {
public:
  Replayer(const StreamProblem &problem, const UpdateStream &stream,
           WeightPolicy policy)
      : problem(problem), stream(stream), policy(policy),
        rankOfStage(problem.stages, -1), versions(problem.stages, 0),
        gradientsLeft(problem.stages,
                      std::vector<int32_t>(problem.steps, problem.perStep)),
        waiting(problem.stages, 0), events(problem.stages),
        updateAt(problem.stages) {
    const std::vector<double> never(problem.microBatches(), kNever);
    for (auto *times : {&forwardEnd, &inputGradEnd, &weightGradEnd})
      times->assign(problem.stages, never);
    backwardStart.assign(problem.microBatches(), kNever);
    forwardStart = backwardStart;
    const std::vector<int32_t> none(problem.microBatches(), -1);
    replay.forward.assign(problem.stages, none);
    replay.backward = replay.forward;
    replay.alive.assign(problem.stages, 1);
    replay.gradients.assign(problem.stages, 0);
  }

  std::optional<VersionReplay> run(std::string &why) {
    if (auto fault = checkActions())
      return why = *fault, std::nullopt;
    if (auto fault = execute())
      return why = *fault, std::nullopt;
    if (auto fault = checkWhole())
      return why = *fault, std::nullopt;
    for (int32_t stage = 0; stage < problem.stages; ++stage)
      replay.alive[stage] = countAlive(stage);
    countWhole();
    return std::move(replay);
  }

private:
  using Fault = std::optional<std::string>;

  Fault checkActions() {
    for (size_t rank = 0; rank < stream.ranks.size(); ++rank)
      for (const StreamAction &action : stream.ranks[rank]) {
        if (action.stage < 0 || action.stage >= problem.stages)
          return fmt::format("'{}' on rank {}: there is no stage {}, only {} "
                             "stages",
                             toText(action), rank, action.stage,
                             problem.stages);
        int32_t &owner = rankOfStage[action.stage];
        if (owner >= 0 && owner != int32_t(rank))
          return fmt::format("'{}' is on rank {}, but stage {} belongs to "
                             "rank {}",
                             toText(action), rank, action.stage, owner);
        owner = int32_t(rank);
        const bool update = action.kind == Kind::Update;
        const int64_t end =
            update ? problem.steps : int64_t(problem.microBatches());
        if (action.first < 0 || action.count < 1 ||
            int64_t(action.first) + action.count > end ||
            (update && action.count != 1))
          return fmt::format("'{}' on rank {}: there are {} {}", toText(action),
                             rank, end, update ? "steps" : "micro-batches");
      }
    return std::nullopt;
  }

  Fault execute() {
    std::vector<size_t> next(stream.ranks.size(), 0);
    std::vector<double> clock(stream.ranks.size(), 0);
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t rank = 0; rank < next.size(); ++rank)
        while (next[rank] < stream.ranks[rank].size()) {
          const StreamAction &action = stream.ranks[rank][next[rank]];
          double start = clock[rank];
          if (!inputsThere(action, start))
            break;
          const auto end = start + action.count * timeOf(action);
          if (auto fault = perform(action, int32_t(next[rank]), start, end))
            return fault;
          replay.makespan = std::max(replay.makespan, end);
          clock[rank] = end;
          ++next[rank];
          moved = true;
        }
    }
    for (size_t rank = 0; rank < next.size(); ++rank)
      if (next[rank] < stream.ranks[rank].size())
        return fmt::format("'{}' on rank {} never has its inputs",
                           toText(stream.ranks[rank][next[rank]]), rank);
    return std::nullopt;
  }

  double timeOf(const StreamAction &action) const {
    const StageTimes times = problem.at(action.stage);
    switch (action.kind) {
    case Kind::F:
      return times.forward;
    case Kind::I:
      return times.inputGrad;
    case Kind::W:
      return times.weightGrad;
    case Kind::B:
      return times.inputGrad + times.weightGrad;
    case Kind::Update:
      break;
    }
    return 0;
  }

  /// Moves `start` to when the last input arrives; false if one is not made.
  bool inputsThere(const StreamAction &action, double &start) const {
    const int32_t stage = action.stage;
    for (int32_t m = action.first; m < action.first + action.count; ++m) {
      switch (action.kind) {
      case Kind::F:
        if (stage > 0 && !arrived(forwardEnd, stage - 1, stage, m, start))
          return false;
        break;
      case Kind::B:
      case Kind::I:
        if (!arrived(forwardEnd, stage, stage, m, start) ||
            (stage + 1 < problem.stages &&
             !arrived(inputGradEnd, stage + 1, stage, m, start)))
          return false;
        break;
      case Kind::W:
        if (!arrived(inputGradEnd, stage, stage, m, start))
          return false;
        break;
      case Kind::Update:
        break;
      }
    }
    return true;
  }

  bool arrived(const std::vector<std::vector<double>> &ends, int32_t from,
               int32_t to, int32_t m, double &start) const {
    const double end = ends[from][m];
    if (end == kNever)
      return false;
    const bool apart = rankOfStage[from] != rankOfStage[to];
    start = std::max(start, end + (apart ? problem.hop : 0));
    return true;
  }

  Fault perform(const StreamAction &action, int32_t place, double start,
                double end) {
    if (action.kind == Kind::Update)
      return update(action, place, end);
    for (int32_t m = action.first; m < action.first + action.count; ++m)
      if (auto fault = pass(action, m, place, start, end))
        return fault;
    return std::nullopt;
  }

  Fault update(const StreamAction &action, int32_t place, double end) {
    const int32_t stage = action.stage;
    if (action.first != versions[stage])
      return fmt::format("'{}' comes after {} updates of stage {}, not {}",
                         toText(action), versions[stage], stage, action.first);
    if (const int32_t left = gradientsLeft[stage][action.first])
      return fmt::format("'{}' comes before {} of the {} gradients of step {}",
                         toText(action), left, problem.perStep, action.first);
    ++versions[stage];
    --waiting[stage];
    updateAt[stage].push_back(end);
    events[stage].push_back({place, versions[stage], true});
    return std::nullopt;
  }

  Fault pass(const StreamAction &action, int32_t m, int32_t place, double start,
             double end) {
    const int32_t stage = action.stage;
    if (action.kind == Kind::F) {
      if (forwardEnd[stage][m] != kNever)
        return twice(action, m);
      forwardEnd[stage][m] = end;
      if (stage == 0)
        forwardStart[m] = start;
      return read(action, m, place);
    }
    if (action.kind != Kind::W) {
      if (inputGradEnd[stage][m] != kNever)
        return twice(action, m);
      inputGradEnd[stage][m] = end;
      if (stage + 1 == problem.stages)
        backwardStart[m] = start;
      if (auto fault = read(action, m, place))
        return fault;
    }
    if (action.kind == Kind::I)
      return std::nullopt;
    if (weightGradEnd[stage][m] != kNever)
      return twice(action, m);
    weightGradEnd[stage][m] = end;
    int32_t &left = gradientsLeft[stage][problem.stepOf(m)];
    if (left == problem.perStep)
      replay.gradients[stage] =
          std::max(replay.gradients[stage], ++waiting[stage]);
    --left;
    return std::nullopt;
  }

  static Fault twice(const StreamAction &action, int32_t m) {
    return fmt::format("'{}' repeats a pass of micro-batch {}", toText(action),
                       m);
  }

  /// Tags the read, as the policy says.
  Fault read(const StreamAction &action, int32_t m, int32_t place) {
    const int32_t stage = action.stage, step = problem.stepOf(m);
    const bool forward = action.kind == Kind::F;
    const int32_t newest = versions[stage];
    int32_t version = newest;
    switch (policy) {
    case WeightPolicy::Sync:
      version = step;
      break;
    case WeightPolicy::DoubleBuffer:
    case WeightPolicy::OneStepDelayed:
      version = std::max(step - 1, 0);
      break;
    case WeightPolicy::Stash:
      version = forward ? newest : replay.forward[stage][m];
      break;
    case WeightPolicy::VerticalSync:
      version = forward && stage == 0 ? newest : replay.forward[0][m];
      break;
    case WeightPolicy::Blend:
      // The other one that it reads keeps alive what F read.
      if (!forward)
        events[stage].push_back({place, replay.forward[stage][m], false});
      break;
    case WeightPolicy::Latest:
    case WeightPolicy::LookAhead:
      break;
    }
    if (version > newest)
      return fmt::format("'{}' reads version {} of the weights under policy "
                         "'{}', but stage {} is at version {} then",
                         toText(action), version, toText(policy), stage,
                         newest);
    if (policy == WeightPolicy::OneStepDelayed && version < newest)
      return fmt::format("'{}' reads version {} of the weights under policy "
                         "'{}', which keeps one, and stage {} is at version {}",
                         toText(action), version, toText(policy), stage,
                         newest);
    (forward ? replay.forward : replay.backward)[stage][m] = version;
    events[stage].push_back({place, version, false});
    return std::nullopt;
  }

  Fault checkWhole() const {
    for (int32_t stage = 0; stage < problem.stages; ++stage) {
      for (int32_t m = 0; m < problem.microBatches(); ++m)
        for (auto [ends, kind] : {std::pair(&forwardEnd, 'F'),
                                  {&inputGradEnd, 'B'},
                                  {&weightGradEnd, 'W'}})
          if ((*ends)[stage][m] == kNever)
            return fmt::format("'{}{}{}' is missing", stage, kind, m);
      if (versions[stage] != problem.steps)
        return fmt::format("'{}U{}' is missing", stage, versions[stage]);
    }
    return std::nullopt;
  }

  /// A version lives from the update that makes it until its last read, and at
  /// least until the next update, which it is the base of.
  int32_t countAlive(int32_t stage) const {
    const int32_t count = problem.steps + 1;
    std::vector<int32_t> from(count, 0), to(count, -1);
    for (const Event &event : events[stage]) {
      if (event.made) {
        from[event.version] = event.place;
        to[event.version - 1] = std::max(to[event.version - 1], event.place);
      }
      to[event.version] = std::max(to[event.version], event.place);
    }
    to[count - 1] = std::numeric_limits<int32_t>::max();
    // Ends before beginnings at the same place: an update of weights that
    // nobody reads again is in place.
    std::vector<std::pair<int32_t, int32_t>> changes;
    for (int32_t v = 0; v < count; ++v) {
      changes.emplace_back(from[v], 1);
      changes.emplace_back(to[v], -1);
    }
    std::sort(changes.begin(), changes.end());
    int32_t alive = 0, most = 0;
    for (auto [place, change] : changes)
      most = std::max(most, alive += change);
    return most;
  }

  void countWhole() {
    std::vector<double> whole(problem.steps, 0);
    for (const std::vector<double> &times : updateAt)
      for (int32_t k = 0; k < problem.steps; ++k)
        whole[k] = std::max(whole[k], times[k]);
    auto count = [&](const std::vector<double> &starts) {
      std::vector<int32_t> counts;
      for (double start : starts)
        counts.push_back(int32_t(
            std::upper_bound(whole.begin(), whole.end(), start + kTimeSlack) -
            whole.begin()));
      return counts;
    };
    replay.wholeAtForward = count(forwardStart);
    replay.wholeAtBackward = count(backwardStart);
  }

  /// A read of a version, or the update that makes it.
  struct Event {
    int32_t place, version;
    bool made;
  };

  const StreamProblem &problem;
  const UpdateStream &stream;
  WeightPolicy policy;
  std::vector<int32_t> rankOfStage, versions;
  std::vector<std::vector<int32_t>> gradientsLeft; ///< by stage, step
  std::vector<int32_t> waiting;                    ///< gradients, by stage
  std::vector<std::vector<Event>> events;          ///< by stage
  std::vector<std::vector<double>> updateAt;       ///< by stage, step
  std::vector<std::vector<double>> forwardEnd, inputGradEnd, weightGradEnd;
  std::vector<double> forwardStart, backwardStart; ///< of first, last stage
  VersionReplay replay;
};

} // namespace

std::optional<VersionReplay> replayVersions(const StreamProblem &problem,
                                            const UpdateStream &stream,
                                            WeightPolicy policy,
                                            std::string &why) {
  if (auto fault = problem.check()) {
    why = *fault;
    return std::nullopt;
  }
  return Replayer(problem, stream, policy).run(why);
}

} // namespace takt
