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
#include "takt/Driver/Compile.h"
#include "takt/Frontend/ImportDapple.h"
#include "takt/Frontend/Read.h"
#include "takt/Solver/Solver.h"
#include "takt/Support/Quantity.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

#include "llvm/Config/llvm-config.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <iostream>
#include <map>

using namespace takt;
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

void addCompileOptions(CLI::App &app, CompileOptions &options,
                       std::vector<std::string> &explain, std::string &format,
                       std::string &overlap, std::string &bucketSize) {
  app.add_option("model", options.model, "model YAML, - for standard input");
  app.add_option("cluster", options.cluster,
                 "cluster YAML or preset: host-2core, a100-8, h100-8x4, ...");
  app.add_option("-o,--output", options.output,
                 "where to write; - is standard output");
  app.add_option("--emit", options.emit,
                 "model, pipe, comm, plan-text, plan, csv, csv-comms, "
                 "csv-waits, trace, "
                 "svg, html")
      ->transform(CLI::CheckedTransformer(kEmitKinds))
      ->default_str("plan");
  app.add_option("--stages", options.stages, "exact number of stages")
      ->check(CLI::Range(int64_t(1), int64_t(65535)));
  app.add_option("--max-stages", options.maxStages, "most stages allowed")
      ->check(CLI::Range(int64_t(1), int64_t(65535)));
  app.add_option("--replicas", options.replicas, "replicas of every stage")
      ->check(CLI::Range(int64_t(1), int64_t(65535)));
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
      ->check(CLI::PositiveNumber);
  app.add_option("--overlap", overlap,
                 "reduce gradients in buckets beside the last backward where "
                 "that is shorter: on or off")
      ->check(CLI::IsMember({"on", "off"}))
      ->default_str("on");
  app.add_option("--bucket-size", bucketSize,
                 "size that closes a gradient bucket, e.g. 25MB; default: "
                 "what ends each stage soonest");
  app.add_option("--reduce-lanes", options.reduceLanes,
                 "lanes that reduce gradients, of each rank")
      ->check(CLI::Range(int64_t(1), int64_t(2)));
  app.add_option("--explain", explain, "print why: stages, comm")
      ->delimiter(',')
      ->check(CLI::IsMember({"stages", "comm"}));
  app.add_option("--dump-smt2", options.dumpSmt2,
                 "folder that receives what the constraint solver is asked");
  app.add_option("--dump-levels", options.dumpLevels,
                 "folder that receives every level");
  app.add_option("--format", format, "report as text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
  app.add_flag("-q,--quiet", options.quiet, "no report");
  app.add_flag("-f,--force", options.force, "binary output to a terminal");
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Takt: compiles a model and a cluster into a timed execution "
               "plan",
               "taktc");
  app.set_version_flag("--version", versionText());
  app.footer("Exit codes: 0 done, 1 bad input, 2 wrong usage, 3 proven "
             "infeasible,\n4 limit reached, 70 internal error.");
  CompileOptions options;
  std::vector<std::string> explain;
  std::string format = "text", overlap = "on", bucketSize;
  addCompileOptions(app, options, explain, format, overlap, bucketSize);

  ImportOptions importOptions;
  CLI::App *import = app.add_subcommand(
      "import", "write YAML from a published profile (dapple)");
  import->add_option("format", importOptions.format, "dapple")
      ->required()
      ->check(CLI::IsMember({"dapple"}));
  import->add_option("file", importOptions.file, "profile")->required();
  import->add_option("-o,--output", importOptions.output,
                     "where to write; - is standard output");
  import->add_option("--samples", importOptions.samples,
                     "samples of the profiled batch; default: from the name")
      ->check(CLI::PositiveNumber);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    app.exit(error);
    return int(ExitCode::Usage);
  }
  if (import->parsed())
    return runImport(importOptions);
  if (options.model.empty() || options.cluster.empty()) {
    std::cerr << "taktc: error: a model and a cluster are needed: taktc "
                 "model.yaml cluster.yaml -o job.plan\n";
    return int(ExitCode::Usage);
  }
  for (const std::string &what : explain) {
    options.explainStages |= what == "stages";
    options.explainComm |= what == "comm";
  }
  options.overlap = overlap == "on";
  if (!bucketSize.empty()) {
    Parsed<int64_t> size = parseBytes(bucketSize);
    if (!size || size.value == 0) {
      std::cerr << "taktc: error: '--bucket-size=" << bucketSize << "': "
                << (size ? "a bucket needs at least 1 byte" : size.error)
                << '\n';
      return int(ExitCode::Usage);
    }
    options.bucketSize = size.value;
  }
  options.json = format == "json";
  if (options.json && (options.output == "-" ||
                       (options.output.empty() &&
                        options.emit != EmitKind::Plan))) {
    std::cerr << "taktc: error: '--format=json' writes to standard output: "
                 "name a file with '-o'\n";
    return int(ExitCode::Usage);
  }
  return compile(options);
}
