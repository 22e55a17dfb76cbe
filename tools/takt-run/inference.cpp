//===- inference.cpp - what inference asks of a run -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// An option that would do nothing is an error, and what is left out is said.
//
//===----------------------------------------------------------------------===//

#include "inference.h"

#include "report.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <utility>

namespace takt::run {

using rt::Error;
using rt::ExitCode;

void checkMode(const RunOptions &options, const rt::Plan &plan) {
  if (plan.training.mode == rt::Mode::Training) {
    if (!options.outputs.empty())
      throw Error("'--outputs' is of inference, and the plan trains: compile "
                  "the model with 'mode: inference'",
                  ExitCode::Usage);
    return;
  }
  const std::pair<const char *, const std::string *> trains[] = {
      {"--checkpoint", &options.checkpoint},
      {"--resume", &options.resume},
      {"--save-weights", &options.saveWeights},
      {"--dump-gradients", &options.dumpGradients}};
  for (const auto &[option, value] : trains)
    if (!value->empty())
      throw Error(
          fmt::format("'{}' is of training, and the plan is one of inference{}",
                      option,
                      value == &options.resume
                          ? ": '--load-weights' takes a checkpoint's weights"
                          : ""),
          ExitCode::Usage);
  if (!options.outputs.empty() && plan.output.name.empty())
    throw Error(fmt::format("model '{}' has no output: its loss reads an input "
                            "of the model",
                            plan.model),
                ExitCode::Usage);
}

int64_t stepsOf(const RunOptions &options, const rt::Plan &plan,
                const rt::Source &source, int64_t steps,
                const std::function<void(const std::string &)> &warn) {
  const std::optional<int64_t> samples = source.size();
  if (!samples)
    return steps;
  const int64_t batch = plan.training.globalBatch, whole = *samples / batch;
  if (whole == 0)
    throw Error(fmt::format("'{}' has {} samples, a step takes {}",
                            options.data, *samples, batch));
  const bool profiles = !options.profile.empty();
  if (profiles && whole <= kWarmUpSteps)
    throw Error(fmt::format("'{}' has samples for {} steps, and '--profile' "
                            "leaves out {}",
                            options.data, whole, kWarmUpSteps));
  if ((options.steps || profiles) && steps <= whole)
    return steps;
  if (options.steps)
    warn(fmt::format("'{}' ends after {} of {} steps", options.data, whole,
                     *options.steps));
  if (const int64_t rest = *samples % batch; rest != 0)
    warn(fmt::format("the last {} of {} samples in '{}' fill no step of {} and "
                     "are left out",
                     rest, *samples, options.data, batch));
  return whole;
}

} // namespace takt::run
