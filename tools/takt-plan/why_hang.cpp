//===- why_hang.cpp - takt-plan why-hang ----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The plan is the one that the recordings name, unless another is given.
//
//===----------------------------------------------------------------------===//

#include "why_hang.h"

#include "../arguments.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/trace/why_hang.h"

#include <fmt/format.h>

#include <memory>
#include <string>

using namespace takt::rt;
using takt::arguments::oneOf;

namespace {

struct Options {
  std::string folder, plan;
  std::string format = "text";
};

/// The path that the newest recording names.
std::string planOf(const FlightFolder &folder) {
  const Flight *newest = nullptr;
  for (const Flight &flight : folder.flights)
    if (!newest || flight.info.started > newest->info.started)
      newest = &flight;
  if (!newest)
    throw Error(folder.faults.empty()
                    ? "there are no recordings ('flight.rankN.bin')"
                    : "no recording can be used: " + folder.faults.front());
  if (newest->info.plan.empty())
    throw Error("the recordings name no plan: give it with '--plan FILE'",
                ExitCode::Usage);
  return newest->info.plan;
}

void whyHang(const Options &options) {
  FlightFolder folder = readFlights(options.folder);
  // A plan that was run unproven may be the reason.
  Plan plan = readPlan(options.plan.empty() ? planOf(folder) : options.plan,
                       Reading::Structure);
  WhyHang report = explainFlights(plan, folder);
  writeFile("-", options.format == "json" ? toJson(plan, report)
                                          : printText(plan, report));
}

} // namespace

void addWhyHang(CLI::App &app, std::function<void()> &chosen) {
  auto options = std::make_shared<Options>();
  CLI::App *command = app.add_subcommand(
      "why-hang", "say which rank held a run up, and who waited for it");
  command
      ->add_option("DIR", options->folder,
                   "folder of recordings, by takt-run --record")
      ->required();
  command->add_option("--plan", options->plan,
                      "the plan; default: where the recordings say it is");
  command->add_option("--format", options->format, "form of the report")
      ->check(oneOf({"text", "json"}))
      ->capture_default_str();
  command->callback(
      [&chosen, options] { chosen = [options] { whyHang(*options); }; });
}
