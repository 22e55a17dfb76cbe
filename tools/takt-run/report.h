//===- report.h - what a run prints -----------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A line a step and a last line in text, or one JSON object at the end. Keys of
// the object; they stay as they are, and new ones are appended:
//
//   model, cluster, schedule   strings
//   ranks, seed, steps         steps that were run
//   losses[]                   of each step; null when not finite
//   measured_step_ns[]         of each step
//   median_step_ns             without the first steps; null without steps
//   predicted_step_ns          by the virtual clock
//   ratio                      median_step_ns / predicted_step_ns, or null
//   first_step                 steps that were done before this run
//   mode                       "training" or "inference"
//   samples                    that passed in this run
//   samples_per_s              by the median step; null without steps
//   mean_loss                  of all steps; null without steps or a loss
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"
#include "takt-rt/host/trainer.h"

#include <optional>
#include <string>
#include <vector>

namespace takt::run {

/// Steps that only warm up caches and memory: left out of medians and profiles.
constexpr int64_t kWarmUpSteps = 2;

class Report {
public:
  /// `firstStep` steps were done before this run.
  Report(const rt::Plan &plan, rt::Nanos predicted, int64_t firstStep = 0)
      : plan(plan), predicted(predicted), firstStep(firstStep) {}

  void add(const rt::StepResult &result);
  std::string header() const;
  std::string lastLine() const; ///< of the step added last
  std::string closing() const;
  std::string json() const;

  /// Median of the steps after the warm-up, or of all when there are no others;
  /// 0 without steps.
  rt::Nanos median() const;
  /// Over the steps; nothing without a loss.
  std::optional<double> meanLoss() const;

private:
  bool hasLoss() const;
  bool infers() const { return plan.training.mode == rt::Mode::Inference; }
  double samplesPerSecond() const;

  const rt::Plan &plan;
  rt::Nanos predicted;
  int64_t firstStep;
  std::vector<double> losses;
  std::vector<rt::Nanos> times;
};

} // namespace takt::run
