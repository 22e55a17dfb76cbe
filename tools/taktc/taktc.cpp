//===- taktc.cpp - the compiler's command line ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// taktc MODEL CLUSTER [-o PLAN] ...     compile
// taktc import [FORMAT] FILE [-o YAML]  bring in what others wrote
// taktc compare FILE... [--with ...]    plans side by side
// taktc schedules                       what '--schedule' knows
//
//===----------------------------------------------------------------------===//
#include "compare.h"
#include "import.h"
#include "options.h"
#include "schedules.h"

#include "../arguments.h"

#include "takt/Frontend/Read.h"
#include "takt/Solver/Solver.h"

#include "takt-rt/core/error.h"

#include "llvm/Config/llvm-config.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <iostream>

using namespace takt;
using arguments::oneOf;
using rt::ExitCode;

namespace {

std::string versionText() {
  return fmt::format("taktc {} (LLVM {}, plan format {}.{})\n{}",
                     versionString(), LLVM_VERSION_STRING,
                     rt::Plan::kFormatMajor, rt::Plan::kFormatMinor,
                     solver::description());
}

} // namespace

int main(int argc, char **argv) {
  arguments::claimStandardStreams();
  CLI::App app("Takt: compiles a model and a cluster into a timed execution "
               "plan",
               "taktc");
  app.set_version_flag("--version", versionText());
  app.footer("Exit codes: 0 done, 1 bad input, 2 wrong usage, 3 proven "
             "infeasible,\n4 limit reached, 70 internal error, 130 interrupted "
             "twice.");
  CompileOptions options;
  OptionTexts text;
  addCompileOptions(app, options, text);
  CLI::Option *output = app.get_option("--output");

  ImportWords importWords;
  CLI::App *import = app.add_subcommand(
      "import", "write YAML from what others published: profiles, inputs and "
                "plans of planners, configurations of models");
  addImport(*import, importWords);

  CompareOptions compareOptions;
  std::string compareFormat = "text";
  CLI::App *comparison =
      app.add_subcommand("compare", "models, clusters or options side by side");
  comparison->add_option("files", compareOptions.files,
                         "model YAMLs, and cluster YAMLs or presets");
  comparison
      ->add_option("--with", compareOptions.sets,
                   "options of a plan, e.g. \"--stages=4 --schedule=gpipe\"; "
                   "again for the next")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  comparison->add_option("--format", compareFormat, "text or json")
      ->check(oneOf({"text", "json"}))
      ->default_str("text");

  std::string listFormat = "text";
  CLI::App *list = app.add_subcommand(
      "schedules", "the families of pipeline schedules that '--schedule' knows");
  list->add_option("--format", listFormat, "text or json")
      ->check(oneOf({"text", "json"}))
      ->default_str("text");

  if (std::optional<int> code = arguments::parse(app, argc, argv))
    return *code;
  if (comparison->parsed()) {
    compareOptions.json = compareFormat == "json";
    return compare(compareOptions);
  }
  if (list->parsed())
    return listSchedules(listFormat == "json");
  if (import->parsed())
    return runImport(importWords);
  if (options.model.empty() || options.cluster.empty()) {
    std::cerr << "taktc: error: a model and a cluster are needed: taktc "
                 "model.yaml cluster.yaml -o job.plan\n";
    return int(ExitCode::Usage);
  }
  if (std::string fault = settle(text, output, options); !fault.empty()) {
    std::cerr << "taktc: error: " << fault << '\n';
    return int(ExitCode::Usage);
  }
  return compile(options);
}
