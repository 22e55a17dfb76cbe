//===- Compile.h - what `taktc` does -----------------------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The whole line from two YAML files to a plan, with a place to stop at every
// level.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

struct ScheduleFamily;

/// Levels in the order of the line, then views of the plan.
enum class EmitKind : uint8_t {
  Model,
  Pipe,
  Comm,
  PlanText,
  Plan,
  Csv,
  CsvComms,
  CsvWaits,
  Trace,
  Svg,
  Html
};

struct CompileOptions {
  std::string model, cluster; ///< files; the cluster may be a preset's name
  std::string profile;        ///< measured costs; empty: roofline
  std::string output;         ///< "-": standard output; empty: none
  EmitKind emit = EmitKind::Plan;
  std::string dumpLevels; ///< folder that receives every level; empty: none
  std::string dumpSmt2;   ///< folder for the solver's questions; empty: none
  bool explainStages = false, explainComm = false;
  bool json = false;     ///< the report as JSON on standard output
  bool quiet = false;    ///< no report
  bool progress = false; ///< a line a second about searches that run
  bool force = false;    ///< binary to a terminal all the same

  int64_t stages = 0;            ///< 0: free
  int64_t maxStages = 0;         ///< 0: no limit
  int64_t replicas = 0;          ///< 0: free
  std::vector<std::string> cuts; ///< layers that begin a stage
  std::string assign = "auto";   ///< cut as: auto, chain or graph
  /// A name, a rule or a schedule file; empty: 1f1b, in inference forward.
  std::string schedule;
  int64_t chunks = 0; ///< stages a rank; 0: the fewest that the schedule has
  std::string costModel = "takt";       ///< whose formula chooses the stages
  std::string objective = "time";       ///< what is least: time or price
  int64_t maxTime = 0;                  ///< ns a step may take; 0: no limit
  double maxPrice = -1;                 ///< of a step; negative: no limit
  int64_t workLimit = int64_t(4) << 30; ///< of the exact search
  int64_t searchWork = 20000000;        ///< of the constraint solver
  bool overlap = true;     ///< gradient buckets beside the last backward
  int64_t bucketSize = 0;  ///< bytes that close a bucket; 0: by the stage
  int64_t reduceLanes = 1; ///< of each rank: 1 or 2
};

/// Runs the compiler; messages to stderr. Returns the exit code (error.h).
int compile(const CompileOptions &options);

/// What a compilation comes to when nothing is written.
struct CompileOutcome {
  int code = 0;                  ///< exit code (error.h)
  std::string messages;          ///< what would go to standard error
  nlohmann::ordered_json report; ///< of --format=json; null without a plan
};

/// Plans and writes nothing, whatever the options say of output and report.
CompileOutcome compileForReport(const CompileOptions &options);

/// Version of Takt, "0.1.0".
/// Why '--schedule' makes no plan of a family; empty: it does.
std::string whyNoPlan(const ScheduleFamily &family);

const char *versionString();

} // namespace takt
