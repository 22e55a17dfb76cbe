//===- Repeats.h - repeats replicated or pipelined ------------ -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A block that runs `repeats` times on every sample, with the same weights (a
// sampler of a flow or diffusion model, Wang et al. 2025, arXiv 2501.11361):
// the samples can be divided over devices, the repeats cut into stages, or
// both. Each of `replicas` pipelines of k stages takes an equal share of the
// samples, one more for some, and a step takes
//
//     sum_s t_s + (k - 1) h + (n - 1) max(t_s, h)
//
// with t_s the repeats of stage s, h the hand-off, n the larger share. Since
// ceil(n / k) <= (n + k - 1) / k, replicas are never slower than as many
// stages: stages only pay where the samples of one stream may not be divided
// further.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

struct RepeatProblem {
  rt::Nanos block = 0; ///< one repeat of one sample
  int64_t repeats = 1, samples = 1, devices = 1;
  rt::Nanos handOff = 0;   ///< the carried tensor to the next stage
  int64_t maxReplicas = 0; ///< 0: no limit

  std::optional<std::string> check() const;
};

struct RepeatPlan {
  int64_t replicas = 1, stages = 1; ///< stages of floor or ceil(repeats / k)
  rt::Nanos time = 0;

  int64_t devices() const { return replicas * stages; }
};

/// The shortest plan, of equal ones that with fewest devices, then with fewest
/// stages. Even stages are never worse than others.
RepeatPlan planRepeats(const RepeatProblem &problem);

/// The time of one way; `replicas` * `stages` devices.
rt::Nanos repeatTime(const RepeatProblem &problem, int64_t replicas,
                     int64_t stages);

/// All cuts of the repeats and all shares of samples, run one by one; for
/// tests.
rt::Nanos bruteForceRepeats(const RepeatProblem &problem);

std::optional<std::string> verify(const RepeatProblem &problem,
                                  const RepeatPlan &plan);

} // namespace takt
