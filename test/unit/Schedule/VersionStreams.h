//===- VersionStreams.h - streams that tests of versions read ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Versions.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace takt {

/// 1F1B that is not emptied between steps.
inline UpdateStream continuousOneFOneB(const StreamProblem &problem) {
  return withUpdates(
      problem, generateOneFOneB({problem.stages, problem.microBatches()}));
}

inline VersionReplay replayed(const StreamProblem &problem,
                              const UpdateStream &stream, WeightPolicy policy) {
  std::string why;
  auto replay = replayVersions(problem, stream, policy, why);
  EXPECT_TRUE(replay) << why;
  return replay ? std::move(*replay) : VersionReplay{};
}

inline std::string refusal(const StreamProblem &problem,
                           const UpdateStream &stream, WeightPolicy policy) {
  std::string why;
  return replayVersions(problem, stream, policy, why) ? "" : why;
}

/// nF1B of arXiv 2410.14312, slot by slot: a backward of a whole mini-batch
/// that is ready goes first, else the next forward of one of its n parts.
/// Everything takes one slot.
inline UpdateStream slotNF1B(int32_t stages, int32_t n, int32_t steps) {
  UpdateStream stream;
  stream.ranks.resize(stages);
  using Kind = StreamAction::Kind;
  std::vector<int32_t> forwards(stages, 0), backwards(stages, 0);
  while (backwards[0] < steps) {
    // What stood at the beginning of the slot decides.
    const auto f = forwards, b = backwards;
    for (int32_t s = 0; s < stages; ++s) {
      const int32_t ready =
          s + 1 == stages ? f[s] / n : std::min(b[s + 1], f[s] / n);
      if (b[s] < ready) {
        stream.ranks[s].push_back({s, Kind::B, b[s] * n, n});
        stream.ranks[s].push_back({s, Kind::Update, b[s], 1});
        ++backwards[s];
      } else if (f[s] < steps * n && (s == 0 || f[s] < f[s - 1])) {
        stream.ranks[s].push_back({s, Kind::F, f[s], 1});
        ++forwards[s];
      }
    }
  }
  return stream;
}

inline StreamProblem nF1BProblem(int32_t stages, int32_t n, int32_t steps) {
  StreamProblem problem{stages, steps, n};
  problem.times.assign(stages, {1, 0.5 / n, 0.5 / n});
  return problem;
}

} // namespace takt
