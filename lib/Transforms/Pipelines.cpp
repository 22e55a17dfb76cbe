//===- Pipelines.cpp - the passes in their order --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The one place that says which pass runs after which, and why.
//
//===----------------------------------------------------------------------===//
#include "takt/Transforms/Pipelines.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace takt;

void takt::buildTaktPipeline(OpPassManager &manager,
                             const PipelineOptions &options) {
  // First, as everything after it weighs layers by their times: nothing else
  // looks at the work itself.
  AnnotateCostsPassOptions costs;
  costs.profile = options.profile;
  manager.addPass(createAnnotateCostsPass(costs));

  // Before the schedule, which needs the number of stages. The schedule's name
  // is given here too: it decides how many micro-batches memory must hold.
  AssignStagesPassOptions stages;
  stages.stages = options.stages;
  stages.maxStages = options.maxStages;
  stages.cuts.assign(options.cuts.begin(), options.cuts.end());
  stages.replicas = options.replicas;
  stages.schedulePolicy = options.schedule;
  stages.workLimit = options.workLimit;
  manager.addPass(createAssignStagesPass(stages));

  // Before communication: transfers follow the order of the compute actions.
  SchedulePassOptions schedule;
  schedule.schedule = options.schedule;
  manager.addPass(createSchedulePass(schedule));

  // After every choice: it only adds what the actions need to run.
  manager.addPass(createInsertCommsPass());

  // Last: it divides the all-reduces inserted above, and to know whether that
  // pays it runs the whole step under the virtual clock.
  if (options.overlap) {
    OverlapCommsPassOptions overlap;
    overlap.bucketSize = options.bucketSize;
    overlap.lanes = options.reduceLanes;
    manager.addPass(createOverlapCommsPass(overlap));
  }
}

namespace {

/// The same options as text, for `takt-opt`.
struct TextOptions : PassPipelineOptions<TextOptions> {
  Option<std::string> profile{*this, "profile",
                              llvm::cl::desc("File of measured costs")};
  Option<int64_t> stages{*this, "stages",
                         llvm::cl::desc("Exact number of stages"),
                         llvm::cl::init(0)};
  Option<int64_t> maxStages{*this, "max-stages",
                            llvm::cl::desc("Most stages allowed"),
                            llvm::cl::init(0)};
  ListOption<int64_t> cuts{
      *this, "cuts", llvm::cl::desc("Segments before which a stage ends")};
  Option<int64_t> replicas{*this, "replicas",
                           llvm::cl::desc("Replicas of every stage"),
                           llvm::cl::init(0)};
  Option<std::string> schedule{*this, "schedule",
                               llvm::cl::desc("gpipe or 1f1b"),
                               llvm::cl::init("1f1b")};
  Option<int64_t> workLimit{*this, "work-limit",
                            llvm::cl::desc("Work of stage assignment"),
                            llvm::cl::init(int64_t(4) << 30)};
  Option<bool> overlap{*this, "overlap",
                       llvm::cl::desc("Gradient buckets beside backward"),
                       llvm::cl::init(true)};
  Option<int64_t> bucketSize{*this, "bucket-size",
                             llvm::cl::desc("Bytes that close a bucket"),
                             llvm::cl::init(0)};
  Option<int64_t> reduceLanes{*this, "reduce-lanes",
                              llvm::cl::desc("Lanes that reduce: 1 or 2"),
                              llvm::cl::init(1)};
};

} // namespace

void takt::registerTaktPipeline() {
  PassPipelineRegistration<TextOptions>(
      "takt-pipeline",
      "From a costless model and a cluster to a program with "
      "communication",
      [](OpPassManager &manager, const TextOptions &text) {
        PipelineOptions options;
        options.profile = text.profile;
        options.stages = text.stages;
        options.maxStages = text.maxStages;
        options.cuts.assign(text.cuts.begin(), text.cuts.end());
        options.replicas = text.replicas;
        options.schedule = text.schedule;
        options.workLimit = text.workLimit;
        options.overlap = text.overlap;
        options.bucketSize = text.bucketSize;
        options.reduceLanes = text.reduceLanes;
        buildTaktPipeline(manager, options);
      });
}
