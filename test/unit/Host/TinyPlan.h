//===- TinyPlan.h - a small plan made by hand -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A model of two linear layers with GELU between them and a mean squared error,
// as a plan on one stage or on two, with replicas:
//     loss = sum (gelu(x W0^T + b0) W1^T - target)^2 / (samples * out)
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

namespace takt::rt::test {

struct TinyOptions {
  int32_t stages = 2;
  int32_t replicas = 1;
  int32_t microBatches = 4;
  int64_t microBatchSize = 4;
  bool oneF1B = true; ///< otherwise all forwards before all backwards
  OptimizerKind optimizer = OptimizerKind::Momentum;
};

constexpr int64_t kTinyIn = 6, kTinyHidden = 20, kTinyOut = 3;

/// Layers "fc0", "act", "fc1", "loss"; parameters "fc0.weight", "fc0.bias",
/// "fc1.weight"; inputs "x", "target".
Plan tinyPlan(const TinyOptions &options);

} // namespace takt::rt::test
