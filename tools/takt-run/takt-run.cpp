//===- takt-run.cpp - the command line of the runtime ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// takt-run PLAN [--data FILE] [--steps N] ...    train from a plan
//
//===----------------------------------------------------------------------===//

#include "run.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/plan.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <new>

using namespace takt;
using rt::ExitCode;

namespace {

std::string versionText() {
  return fmt::format("takt-run {} (plan format {}.{})\n"
                     "features: host yes, cuda no, mpi no",
                     TAKT_VERSION, rt::Plan::kFormatMajor,
                     rt::Plan::kFormatMinor);
}

/// Ranges let a NaN pass: every comparison with it is false.
std::string finite(const std::string &text) {
  double value = std::strtod(text.c_str(), nullptr);
  return std::isfinite(value) ? "" : "'" + text + "' is not a number";
}

/// A seed as the YAML file takes it: 0 to 2^63 - 1.
std::string wholeNumber(const std::string &text) {
  int64_t value = 0;
  const char *last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || value < 0)
    return "'" + text + "' is not a whole number from 0 to 2^63 - 1";
  return "";
}

void addOptions(CLI::App &app, run::RunOptions &options, bool &threads,
                std::string &format) {
  app.add_option("plan", options.plan,
                 "plan written by taktc, - for standard input")
      ->required();
  app.add_flag("--threads", threads,
               "run the ranks as threads of this process (the default)");
  CLI::Option *data =
      app.add_option("--data", options.data, "text to learn from");
  app.add_flag("--synthetic", options.synthetic,
               "random samples also for a model that learns from a text")
      ->excludes(data);
  app.add_option("--steps", options.steps,
                 "steps to run, those before --resume counted; default: "
                 "100, with --profile 20")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 50));
  app.add_option("--seed", options.seed, "seed instead of the plan's")
      ->check(wholeNumber);
  CLI::Option *checkpoint =
      app.add_option("--checkpoint", options.checkpoint,
                     "folder for the state of training, while it goes on and "
                     "at its end");
  app.add_option("--checkpoint-every", options.checkpointEvery,
                 "steps between checkpoints")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 50))
      ->needs(checkpoint)
      ->default_str("100");
  app.add_option("--keep", options.keep,
                 "checkpoints that stay, the newest ones; default: all")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 50))
      ->needs(checkpoint);
  CLI::Option *resume =
      app.add_option("--resume", options.resume,
                     "go on from a checkpoint, or from the newest of a folder");
  app.add_option("--load-weights", options.loadWeights,
                 "safetensors file with the first weights")
      ->excludes(resume);
  app.add_option("--save-weights", options.saveWeights,
                 "safetensors file for the last weights");
  app.add_option("--dump-gradients", options.dumpGradients,
                 "safetensors file for the gradients of the first step");
  app.add_option("--profile", options.profile,
                 "measure every layer; YAML for taktc --profile");
  app.add_option("--trace", options.trace,
                 "trace of a typical step for chrome://tracing or Perfetto");
  app.add_option("--timeline", options.timeline,
                 "the same as a page to look at, or as a picture if it "
                 "ends in .svg");
  app.add_option("--log-losses", options.logLosses,
                 "file for one loss a line, decimal and exact");
  app.add_option("--timeout", options.timeoutSeconds,
                 "seconds without any progress that end the run")
      ->check(CLI::Range(1e-3, 1e9))
      ->check(finite)
      ->default_str("600");
  app.add_flag(
      "--unproven", options.unproven,
      "run a plan even if its proof fails; it may hang or train wrong");
  app.add_option("--dry-run", options.dryRun, "only simulate, for host or cuda")
      ->check(CLI::IsMember({"host", "cuda"}));
  app.add_option("--format", format, "report as text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
  app.add_flag("-q,--quiet", options.quiet, "no report");
}

int fail(const std::string &message, ExitCode code) {
  std::cerr << "takt-run: error: " << message << '\n';
  return int(code);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Takt: trains from an execution plan on this machine",
               "takt-run");
  app.set_version_flag("--version", versionText());
  app.footer("Exit codes: 0 done, 1 bad input, 2 wrong usage, 10 the plan does "
             "not fit\nthis machine, 11 communication failed, 12 timeout, 70 "
             "internal error.");
  run::RunOptions options;
  bool threads = false;
  std::string format = "text";
  addOptions(app, options, threads, format);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    app.exit(error);
    return int(ExitCode::Usage);
  }
  options.json = format == "json";
  try {
    run::run(options);
    return int(ExitCode::Done);
  } catch (const rt::Error &error) {
    return fail(error.what(), error.code());
  } catch (const std::bad_alloc &) {
    return fail("out of memory", ExitCode::DoesNotFit);
  } catch (const std::exception &error) {
    return fail(error.what(), ExitCode::Internal);
  }
}
