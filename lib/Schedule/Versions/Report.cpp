//===- Report.cpp - what version tags mean for training -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace takt {

namespace {

constexpr int32_t kMostUpdates = 1000;

/// Updates that a read of this micro-batch misses.
int32_t lagOf(const StreamProblem &problem, int32_t m, int32_t version) {
  return problem.stepOf(m) - version;
}

std::string describeRead(const StreamProblem &problem, int32_t stage, int32_t m,
                         int32_t version) {
  return fmt::format("'{}F{}' of step {} reads version {} of the weights",
                     stage, m, problem.stepOf(m), version);
}

} // namespace

std::string_view toText(Consistency consistency) {
  switch (consistency) {
  case Consistency::Exact:
    return "exact";
  case Consistency::UniformDelay:
    return "delayed";
  case Consistency::StageDelay:
    return "delayed by stage";
  case Consistency::VaryingDelay:
    return "delay varies";
  case Consistency::Inconsistent:
    break;
  }
  return "inconsistent";
}

VersionReport reportVersions(const StreamProblem &problem,
                             const VersionReplay &replay, int32_t first,
                             int32_t end) {
  if (end < 0)
    end = problem.steps;
  VersionReport report;
  bool uniform = true, steady = true, matched = true;
  for (int32_t stage = 0; stage < problem.stages; ++stage) {
    StageVersions &versions = report.stages.emplace_back();
    versions.alive = replay.alive[stage];
    versions.gradients = replay.gradients[stage];
    const int32_t from = first * problem.perStep, to = end * problem.perStep;
    for (int32_t m = from; m < to; ++m) {
      const int32_t f = replay.forward[stage][m];
      const int32_t b = replay.backward[stage][m];
      versions.forwardLag = std::max(versions.forwardLag, lagOf(problem, m, f));
      versions.backwardLag =
          std::max(versions.backwardLag, lagOf(problem, m, b));
      versions.mismatches += f != b;
      versions.widest = std::max(versions.widest, std::abs(b - f));
    }
    for (int32_t m = from; m < to; ++m)
      steady &= lagOf(problem, m, replay.forward[stage][m]) ==
                std::min(problem.stepOf(m), versions.forwardLag);
    matched &= versions.mismatches == 0;
    uniform &= versions.forwardLag == report.stages.front().forwardLag;
    report.delay = std::max(report.delay, versions.forwardLag);
  }
  if (!matched)
    report.consistency = Consistency::Inconsistent;
  else if (!steady)
    report.consistency = Consistency::VaryingDelay;
  else if (!uniform)
    report.consistency = Consistency::StageDelay;
  else if (report.delay > 0)
    report.consistency = Consistency::UniformDelay;
  return report;
}

std::string toText(const Semantics &semantics) {
  switch (semantics.kind) {
  case Semantics::Kind::Exact:
    return "exact";
  case Semantics::Kind::Delayed:
    return fmt::format("delayed={}", semantics.updates);
  case Semantics::Kind::Bounded:
    return fmt::format("bounded={}", semantics.updates);
  case Semantics::Kind::Any:
    break;
  }
  return "any";
}

std::optional<Semantics> parseSemantics(std::string_view text,
                                        std::string &why) {
  if (text == "exact")
    return Semantics{};
  if (text == "any")
    return Semantics{Semantics::Kind::Any, 0};
  for (auto [word, kind] :
       {std::pair(std::string_view("delayed="), Semantics::Kind::Delayed),
        {"bounded=", Semantics::Kind::Bounded}}) {
    if (text.substr(0, word.size()) != word)
      continue;
    const std::string_view number = text.substr(word.size());
    int32_t updates = 0;
    auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), updates);
    if (error == std::errc() && end == number.data() + number.size() &&
        updates >= 1 && updates <= kMostUpdates)
      return Semantics{kind, updates};
    why = fmt::format("'{}' is no number of updates from 1 to {}", number,
                      kMostUpdates);
    return std::nullopt;
  }
  why = fmt::format("'{}' is none of 'exact', 'delayed=K', 'bounded=K', 'any'",
                    text);
  return std::nullopt;
}

std::optional<std::string> refuseStream(const StreamProblem &problem,
                                        const UpdateStream &stream,
                                        WeightPolicy policy,
                                        const Semantics &allowed) {
  std::string why;
  const auto replay = replayVersions(problem, stream, policy, why);
  if (!replay)
    return why;
  if (allowed.kind == Semantics::Kind::Any)
    return std::nullopt;
  if (policy == WeightPolicy::LookAhead)
    return fmt::format("not '{}': policy '{}' reads weights moved on from a "
                       "version, not the version",
                       toText(allowed), toText(policy));
  const VersionReport report = reportVersions(problem, *replay);
  const bool same = allowed.kind == Semantics::Kind::Bounded ||
                    report.consistency <= Consistency::UniformDelay;
  if (report.consistency != Consistency::Inconsistent && same &&
      report.delay <= allowed.updates)
    return std::nullopt;
  // The first read, in the order of the stream, that breaks the rule.
  for (int32_t m = 0; m < problem.microBatches(); ++m)
    for (int32_t stage = 0; stage < problem.stages; ++stage) {
      const int32_t f = replay->forward[stage][m];
      const int32_t b = replay->backward[stage][m];
      const std::string read = describeRead(problem, stage, m, f);
      if (f != b)
        return fmt::format("not '{}': {}, its backward version {}",
                           toText(allowed), read, b);
      const int32_t lag = lagOf(problem, m, f);
      if (lag > allowed.updates)
        return fmt::format("not '{}': {}, {} update{} old", toText(allowed),
                           read, lag, lag == 1 ? "" : "s");
      const int32_t due = std::min(problem.stepOf(m), report.delay);
      if (!same && lag != due)
        return fmt::format("not '{}': {}, {} update{} old, where others are {}",
                           toText(allowed), read, lag, lag == 1 ? "" : "s",
                           due);
    }
  return std::nullopt;
}

} // namespace takt
