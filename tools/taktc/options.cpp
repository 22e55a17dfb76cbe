//===- options.cpp - the options of one compilation -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What single options may be is checked as they are read, what they may be
// together afterwards.
//
//===----------------------------------------------------------------------===//
#include "options.h"

#include "../arguments.h"

#include "takt/Schedule/Pipeline.h"
#include "takt/Support/NearestName.h"
#include "takt/Support/Quantity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <unistd.h>

using namespace takt;
using arguments::oneOf, arguments::wholeNumber;

namespace {

const std::map<std::string, EmitKind> kEmitKinds = {
    {"model", EmitKind::Model},        {"pipe", EmitKind::Pipe},
    {"comm", EmitKind::Comm},          {"plan-text", EmitKind::PlanText},
    {"plan", EmitKind::Plan},          {"csv", EmitKind::Csv},
    {"csv-comms", EmitKind::CsvComms}, {"csv-waits", EmitKind::CsvWaits},
    {"trace", EmitKind::Trace},        {"svg", EmitKind::Svg},
    {"html", EmitKind::Html},
};

std::vector<std::string> emitNames() {
  std::vector<std::string> names;
  for (const auto &[name, kind] : kEmitKinds)
    names.push_back(name);
  return names;
}

} // namespace

void takt::addCompileOptions(CLI::App &app, CompileOptions &options,
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
  app.add_option("--assign", options.assign,
                 "where a model is cut: chain (one value crosses a cut), graph "
                 "(any number), or auto")
      ->check(oneOf({"auto", "chain", "graph"}))
      ->default_str("auto");
  app.add_option("--schedule", options.schedule,
                 "a family, e.g. zb-h1 ('taktc schedules' lists them), optimal, "
                 "optimal-split, auto (the shortest step of all families), a "
                 "rule: my.yaml, or a schedule file: my.csv; forward in the mode "
                 "inference")
      ->check([](const std::string &name) {
        return std::string(name.empty() ? "a schedule has a name" : "");
      })
      ->default_str("1f1b");
  app.add_option("--chunks", options.chunks,
                 "stages a rank, of a schedule that lays several on one")
      ->check(wholeNumber(1, 63));
  app.add_option("--profile", options.profile,
                 "measured costs (takt-run --profile); default: roofline");
  app.add_option("--cost-model", options.costModel,
                 "whose formula chooses the stages: takt, pipedream, dapple, "
                 "2bw, dnn-partitioning, piper")
      ->check(oneOf({"takt", "pipedream", "dapple", "2bw", "dnn-partitioning",
                     "piper"}))
      ->default_str("takt");
  app.add_option("--objective", options.objective,
                 "what is least of a step: time, or the price of the devices "
                 "used (price_per_hour)")
      ->check(oneOf({"time", "price"}))
      ->default_str("time");
  app.add_option("--within", text.within,
                 "limit on the other: with --objective=price the longest step, "
                 "e.g. 20ms; else the highest price of a step, e.g. 0.002");
  app.add_option("--work-limit", options.workLimit,
                 "transitions the exact search may look at")
      ->check(wholeNumber(1, int64_t(1) << 60));
  app.add_option("--search-work", options.searchWork,
                 "work of the constraint solver on one question; 10000000 is "
                 "about a second")
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
  app.add_flag("--progress", options.progress,
               "a line a second about a search that runs, also where standard "
               "error is no terminal");
  app.add_flag("-f,--force", options.force, "binary output to a terminal");
}

namespace {

/// A name that no generator or search has, and that is no file's either.
std::string scheduleFault(const std::string &name) {
  std::vector<std::string> known = familyNames();
  known.insert(known.end(), {"optimal", "optimal-split", "auto", "forward"});
  if (name.empty())
    return {}; // not asked for
  bool file = name.find_first_of("./") != std::string::npos;
  if (file || std::find(known.begin(), known.end(), name) != known.end())
    return {};
  return fmt::format("'--schedule={}': known are {}, or a schedule file{}",
                     name, fmt::join(known, ", "), nearestHint(name, known));
}

/// A time or a price, whichever is not the objective.
std::string readLimit(const std::string &within, CompileOptions &options) {
  if (within.empty())
    return {};
  if (options.objective == "price") {
    Parsed<int64_t> time = parseTime(within);
    if (!time || time.value == 0)
      return fmt::format("'--within={}': {}", within,
                         time ? "a step takes at least 1 ns" : time.error);
    options.maxTime = time.value;
    return {};
  }
  size_t read = 0;
  try {
    options.maxPrice = std::stod(within, &read);
  } catch (const std::exception &) {
    read = 0;
  }
  if (read != within.size() || !std::isfinite(options.maxPrice) ||
      options.maxPrice < 0)
    return fmt::format("'--within={}': with '--objective=time' it is the "
                       "highest price of a step, a number such as 0.002",
                       within);
  return {};
}

bool sameFile(const std::string &a, const std::string &b) {
  std::error_code none;
  return !a.empty() && !b.empty() && std::filesystem::equivalent(a, b, none);
}

} // namespace

std::string takt::settle(const OptionTexts &text, const CLI::Option *output,
                         CompileOptions &options) {
  for (const std::string &what : text.explain) {
    options.explainStages |= what == "stages";
    options.explainComm |= what == "comm";
  }
  options.emit = kEmitKinds.at(text.emit);
  options.overlap = text.overlap == "on";
  options.json = text.format == "json";
  options.progress |= !options.quiet && isatty(STDERR_FILENO) != 0;
  if (!text.bucketSize.empty()) {
    Parsed<int64_t> size = parseBytes(text.bucketSize);
    if (!size || size.value == 0)
      return fmt::format("'--bucket-size={}': {}", text.bucketSize,
                         size ? "a bucket needs at least 1 byte" : size.error);
    options.bucketSize = size.value;
  }
  if (std::string fault = readLimit(text.within, options); !fault.empty())
    return fault;
  if (std::string fault = scheduleFault(options.schedule); !fault.empty())
    return fault;
  if (output->count() > 0 && options.output.empty())
    return "'-o' needs a file name, or - for standard output";
  if (options.costModel != "takt" &&
      (!options.cuts.empty() || options.stages > 0 || options.replicas > 0))
    return fmt::format("'--cost-model={}' chooses stages and replicas itself: "
                       "leave out '--cuts', '--stages' and '--replicas'",
                       options.costModel);
  if (options.costModel != "takt" &&
      (options.objective != "time" || !text.within.empty()))
    return fmt::format("'--cost-model={}' knows no prices: leave out "
                       "'--objective' and '--within'",
                       options.costModel);
  if (options.schedule == "auto" && options.costModel != "takt")
    return fmt::format("'--cost-model={}' chooses stages itself, and "
                       "'--schedule=auto' their number: leave one out",
                       options.costModel);
  if (options.schedule == "auto" &&
      (options.model == "-" || options.cluster == "-"))
    return "'--schedule=auto' reads the model and the cluster more than once: "
           "neither can be standard input";
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
