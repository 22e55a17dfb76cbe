//===- explain.cpp - takt-plan explain ... --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// `takt-plan explain checkpoint DIR [PLAN]`.
//
//===----------------------------------------------------------------------===//

#include "explain.h"

#include "../arguments.h"

#include "takt-rt/checkpoint/explain.h"
#include "takt-rt/core/file.h"

#include <memory>
#include <string>

using namespace takt::rt;
using takt::arguments::oneOf;

namespace {

struct Options {
  std::string folder, plan;
  std::string format = "text";
};

void explainCheckpointFolder(const Options &options) {
  FoundCheckpoint found = findCheckpoint(options.folder);
  Plan plan;
  if (!options.plan.empty())
    plan = readPlan(options.plan);
  CheckpointReport report = explainCheckpoint(
      std::move(found), options.plan.empty() ? nullptr : &plan);
  writeFile("-", options.format == "json" ? toJson(report) : printText(report));
  if (report.fit)
    requireFit(*report.fit, report.found.checkpoint, plan);
}

} // namespace

void addExplain(CLI::App &app, std::function<void()> &chosen) {
  CLI::App *explain =
      app.add_subcommand("explain", "say what is in a checkpoint");
  explain->require_subcommand(1);
  auto options = std::make_shared<Options>();
  CLI::App *checkpoint = explain->add_subcommand(
      "checkpoint", "tensors, step and sizes, and what ranks would load");
  checkpoint
      ->add_option("DIR", options->folder,
                   "a checkpoint, or a folder of which the newest is taken")
      ->required();
  checkpoint->add_option("PLAN", options->plan, "the plan to load it with");
  checkpoint->add_option("--format", options->format, "form of the report")
      ->check(oneOf({"text", "json"}))
      ->capture_default_str();
  checkpoint->callback([&chosen, options] {
    chosen = [options] { explainCheckpointFolder(*options); };
  });
}
