//===- PerReplicaCuts.h - a cut of its own for each replica --- -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Split learning on unequal clients (Zhang et al. 2024, EdgeSplit, arXiv
// 2403.15815): client i runs the first c_i layers at its speed, one server the
// rest, and the clients share a link of W bytes/s. A step of client i takes
//
//     (F + B)(c_i) / speed_i + (A + G)(c_i) / w_i + (F + B)(rest) / server
//
// with A the output of its last layer and G its gradient; the slowest client
// counts. For a time T each client needs the least w over its cuts, and T can
// be kept if these add up to W at most: bisection over T is exact, where
// choosing cuts and shares in turn may stop early.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Costs/Antichains.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

struct SplitClient {
  double speed = 1; ///< work of the profile per second
  double memoryBytes =
      0; ///< parameters and outputs of its layers; 0: unlimited
};

struct SplitProblem {
  std::vector<ProfiledNode> layers; ///< in the order of the chain
  std::vector<SplitClient> clients;
  double bandwidth = 0;   ///< bytes/s, of all clients together
  double serverSpeed = 0; ///< 0: its time does not count

  std::optional<std::string> check() const;
};

struct SplitPlan {
  std::vector<int32_t> cuts;  ///< layers that each client runs, at least 1
  std::vector<double> shares; ///< bytes/s of each client
  double seconds = 0;
};

/// The best cuts and shares; nothing if a client fits no layer.
std::optional<SplitPlan> solveSplit(const SplitProblem &problem);

/// The best shares for given cuts.
SplitPlan shareBandwidth(const SplitProblem &problem,
                         const std::vector<int32_t> &cuts);

/// Seconds that a client computes on its side.
double clientSeconds(const SplitProblem &problem, size_t client, int32_t cut);

/// All cuts of all clients; for tests.
std::optional<SplitPlan> bruteForceSplit(const SplitProblem &problem);

std::optional<std::string> verify(const SplitProblem &problem,
                                  const SplitPlan &plan);

} // namespace takt
