//===- report.cpp - what a run prints -------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Formats steps. Everything a person reads in the text is in the JSON as well.
//
//===----------------------------------------------------------------------===//

#include "report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace takt::run {

static double milliseconds(rt::Nanos time) { return double(time) * 1e-6; }

void Report::add(const rt::StepResult &result) {
  losses.push_back(result.loss);
  times.push_back(result.time);
}

rt::Nanos Report::median() const {
  if (times.empty())
    return 0;
  size_t skip = int64_t(times.size()) > kWarmUpSteps ? kWarmUpSteps : 0;
  std::vector<rt::Nanos> sorted(times.begin() + skip, times.end());
  auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

bool Report::hasLoss() const {
  return std::any_of(plan.roles.begin(), plan.roles.end(),
                     [](const rt::Role &role) { return role.hasLoss; });
}

double Report::samplesPerSecond() const {
  return median() > 0
             ? double(plan.training.globalBatch) * 1e9 / double(median())
             : 0;
}

std::optional<double> Report::meanLoss() const {
  if (losses.empty() || !hasLoss())
    return std::nullopt;
  double sum = 0;
  for (double loss : losses)
    sum += loss;
  return sum / double(losses.size());
}

std::string Report::header() const {
  if (infers() && !hasLoss())
    return fmt::format("{:>6} {:>14} {:>14}\n", "step", "measured ms",
                       "predicted ms");
  return fmt::format("{:>6} {:>12} {:>14} {:>14}\n", "step", "loss",
                     "measured ms", "predicted ms");
}

std::string Report::lastLine() const {
  if (infers() && !hasLoss())
    return fmt::format("{:>6} {:>14.3f} {:>14.3f}\n",
                       firstStep + int64_t(times.size()),
                       milliseconds(times.back()), milliseconds(predicted));
  return fmt::format("{:>6} {:>12.6f} {:>14.3f} {:>14.3f}\n",
                     firstStep + int64_t(times.size()), losses.back(),
                     milliseconds(times.back()), milliseconds(predicted));
}

std::string Report::closing() const {
  if (times.empty())
    return "no steps were run\n";
  std::string text =
      fmt::format("median step: measured {:.3f} ms, predicted {:.3f} ms",
                  milliseconds(median()), milliseconds(predicted));
  if (predicted > 0)
    text += fmt::format(", ratio {:.3f}", double(median()) / predicted);
  text += '\n';
  if (infers())
    text += fmt::format(
        "{} samples, {:.4g} samples/s{}\n",
        int64_t(times.size()) * plan.training.globalBatch, samplesPerSecond(),
        meanLoss() ? fmt::format(", loss {:.6f}", *meanLoss()) : std::string());
  auto wild = std::find_if(losses.begin(), losses.end(),
                           [](double loss) { return !std::isfinite(loss); });
  if (wild != losses.end())
    text += fmt::format("the loss is not finite from step {} on\n",
                        firstStep + (wild - losses.begin()) + 1);
  return text;
}

std::string Report::json() const {
  nlohmann::ordered_json object;
  object["model"] = plan.model;
  object["cluster"] = plan.cluster;
  object["schedule"] = plan.schedule;
  object["ranks"] = plan.numRanks();
  object["seed"] = plan.training.seed;
  object["steps"] = times.size();
  object["losses"] = losses;
  object["measured_step_ns"] = times;
  object["median_step_ns"] = nullptr;
  object["predicted_step_ns"] = predicted;
  object["ratio"] = nullptr;
  if (!times.empty())
    object["median_step_ns"] = median();
  if (!times.empty() && predicted > 0)
    object["ratio"] = double(median()) / predicted;
  object["first_step"] = firstStep;
  object["mode"] = infers() ? "inference" : "training";
  object["samples"] = int64_t(times.size()) * plan.training.globalBatch;
  object["samples_per_s"] = nullptr;
  object["mean_loss"] = nullptr;
  if (!times.empty())
    object["samples_per_s"] = samplesPerSecond();
  if (std::optional<double> mean = meanLoss())
    object["mean_loss"] = *mean;
  return object.dump(2, ' ', false,
                     nlohmann::ordered_json::error_handler_t::replace) +
         '\n';
}

} // namespace takt::run
