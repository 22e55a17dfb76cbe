//===- taktc.cpp - the compiler's command line ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// taktc MODEL CLUSTER [-o PLAN] ...     compile
// taktc import FORMAT FILE [-o YAML]    bring in what others wrote
//
//===----------------------------------------------------------------------===//
#include "../arguments.h"

#include "takt/Driver/Compile.h"
#include "takt/Frontend/ImportDapple.h"
#include "takt/Frontend/Read.h"
#include "takt/Schedule/Schedule.h"
#include "takt/Solver/Solver.h"
#include "takt/Support/NearestName.h"
#include "takt/Support/Quantity.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

#include "llvm/Config/llvm-config.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

using namespace takt;
using arguments::oneOf, arguments::wholeNumber;
using rt::ExitCode;

namespace {

const std::map<std::string, EmitKind> kEmitKinds = {
    {"model", EmitKind::Model},        {"pipe", EmitKind::Pipe},
    {"comm", EmitKind::Comm},          {"plan-text", EmitKind::PlanText},
    {"plan", EmitKind::Plan},          {"csv", EmitKind::Csv},
    {"csv-comms", EmitKind::CsvComms}, {"csv-waits", EmitKind::CsvWaits},
    {"trace", EmitKind::Trace},        {"svg", EmitKind::Svg},
    {"html", EmitKind::Html},
};

std::string versionText() {
  return fmt::format("taktc {} (LLVM {}, plan format {}.{})\n{}",
                     versionString(), LLVM_VERSION_STRING,
                     rt::Plan::kFormatMajor, rt::Plan::kFormatMinor,
                     solver::description());
}

struct ImportOptions {
  std::string format, file, output = "-";
  int64_t samples = 0;
};

int runImport(const ImportOptions &options) {
  try {
    Diagnostics diags;
    ImportDappleOptions dapple;
    if (options.samples > 0)
      dapple.samples = options.samples;
    std::string text = rt::readFile(options.file);
    std::optional<std::string> yaml =
        importDapple(text, options.file, dapple, diags);
    diags.print(std::cerr);
    if (!yaml)
      return int(ExitCode::BadInput);
    rt::writeFile(options.output, *yaml);
    return int(ExitCode::Done);
  } catch (const rt::Error &error) {
    std::cerr << "taktc: error: " << error.what() << '\n';
    return int(error.code());
  }
}

std::vector<std::string> emitNames() {
  std::vector<std::string> names;
  for (const auto &[name, kind] : kEmitKinds)
    names.push_back(name);
  return names;
}

/// Options whose words are translated once all are read.
struct OptionTexts {
  std::vector<std::string> explain;
  std::string emit = "plan", format = "text", overlap = "on", bucketSize;
};

void addCompileOptions(CLI::App &app, CompileOptions &options,
                       OptionTexts &text) {
  app.add_option("model", options.model, "model YAML, - for standard input");
  app.add_option("cluster", options.cluster,
                 "cluster YAML or preset: host-2core, a100-8, h100-8x4, ...");
  app.add_option("-o,--output", options.output,
                 "where to write; - is standard output");
  app.add_option("--emit", text.emit,
                 "model, pipe, comm, plan-text, plan, csv, csv-comms, "
                 "csv-waits, trace, svg, html")
      ->check(oneOf(emitNames()))
      ->default_str("plan");
  app.add_option("--stages", options.stages, "exact number of stages")
      ->check(wholeNumber(1, 65535));
  app.add_option("--max-stages", options.maxStages, "most stages allowed")
      ->check(wholeNumber(1, 65535));
  app.add_option("--replicas", options.replicas, "replicas of every stage")
      ->check(wholeNumber(1, 65535));
  app.add_option("--cuts", options.cuts,
                 "layers that begin a stage, e.g. h.2,lnf")
      ->delimiter(',');
  app.add_option("--schedule", options.schedule,
                 "1f1b, gpipe, optimal, optimal-split, or a schedule file: "
                 "my.csv")
      ->default_str("1f1b");
  app.add_option("--profile", options.profile,
                 "measured costs (takt-run --profile); default: roofline");
  app.add_option("--work-limit", options.workLimit,
                 "transitions the exact search may look at")
      ->check(wholeNumber(1, int64_t(1) << 60));
  app.add_option("--overlap", text.overlap,
                 "reduce gradients in buckets beside the last backward where "
                 "that is shorter: on or off")
      ->check(oneOf({"on", "off"}))
      ->default_str("on");
  app.add_option("--bucket-size", text.bucketSize,
                 "size that closes a gradient bucket, e.g. 25MB; default: "
                 "what ends each stage soonest");
  app.add_option("--reduce-lanes", options.reduceLanes,
                 "lanes that reduce gradients, of each rank")
      ->check(wholeNumber(1, 2));
  app.add_option("--explain", text.explain, "print why: stages, comm")
      ->delimiter(',')
      ->check(oneOf({"stages", "comm"}));
  app.add_option("--dump-smt2", options.dumpSmt2,
                 "folder that receives what the constraint solver is asked");
  app.add_option("--dump-levels", options.dumpLevels,
                 "folder that receives every level");
  app.add_option("--format", text.format, "report as text or json")
      ->check(oneOf({"text", "json"}))
      ->default_str("text");
  app.add_flag("-q,--quiet", options.quiet, "no report");
  app.add_flag("-f,--force", options.force, "binary output to a terminal");
}

/// A name that no generator or search has, and that is no file's either.
std::string scheduleFault(const std::string &name) {
  std::vector<std::string> known = scheduleNames();
  known.insert(known.end(), {"optimal", "optimal-split"});
  bool file = name.find_first_of("./") != std::string::npos;
  if (file || std::find(known.begin(), known.end(), name) != known.end())
    return {};
  return fmt::format("'--schedule={}': known are {}, or a schedule file{}",
                     name, fmt::join(known, ", "), nearestHint(name, known));
}

bool sameFile(const std::string &a, const std::string &b) {
  std::error_code none;
  return !a.empty() && !b.empty() && std::filesystem::equivalent(a, b, none);
}

/// Translates words and refuses options that contradict each other; returns
/// what is wrong.
std::string settle(const OptionTexts &text, const CLI::Option *output,
                   CompileOptions &options) {
  for (const std::string &what : text.explain) {
    options.explainStages |= what == "stages";
    options.explainComm |= what == "comm";
  }
  options.emit = kEmitKinds.at(text.emit);
  options.overlap = text.overlap == "on";
  options.json = text.format == "json";
  if (!text.bucketSize.empty()) {
    Parsed<int64_t> size = parseBytes(text.bucketSize);
    if (!size || size.value == 0)
      return fmt::format("'--bucket-size={}': {}", text.bucketSize,
                         size ? "a bucket needs at least 1 byte" : size.error);
    options.bucketSize = size.value;
  }
  if (std::string fault = scheduleFault(options.schedule); !fault.empty())
    return fault;
  if (output->count() > 0 && options.output.empty())
    return "'-o' needs a file name, or - for standard output";
  if (options.profile == "-")
    return "'--profile' needs a file: it is read more than once";
  if (options.model == "-" && options.cluster == "-")
    return "the model and the cluster cannot both be standard input";
  for (const std::string &input :
       {options.model, options.cluster, options.profile, options.schedule})
    if (sameFile(options.output, input))
      return fmt::format("'-o {}' would overwrite an input", options.output);
  if (options.maxStages > 0 && options.stages > options.maxStages)
    return fmt::format("'--stages={}' is more than '--max-stages={}'",
                       options.stages, options.maxStages);
  if (!options.cuts.empty() && options.stages > 0 &&
      int64_t(options.cuts.size()) + 1 != options.stages)
    return fmt::format("'--cuts' makes {} stages, '--stages' asks for {}",
                       options.cuts.size() + 1, options.stages);
  bool level = options.emit == EmitKind::Model ||
               options.emit == EmitKind::Pipe || options.emit == EmitKind::Comm;
  if (options.json && level)
    return fmt::format("'--format=json' reports on a plan, and '--emit={}' "
                       "stops before there is one",
                       text.emit);
  if (options.json &&
      (options.output == "-" ||
       (options.output.empty() && options.emit != EmitKind::Plan)))
    return "'--format=json' writes to standard output: name a file with '-o'";
  return {};
}

} // namespace

int main(int argc, char **argv) {
  arguments::claimStandardStreams();
  CLI::App app("Takt: compiles a model and a cluster into a timed execution "
               "plan",
               "taktc");
  app.set_version_flag("--version", versionText());
  app.footer("Exit codes: 0 done, 1 bad input, 2 wrong usage, 3 proven "
             "infeasible,\n4 limit reached, 70 internal error.");
  CompileOptions options;
  OptionTexts text;
  addCompileOptions(app, options, text);
  CLI::Option *output = app.get_option("--output");

  ImportOptions importOptions;
  CLI::App *import = app.add_subcommand(
      "import", "write YAML from a published profile (dapple)");
  import->add_option("format", importOptions.format, "dapple")
      ->required()
      ->check(oneOf({"dapple"}));
  import->add_option("file", importOptions.file, "profile")->required();
  import->add_option("-o,--output", importOptions.output,
                     "where to write; - is standard output");
  import
      ->add_option("--samples", importOptions.samples,
                   "samples of the profiled batch; default: from the name")
      ->check(wholeNumber(1, int64_t(1) << 60));

  if (std::optional<int> code = arguments::parse(app, argc, argv))
    return *code;
  if (import->parsed())
    return runImport(importOptions);
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
