//===- takt-run.cpp - the command line of the runtime ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// takt-run PLAN [--data FILE] [--steps N] ...    train from a plan
// takt-run PLAN -n N ...                         the same, a process a rank
// takt-run calibrate [-n N] -o cluster.yaml      measure this machine
//
//===----------------------------------------------------------------------===//

#include "../arguments.h"
#include "calibrate.h"
#include "launch.h"
#include "run.h"

#include "takt-rt/bootstrap/environment.h"
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

#ifdef TAKT_WITH_MPI
constexpr bool kHasMpi = true;
#else
constexpr bool kHasMpi = false;
#endif

std::string versionText() {
  return fmt::format("takt-run {} (plan format {}.{})\n"
                     "features: host yes, cuda no, mpi {}",
                     TAKT_VERSION, rt::Plan::kFormatMajor,
                     rt::Plan::kFormatMinor, kHasMpi ? "yes" : "no");
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

void printEnvironment() {
  for (const rt::VariableInfo &variable : rt::environmentTable())
    std::cout << fmt::format("{:<30} {}\n", variable.name, variable.meaning);
  throw CLI::Success();
}

/// Everything about ranks that are processes.
void addProcessOptions(CLI::App &app, run::RunOptions &options) {
  CLI::Option *threads =
      app.add_flag("--threads", options.threads,
                   "run the ranks as threads of this process (the default "
                   "when nothing else started it as a rank)");
  app.add_option("-n,--processes", options.processes,
                 "start this many processes, one a rank")
      ->check(CLI::Range(1, 1 << 20))
      ->excludes(threads);
  app.add_flag_callback("--env", printEnvironment,
                        "print the environment variables that are read")
      ->trigger_on_parse();
  app.add_option("--rank", options.identity.rank,
                 "rank of this process, before what the environment says")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--world-size", options.identity.world, "number of processes")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--node", options.identity.node,
                 "number of this node; ranks of one node share memory")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--launcher", options.identity.launcher,
                 "whose variables say the rank")
      ->check(CLI::IsMember({"auto", "takt", "torchrun", "openmpi", "mpich",
                             "slurm", "kubernetes", "none"}))
      ->default_str("auto");
  app.add_option("--rendezvous", options.identity.rendezvous,
                 "where processes meet: HOST:PORT at rank 0, or file:/FOLDER");
  app.add_option("--transport", options.transport,
                 "messages by shared memory, TCP, MPI, or as it fits")
      ->check(CLI::IsMember({"auto", "shm", "tcp", "mpi"}))
      ->default_str("auto");
  app.add_option("--start-timeout", options.startTimeout,
                 "seconds until all processes must have come")
      ->check(CLI::Range(1e-3, 1e9))
      ->check(finite)
      ->default_str("300");
}

void addOptions(CLI::App &app, run::RunOptions &options, std::string &format) {
  app.add_option("plan", options.plan,
                 "plan written by taktc, - for standard input");
  addProcessOptions(app, options);
  app.add_option("--timeout-factor", options.timeoutFactor,
                 "processes without --timeout: steps without progress that end "
                 "the run ...")
      ->check(CLI::Range(1.0, 1e9))
      ->check(finite)
      ->default_str("20");
  app.add_option("--timeout-floor", options.timeoutFloor,
                 "... but not before so many seconds")
      ->check(CLI::Range(1e-3, 1e9))
      ->check(finite)
      ->default_str("30");
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
  app.add_option("--record", options.record,
                 "folder for what each rank is doing, for takt-plan why-hang");
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
      ->default_str("600 with threads");
  app.add_flag("--emulate-links", options.emulateLinks,
               "no message arrives before its link of the plan could bring it");
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

CLI::App *addCalibrate(CLI::App &app, run::RunOptions &options,
                       run::CalibrateOptions &what) {
  CLI::App *command = app.add_subcommand(
      "calibrate", "measure links and rates into a cluster file for taktc");
  command->add_option("-o,--output", what.output, "where to write")
      ->default_str("-");
  addProcessOptions(*command, options);
  CLI::Option *tests =
      command->add_option("--nccl-tests", what.ncclTests,
                          "output of all_reduce_perf or sendrecv_perf instead "
                          "of own messages; one of one node, one of several");
  command->add_option("--nodes", what.nodes, "nodes of a FILE that names none")
      ->check(CLI::Range(1, 1 << 20))
      ->needs(tests);
  auto quantity = [&](const char *name, std::string &value, const char *units,
                      const char *meaning) {
    command->add_option(name, value, meaning)
        ->check([units](const std::string &text) {
          return run::quantityFault(text, units);
        });
  };
  quantity("--flops", what.flops, "[MGTP]?FLOP/s",
           "rate of a device, instead of measuring it here");
  quantity("--memory-bandwidth", what.memoryBandwidth,
           "B/s|[KMGT]i?B/s|[MGT]bit/s", "likewise");
  quantity("--memory", what.memory, "B|[KMGT]i?B", "likewise");
  command->add_flag("-q,--quiet", what.quiet, "no report");
  return command;
}

int fail(const std::string &message, ExitCode code) {
  std::cerr << "takt-run: error: " << message << '\n';
  return int(code);
}

} // namespace

int main(int argc, char **argv) {
  claimStandardStreams();
  CLI::App app("Takt: trains from an execution plan on this machine",
               "takt-run");
  app.set_version_flag("--version", versionText());
  app.footer("Environment variables: takt-run --env\n"
             "Exit codes: 0 done, 1 bad input, 2 wrong usage, 10 the plan does "
             "not fit\nthis machine, 11 communication failed, 12 timeout, 13 a "
             "peer failed,\n70 internal error.");
  run::RunOptions options;
  std::string format = "text";
  addOptions(app, options, format);
  run::CalibrateOptions what;
  CLI::App *calibrate = addCalibrate(app, options, what);
  if (std::string fault = emptyValueFault(argc, argv); !fault.empty())
    return fail(fault, ExitCode::Usage);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    app.exit(error);
    return int(ExitCode::Usage);
  }
  if (!calibrate->parsed() && options.plan.empty())
    return fail("plan is required", ExitCode::Usage);
  options.json = format == "json";
  try {
    rt::Environment environment = rt::Environment::ofThisProcess();
    // A child that '-n' started has its parent's arguments.
    bool starts =
        options.processes && environment.text("TAKT_STORE") != "launcher";
    if (calibrate->parsed()) {
      if (starts && what.ncclTests.empty())
        return run::startProcesses(*options.processes, argv);
      run::calibrate(options, what);
      return int(ExitCode::Done);
    }
    if (starts && options.dryRun.empty())
      return run::launch(options, argv);
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
