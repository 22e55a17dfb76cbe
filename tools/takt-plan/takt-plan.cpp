//===- takt-plan.cpp - look at plan files -----------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Everything that can be asked of a plan without running it. Plans are read in
// binary or text form; "-" is standard input or output.
//
//===----------------------------------------------------------------------===//
#include "../arguments.h"
#include "explain.h"
#include "schedule_input.h"
#include "why_hang.h"

#include "takt-rt/core/analysis.h"
#include "takt-rt/core/clock.h"
#include "takt-rt/core/diff.h"
#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/proof.h"
#include "takt-rt/core/summary.h"
#include "takt-rt/core/text.h"
#include "takt-rt/core/units.h"
#include "takt-rt/trace/timeline.h"
#include "takt-rt/trace/trace.h"
#include "takt/Support/Diagnostic.h"
#include "takt/Support/NearestName.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <functional>
#include <iostream>
#include <sstream>

using namespace takt::rt;
using takt::arguments::oneOf;

namespace {

struct Options {
  std::string file;
  std::string other; ///< second plan, of diff
  std::string output = "-";
  std::string format = "text";
  std::string measured; ///< a trace, of draw
  std::string costs;    ///< of a schedule file
};

/// The plan of a plan file or, for the commands that take them, of a schedule
/// file.
Plan load(const Options &options) {
  return readPlanOrSchedule(options.file, options.costs, Reading::Proof).plan;
}

void show(const Options &options) {
  Plan plan = readPlan(options.file);
  if (options.format == "plan-text")
    writeFile("-", toText(plan));
  else if (options.format == "json")
    writeFile("-", toJson(summarize(plan)));
  else
    writeFile("-", printText(summarize(plan)));
}

void check(const Options &options) {
  // Every rule is checked here, so that whichever fails is reported in the form
  // that is asked for. A schedule that cannot run is refused on reading.
  PlanInput input =
      readPlanOrSchedule(options.file, options.costs, Reading::Form,
                         options.format == "json" ? &std::cout : nullptr);
  const Plan &plan = input.plan;
  std::string proved = "schedule verified";
  if (!input.isSchedule) {
    Proof proof = prove(plan);
    if (proof.holds() && hasCertificate(plan))
      proof.failure = checkCertificate(plan).failure;
    if (proof.holds())
      for (ProofFailure &figure : checkFigures(plan))
        proof.warnings.push_back(std::move(figure));
    if (options.format == "json")
      writeFile("-", proofJson(proof));
    requireProof(proof, options.file);
    proved = proofText(proof);
  }
  SimulateOptions run;
  run.keepRecords = false;
  Nanos makespan = simulate(plan, run).makespan;
  std::string name = options.file == "-" ? "standard input" : options.file;
  fmt::print(stderr, "{}: {}\n{}: sound, runs to its end in {}\n", name, proved,
             name, formatNanos(makespan));
}

using Draw = void (*)(std::ostream &, const Plan &, const Runs &);

/// By the ending of the file; standard output gets a picture.
Draw drawing(const std::string &output) {
  size_t dot = output.find_last_of('.');
  std::string end = dot == std::string::npos ? "" : output.substr(dot);
  for (char &c : end)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (end == ".html")
    return writeTimelineHtml;
  if (end == ".json")
    return writeChromeTrace;
  if (end == ".svg" || output == "-")
    return writeTimelineSvg;
  throw Error(fmt::format("'{}' ends in none of .svg, .html and .json", output),
              ExitCode::Usage);
}

void draw(const Options &options) {
  Draw write = drawing(options.output);
  Plan plan = load(options);
  Runs runs;
  runs.predicted = simulate(plan).records;
  if (!options.measured.empty())
    runs.measured =
        readChromeTrace(readFile(options.measured), options.measured, plan);
  std::ostringstream out;
  write(out, plan, runs);
  writeFile(options.output, out.str());
}

void simulatePlan(const Options &options) {
  Plan plan = load(options);
  Simulation run = simulate(plan);
  Analysis analysis = analyze(plan, run);
  writeFile("-", options.format == "json" ? toJson(plan, run, analysis)
                                          : printText(plan, run, analysis));
}

void diff(const Options &options) {
  if (options.file == "-" && options.other == "-")
    throw Error("the two plans cannot both be standard input", ExitCode::Usage);
  PlanDiff result = diffPlans(readPlan(options.file), readPlan(options.other));
  writeFile("-", options.format == "json" ? toJson(result) : printText(result));
}

void dump(const Options &options) {
  writeFile(options.output, toText(readPlan(options.file)));
}

void assemble(const Options &options) {
  writePlan(readPlan(options.file), options.output);
}

struct Command {
  const char *name;
  const char *help;
  void (*run)(const Options &);
  std::vector<std::string> formats; ///< of --format; empty: no such option
  bool hasOutput;
  bool takesSchedules = false; ///< schedule files too, with `--costs`
};

const std::vector<Command> &commands() {
  static const std::vector<Command> all = {
      {"show",
       "print what the plan decided",
       show,
       {"text", "json", "plan-text"},
       false},
      {"check",
       "prove the plan and run it under the virtual clock",
       check,
       {"text", "json"},
       false,
       true},
      {"draw",
       "draw the predicted step as .svg, .html or trace .json",
       draw,
       {},
       true,
       true},
      {"simulate",
       "predict the step: time, waits and their causes, memory",
       simulatePlan,
       {"text", "json"},
       false,
       true},
      {"diff",
       "say what differs between two plans and what it costs",
       diff,
       {"text", "json"},
       false},
      {"dump", "write the text form", dump, {}, true},
      {"assemble", "write the binary form", assemble, {}, true}};
  return all;
}

/// A first word that is no command; the library would only ask for one.
void refuseUnknownCommand(const CLI::App &app, int argc, char **argv) {
  std::string word = argc > 1 ? argv[1] : "-";
  std::vector<std::string> known;
  for (const CLI::App *command : app.get_subcommands(nullptr))
    known.push_back(command->get_name());
  if (word.empty() || word[0] == '-' ||
      std::find(known.begin(), known.end(), word) != known.end())
    return;
  throw Error(fmt::format("unknown command '{}'{}; there are {}",
                          takt::quotable(word), takt::nearestHint(word, known),
                          fmt::join(known, ", ")),
              ExitCode::Usage);
}

int run(int argc, char **argv) {
  CLI::App app("Looks at plans written by taktc. FILE is a plan in binary or "
               "text form, - is standard input; check, draw and simulate also "
               "take a schedule file (.csv).",
               "takt-plan");
  app.set_version_flag("--version", "takt-plan " TAKT_VERSION);
  app.require_subcommand(1);
  Options options;
  std::function<void()> chosen;
  for (const Command &command : commands()) {
    CLI::App *sub = app.add_subcommand(command.name, command.help);
    sub->add_option("FILE", options.file, "the plan")->required();
    if (command.run == diff)
      sub->add_option("OTHER", options.other, "the plan to compare with")
          ->required();
    if (!command.formats.empty())
      sub->add_option("--format", options.format, "form of the report")
          ->check(oneOf(command.formats))
          ->capture_default_str();
    if (command.hasOutput)
      sub->add_option("-o,--output", options.output, "where to write to")
          ->capture_default_str();
    if (command.run == draw)
      sub->add_option("--measured", options.measured,
                      "trace of a run, written by takt-run --trace, to show "
                      "beside");
    if (command.takesSchedules)
      sub->add_option("--costs", options.costs,
                      "of a schedule file (.csv), in microseconds; B takes I + "
                      "W unless it is given")
          ->default_str("F=1,I=1,W=1,comm=0");
    sub->callback([&chosen, &options, &command] {
      chosen = [&options, &command] { command.run(options); };
    });
  }
  addExplain(app, chosen);
  addWhyHang(app, chosen);
  refuseUnknownCommand(app, argc, argv);
  if (std::optional<int> code = takt::arguments::parse(app, argc, argv))
    return *code;
  chosen();
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  takt::arguments::claimStandardStreams();
  try {
    return run(argc, argv);
  } catch (const Error &error) {
    fmt::print(stderr, "takt-plan: error: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception &error) {
    fmt::print(stderr, "takt-plan: internal error: {}\n", error.what());
    return static_cast<int>(ExitCode::Internal);
  }
}
