//===- DelayedTraining.h - what old weights do to training ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A sequential reference of training with old weights, on a chain of linear
// maps in doubles: one micro-batch after the other, each pass with the weights
// of the version that it is said to read. What runs a stream in parallel has to
// end with the same bits.
//
//   forward    x_0 the input, x_{s+1} = F_s x_s; loss |x_p - target|^2 / 2
//   backward   g_p = x_p - target, g_s = B_s^T g_{s+1}; gradient g_{s+1} x_s^T
//   update     V = momentum V + sum of gradients, W = W - rate V
//
// F_s and B_s are the versions of stage s that the two passes read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Schedule/Versions.h"

namespace takt {

struct LinearTraining {
  using Vector = std::vector<double>;
  int32_t width = 1;           ///< of every x_s
  std::vector<Vector> weights; ///< version 0 by stage: width x width, by rows
  std::vector<Vector> inputs, targets; ///< by micro-batch of all steps: width
  double rate = 0.1;
  double momentum = 0;
  /// Of a blend: what F read counts share^d, d versions later, the newest the
  /// rest. 0 is the newest alone, 1 what F read.
  double share = 0.5;
  /// Of look-ahead: times the last change, added to the newest.
  double reach = 0.5;

  std::optional<std::string> check(const StreamProblem &problem) const;
};

/// Weights by version (steps + 1 of them) and stage.
using WeightHistory = std::vector<std::vector<LinearTraining::Vector>>;

/// Every stage reads weights `delays[stage]` updates old, forward and backward:
/// W(k + 1) = W(k) - rate g(W(max(k - delay, 0))). The training passed its
/// check, delays are not negative.
WeightHistory trainDelayed(const LinearTraining &training,
                           const StreamProblem &problem,
                           const std::vector<int32_t> &delays);

/// Reads the versions of a replay of this problem under the policy.
WeightHistory trainReplayed(const LinearTraining &training,
                            const StreamProblem &problem,
                            const VersionReplay &replay, WeightPolicy policy);

/// Largest rate with which f(x) = x^2 / 2 converges under a delay of so many
/// updates: 2 sin(pi / (4 delay + 2)).
double largestStableRate(int32_t delay);

/// Time of `steps` steps whose gradients are reduced beside the compute of the
/// next one and applied one step late (Pipe-SGD with two iterations in flight):
/// step t needs the reduced gradients of step t - 2.
double timeOneStepDelayed(int32_t steps, double update, double compute,
                          double reduce);

} // namespace takt
