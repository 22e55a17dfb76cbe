//===- PlaceSchedule.cpp - --schedule=FAMILY and --schedule=RULE.yaml -----===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Stage assignment must know how the stages of a schedule lie on ranks and how
// many micro-batches each holds. For a family, or a rule that a user wrote, that
// is known before the stages are: its order for equal stages tells. Once the
// stages have times the pass that makes the roles asks again.
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"

#include "takt/Schedule/Language.h"
#include "takt/Schedule/Pipeline.h"
#include "takt/Support/TextFile.h"

#include <fmt/format.h>

#include <algorithm>

using namespace takt;
using rt::ExitCode;

namespace {

std::string plural(int64_t count, const char *what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

} // namespace

std::string takt::whyNoPlan(const ScheduleFamily &family) {
  if (family.delayed)
    return "updates weights while micro-batches are under way that read older "
           "ones, and the steps of a plan are exact: '--schedule=1f1b' is the "
           "like order";
  if (family.chains > 1)
    return fmt::format("needs {} copies of every stage, which plans do not have "
                       "yet",
                       family.chains);
  return {};
}

ExitCode Compiler::placeSchedule() {
  const ScheduleFamily *family = findFamily(schedule);
  // Those of one stage a rank that hold what 1F1B or GPipe hold leave the number
  // of stages to the assignment.
  const bool free =
      !family || family->name == "1f1b" || family->name == "gpipe";
  if (free && options.chunks <= 1)
    return ExitCode::Done;
  if (free)
    return fail(
        fmt::format("'--chunks={}': '--schedule={}' has one stage a rank",
                    options.chunks, schedule),
        ExitCode::Usage);
  if (const std::string why = whyNoPlan(*family); !why.empty())
    return fail(fmt::format("'--schedule={}' {}", family->name, why),
                ExitCode::Usage);
  PipelineProblem problem;
  if (ExitCode code = sizePipeline(family->leastChunks, problem);
      code != ExitCode::Done)
    return code;
  std::string why;
  const std::optional<Pipeline> pipeline =
      generatePipeline(family->name, problem, why);
  if (!pipeline)
    return fail("'--schedule': " + why);
  takePipeline(problem, *pipeline);
  return ExitCode::Done;
}

ExitCode Compiler::placeRule() {
  const std::optional<std::string> text =
      readTextFile(schedule, diags);
  const std::optional<ScheduleRule> rule =
      text ? parseScheduleRule(schedule, *text, diags) : std::nullopt;
  if (!rule)
    return ExitCode::BadInput;
  if (rule->chains > 1) {
    diags.error(rule->loc, "plans do not have copies of stages yet: 'chains: "
                           "2' can be drawn and timed only");
    return ExitCode::BadInput;
  }
  PipelineProblem problem;
  if (ExitCode code = sizePipeline(std::max(1, rule->chunks), problem);
      code != ExitCode::Done)
    return code;
  const std::optional<Pipeline> pipeline =
      expandSchedule(*rule, problem, diags);
  if (!pipeline)
    return ExitCode::BadInput;
  takePipeline(problem, *pipeline);
  return ExitCode::Done;
}

/// Ranks and stages a rank from the options.
ExitCode Compiler::sizePipeline(int32_t chunksByDefault,
                                PipelineProblem &problem) {
  const int64_t chunks =
      options.chunks > 0 ? options.chunks : chunksByDefault;
  const int64_t stages =
      options.stages > 0 ? options.stages : int64_t(options.cuts.size()) + 1;
  if (options.stages == 0 && options.cuts.empty())
    return fail(fmt::format("'--schedule={}' needs the number of stages: "
                            "'--stages=N', {} a rank",
                            schedule, plural(chunks, "stage")),
                ExitCode::Usage);
  if (stages % chunks != 0)
    return fail(fmt::format("'--schedule={}' lays {} on each rank, and {} "
                            "cannot be divided so",
                            schedule, plural(chunks, "stage"),
                            plural(stages, "stage")),
                ExitCode::Usage);
  problem.ranks = int32_t(stages / chunks);
  problem.chunks = int32_t(chunks);
  problem.microBatches = int32_t(model.training.microBatches);
  return ExitCode::Done;
}

void Compiler::takePipeline(const PipelineProblem &problem,
                            const Pipeline &pipeline) {
  scheduleFile = toFile(
      {problem.stages(), problem.microBatches, pipeline.rankOfStage},
      pipeline.schedule);
  scheduleFile->name = pipeline.schedule.name;
  if (std::optional<Action> late = firstOutOfTurn(pipeline.schedule))
    diags.warning({}, fmt::format("'{}' of schedule '{}' does not come in the "
                                  "order of micro-batches: gradients add up in "
                                  "another order, so losses differ in their "
                                  "last bits from those of other schedules",
                                  toText(*late), pipeline.schedule.name));
}
