//===- Compiler.h - one run of the compiler -----------------------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// State of one compilation: input specs, the module that descends through the
// levels, the plan.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Driver/Compile.h"
#include "takt/Frontend/Spec.h"
#include "takt/Lower/Lower.h"
#include "takt/Overlap/Choose.h"
#include "takt/Partition/Problem.h"
#include "takt/Schedule/File.h"
#include "takt/Schedule/Pipeline.h"
#include "takt/Support/Diagnostic.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/error.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <optional>
#include <ostream>

namespace takt {

namespace pipe {
struct ProgramParts;
struct StagedModel;
} // namespace pipe

class Watch;
struct StagedProblem;

class Compiler {
public:
  /// Messages go to `err`, which must outlive it, as must `watch`, if given.
  Compiler(const CompileOptions &options, std::ostream &err,
           Watch *watch = nullptr);
  ~Compiler();
  rt::ExitCode run();
  /// Of the plan, after `run` has made one.
  nlohmann::ordered_json reportJson();

private:
  // Each returns Done to go on. Compile.cpp:
  rt::ExitCode readInputs();
  rt::ExitCode readSchedule();
  rt::ExitCode placeSchedule();
  rt::ExitCode placeRule();
  rt::ExitCode sizePipeline(int32_t chunksByDefault, PipelineProblem &problem);
  void takePipeline(const PipelineProblem &problem, const Pipeline &pipeline);
  rt::ExitCode import();
  rt::ExitCode resolveCutNames();
  rt::ExitCode runPasses();
  rt::ExitCode runPass(std::unique_ptr<mlir::Pass> pass);
  rt::ExitCode lowerToPlan();
  rt::ExitCode prove();
  rt::ExitCode predict();
  void predictFlow();
  bool infers() const { return model.training.mode == rt::Mode::Inference; }
  bool poseStages(StagedProblem &staged, Partition &partition,
                  bool &isGraph) const;
  void explainStages() const;
  bool explainMixed() const; ///< whether it had anything to say
  void explainPools(const pipe::ProgramParts &parts,
                    const pipe::StagedModel &staged) const;
  nlohmann::ordered_json stagesJson() const;
  std::optional<OverlapChoice> chooseAgain() const;
  std::string hashInputs();

  // Emit.cpp:
  std::string moduleText();
  rt::ExitCode level(EmitKind kind, const char *fileName);
  rt::ExitCode write(const std::string &path, const std::string &content);
  rt::ExitCode emitPlan();
  void report();
  nlohmann::ordered_json boundsJson();
  std::string boundsReport();
  nlohmann::ordered_json searchJson();
  std::string searchReport();
  nlohmann::ordered_json costModelJson();
  std::string costModelReport();
  void reportInterrupt();

  rt::ExitCode fail(const std::string &message,
                    rt::ExitCode code = rt::ExitCode::BadInput);

  const CompileOptions &options;
  std::ostream &err;
  Watch *const watch;
  Diagnostics diags;
  mlir::MLIRContext context;
  ModelSpec model;
  ClusterSpec cluster;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<int64_t> cuts;
  bool cutsLayers = false; ///< `cuts` count layers, not segments of the chain
  /// Of --schedule=FILE, or of a family that lays several stages on a rank or
  /// holds other numbers of micro-batches than 1F1B; verified.
  std::optional<ScheduleFile> scheduleFile;
  std::string schedule; ///< asked for, or that of the mode
  std::string profileText;
  std::string inputHash;
  rt::Plan plan;
  rt::Simulation simulation;
  /// With one all-reduce a stage, for the explanation of buckets.
  std::optional<LoweringProblem> beforeOverlap;
  bool interrupted = false; ///< the searches ended with what they had
  bool written = false;     ///< the level that --emit names has been written
};

/// Puts schedule, stages and chunks in the place of '--schedule=auto'; the table
/// of candidates goes to `err`, unless the options are quiet.
rt::ExitCode chooseSchedule(CompileOptions &options, std::ostream &err);

/// The policy of stage assignment whose memory is enough for a file: "1f1b" if
/// no stage holds more micro-batches than that schedule, else "gpipe".
const char *memoryPolicy(const ScheduleFile &file);

/// Why each stage is where it is: the report of `--explain=stages`. `graph` is
/// there where the model is cut as one.
std::string explainPartition(const PartitionProblem &problem,
                             const Partition &partition,
                             const StagedProblem *graph);
nlohmann::ordered_json partitionJson(const PartitionProblem &problem,
                                     const Partition &partition,
                                     const StagedProblem *graph);

/// When gradients are reduced and what hides it: the report of
/// `--explain=comm`. `simulation` is of `plan`, with records; `choice` says why
/// its buckets are as they are, nothing if they were not to be chosen.
std::string explainOverlap(const rt::Plan &plan,
                           const rt::Simulation &simulation,
                           const std::optional<OverlapChoice> &choice);

/// The same as JSON; the keys are in docs/reference/tools.md.
nlohmann::ordered_json overlapJson(const rt::Plan &plan,
                                   const rt::Simulation &simulation,
                                   const std::optional<OverlapChoice> &choice);

} // namespace takt
