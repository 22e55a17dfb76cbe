//===- takt-run.cpp - the command line of the runtime ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// takt-run PLAN [--data FILE] [--steps N] ...    train from a plan, or infer
// takt-run PLAN -n N ...                         the same, a process a rank
// takt-run calibrate [-n N] -o cluster.yaml      measure this machine
//
//===----------------------------------------------------------------------===//

#include "../arguments.h"
#include "calibrate.h"
#include "launch.h"
#include "log.h"
#include "run.h"

#include "takt-rt/bootstrap/environment.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/plan.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <iostream>
#include <limits>
#include <new>

using namespace takt;
using arguments::number, arguments::oneOf, arguments::wholeNumber;
using rt::ExitCode;

namespace {
constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kMostSteps = int64_t(1) << 50;

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
  CLI::Option *processes =
      app.add_option("-n,--processes", options.processes,
                     "start this many processes, one a rank")
          ->check(wholeNumber(1, kMostRanks))
          ->excludes(threads);
  CLI::Option *hosts =
      app.add_option("--hosts", options.hosts,
                     "ranks of several hosts, such as a:8,b:8: prints what to "
                     "start where, or starts the ranks of host --node")
          ->excludes(threads)
          ->excludes(processes);
  app.add_flag_callback("--env", printEnvironment,
                        "print the environment variables that are read")
      ->trigger_on_parse();
  app.add_option("--rank", options.identity.rank,
                 "rank of this process, before what the environment says")
      ->check(wholeNumber(0, kMostRanks))
      ->excludes(threads)
      ->excludes(hosts)
      ->excludes(processes);
  app.add_option("--world-size", options.identity.world, "number of processes")
      ->check(wholeNumber(1, kMostRanks))
      ->excludes(threads)
      ->excludes(hosts)
      ->excludes(processes);
  app.add_option("--node", options.identity.node,
                 "number of this node; ranks of one node share memory")
      ->check(wholeNumber(0, kMostRanks))
      ->excludes(threads)
      ->excludes(processes);
  app.add_option("--launcher", options.identity.launcher,
                 "whose variables say the rank")
      ->check(oneOf(rt::launcherNames()))
      ->default_str("auto")
      ->excludes(hosts)
      ->excludes(processes);
  app.add_option("--rendezvous", options.identity.rendezvous,
                 "where processes meet: HOST:PORT at rank 0, or file:/FOLDER")
      ->excludes(threads);
  app.add_option("--transport", options.transport,
                 "messages by shared memory, TCP, MPI, or as it fits")
      ->check(oneOf({"auto", "shm", "tcp", "mpi"}))
      ->default_str("auto")
      ->excludes(threads);
  app.add_option("--start-timeout", options.startTimeout,
                 "seconds until all processes must have come")
      ->check(number(1e-3, 1e9))
      ->default_str("300");
}

void addOptions(CLI::App &app, run::RunOptions &options, std::string &format) {
  app.add_option("plan", options.plan,
                 "plan written by taktc, - for standard input");
  addProcessOptions(app, options);
  app.add_option("--timeout-factor", options.timeoutFactor,
                 "processes without --timeout: steps without progress that end "
                 "the run ...")
      ->check(number(1.0, 1e9))
      ->default_str("20");
  app.add_option("--timeout-floor", options.timeoutFloor,
                 "... but not before so many seconds")
      ->check(number(1e-3, 1e9))
      ->default_str("30");
  CLI::Option *data =
      app.add_option("--data", options.data,
                     "text to learn from; inference goes through it once");
  app.add_flag("--synthetic", options.synthetic,
               "random samples also for a model that learns from a text")
      ->excludes(data);
  app.add_option("--steps", options.steps,
                 "steps to run, those before --resume counted; default: "
                 "100, with --profile 20, in inference all of the text")
      ->check(wholeNumber(0, kMostSteps));
  app.add_option("--seed", options.seed, "seed instead of the plan's")
      ->check(wholeNumber(0, std::numeric_limits<int64_t>::max()));
  CLI::Option *checkpoint =
      app.add_option("--checkpoint", options.checkpoint,
                     "folder for the state of training, while it goes on and "
                     "at its end");
  app.add_option("--checkpoint-every", options.checkpointEvery,
                 "steps between checkpoints")
      ->check(wholeNumber(1, kMostSteps))
      ->needs(checkpoint)
      ->default_str("100");
  app.add_option("--keep", options.keep,
                 "checkpoints that stay, the newest ones; default: all")
      ->check(wholeNumber(1, kMostSteps))
      ->needs(checkpoint);
  CLI::Option *resume =
      app.add_option("--resume", options.resume,
                     "go on from a checkpoint, or from the newest of a folder");
  app.add_option("--record", options.record,
                 "folder for what each rank is doing, for takt-plan why-hang");
  app.add_option("--load-weights", options.loadWeights,
                 "first weights: a safetensors file, or a checkpoint's folder")
      ->excludes(resume);
  app.add_option("--save-weights", options.saveWeights,
                 "safetensors file for the last weights");
  app.add_option("--dump-gradients", options.dumpGradients,
                 "safetensors file for the gradients of the first step");
  app.add_option("--outputs", options.outputs,
                 "safetensors file for what inference gives of each sample");
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
      ->check(number(1e-3, 1e9))
      ->default_str("600 with threads");
  app.add_flag("--emulate-links", options.emulateLinks,
               "no message arrives before its link of the plan could bring it");
  app.add_flag(
      "--unproven", options.unproven,
      "run a plan even if its proof fails; it may hang or train wrong");
  app.add_option("--dry-run", options.dryRun, "only simulate, for host or cuda")
      ->check(oneOf({"host", "cuda"}));
  app.add_option("--format", format, "report as text or json")
      ->check(oneOf({"text", "json"}))
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
      ->check(wholeNumber(1, kMostRanks))
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
  run::log().error(message);
  return int(code);
}

} // namespace

int main(int argc, char **argv) {
  arguments::claimStandardStreams();
  CLI::App app("Takt: trains or infers by an execution plan on this machine",
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
  if (std::optional<int> code = arguments::parse(app, argc, argv))
    return *code;
  try {
    run::log().setQuiet(calibrate->parsed() ? what.quiet : options.quiet);
  } catch (const rt::Error &error) { // of TAKT_LOG: there is no log to say it
    std::cerr << "takt-run: error: " << error.what() << '\n';
    return int(error.code());
  }
  if (!calibrate->parsed() && options.plan.empty())
    return fail("a plan is needed: takt-run job.plan", ExitCode::Usage);
  options.json = format == "json";
  try {
    rt::Environment environment = rt::Environment::ofThisProcess();
    // A child has its parent's arguments.
    bool starts = (options.processes || !options.hosts.empty()) &&
                  !environment.has("TAKT_STORE");
    if (calibrate->parsed()) {
      if (starts && what.ncclTests.empty())
        return run::launch(options, /*plan=*/false, argv);
      run::calibrate(options, what);
      return int(ExitCode::Done);
    }
    if (starts && options.dryRun.empty())
      return run::launch(options, /*plan=*/true, argv);
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
