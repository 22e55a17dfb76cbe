//===- Compile.cpp - the line from YAML to a plan -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads, imports, runs the passes one by one so that every level can be
// written, lowers, and times the plan under the virtual clock.
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"
#include "Cuts.h"
#include "DiagnosticBridge.h"
#include "StageMoves.h"
#include "Watch.h"

#include "Coll/CollBridge.h"
#include "Coll/CollDialect.h"
#include "Model/ModelBridge.h"
#include "Model/ModelDialect.h"
#include "Pipe/PipeBridge.h"
#include "Pipe/PipeDialect.h"
#include "takt/Cost/Cost.h"
#include "takt/Frontend/Read.h"
#include "takt/Layer/Order.h"
#include "takt/Lower/Lower.h"
#include "takt/Support/Search.h"
#include "takt/Support/TextFile.h"
#include "takt/Transforms/Passes.h"

#include "takt-rt/core/file.h"
#include "takt-rt/core/proof.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <sstream>

using namespace takt;
using rt::ExitCode;

const char *takt::versionString() { return TAKT_VERSION; }

Compiler::Compiler(const CompileOptions &options, std::ostream &err,
                   Watch *watch)
    : options(options), err(err), watch(watch),
      context(mlir::MLIRContext::Threading::DISABLED) {
  context
      .loadDialect<model::ModelDialect, pipe::PipeDialect, coll::CollDialect>();
  // Users wrote YAML: a dump of the op would not help them.
  context.printOpOnDiagnostic(false);
}

Compiler::~Compiler() = default;

ExitCode Compiler::fail(const std::string &message, ExitCode code) {
  err << "taktc: error: " << message << '\n';
  return code;
}

ExitCode Compiler::readInputs() {
  std::optional<ModelSpec> modelSpec = readModel(options.model, diags);
  std::optional<ClusterSpec> clusterSpec = readCluster(options.cluster, diags);
  if (!modelSpec || !clusterSpec)
    return ExitCode::BadInput;
  model = std::move(*modelSpec);
  cluster = std::move(*clusterSpec);
  if (!options.profile.empty()) {
    std::optional<std::string> text = readTextFile(options.profile, diags);
    if (!text)
      return ExitCode::BadInput;
    profileText = std::move(*text);
  }
  schedule = options.schedule;
  if (schedule.empty())
    schedule = infers() ? "forward" : "1f1b";
  if (infers() != (schedule == "forward"))
    return fail(infers() ? fmt::format("'--schedule={}' is for training; the "
                                       "mode 'inference' has the schedule "
                                       "'forward'",
                                       schedule)
                         : "'--schedule=forward' is for the mode 'inference': "
                           "training goes backward, too",
                ExitCode::Usage);
  if (!namesScheduleFile(schedule))
    return placeSchedule();
  return isScheduleRule(schedule) ? placeRule() : readSchedule();
}

ExitCode Compiler::import() {
  module = model::importModel(model, &context);
  mlir::OpBuilder builder(&context);
  builder.setInsertionPointToStart(module->getBody());
  pipe::importCluster(cluster, builder);
  pipe::importConstraints(model.constraints, builder);
  inputHash = hashInputs();
  return ExitCode::Done;
}

/// SHA-256 of what the plan follows from: model and cluster as IR, the profile,
/// and the options that change decisions.
std::string Compiler::hashInputs() {
  llvm::SHA256 hash;
  hash.update(moduleText());
  if (!options.profile.empty())
    hash.update(profileText);
  std::string order = schedule;
  if (scheduleFile)
    order = (namesScheduleFile(schedule) ? "file " : schedule) +
            writeScheduleCsv(*scheduleFile);
  std::string decisions =
      fmt::format("stages={} max={} replicas={} schedule={} work={}",
                  options.stages, options.maxStages, options.replicas, order,
                  options.workLimit);
  decisions += fmt::format(" overlap={} bucket={} lanes={}", options.overlap,
                           options.bucketSize, options.reduceLanes);
  if (options.assign != "auto")
    decisions += " assign=" + options.assign;
  if (options.costModel != "takt")
    decisions += " model=" + options.costModel;
  if (options.searchWork != CompileOptions().searchWork)
    decisions += fmt::format(" search={}", options.searchWork);
  if (options.objective != "time")
    decisions += " objective=" + options.objective;
  if (options.maxTime > 0 || options.maxPrice >= 0)
    decisions +=
        fmt::format(" within={} {}", options.maxTime, options.maxPrice);
  for (const std::string &cut : options.cuts)
    decisions += " cut=" + cut;
  hash.update(decisions);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

ExitCode Compiler::resolveCutNames() {
  if (options.cuts.empty())
    return ExitCode::Done;
  Graph graph = buildGraph(model);
  std::string error;
  const std::vector<Segment> chain = chainSegments(graph);
  if (options.assign != "graph" &&
      resolveCuts(graph, chain, options.cuts, cuts, error))
    return ExitCode::Done;
  // What several values cross is no cut of a chain.
  if (options.assign == "chain" ||
      !resolveCuts(graph, layerSegments(graph), options.cuts, cuts, error))
    return fail("--cuts: " + error);
  cutsLayers = true;
  return ExitCode::Done;
}

ExitCode Compiler::runPass(std::unique_ptr<mlir::Pass> pass) {
  mlir::PassManager manager(&context);
  manager.addPass(std::move(pass));
  if (mlir::succeeded(manager.run(*module)))
    return ExitCode::Done;
  if ((*module)->hasAttr(pipe::kInfeasibleAttr))
    return ExitCode::Infeasible;
  return (*module)->hasAttr(pipe::kLimitReachedAttr) ? ExitCode::LimitReached
                                                     : ExitCode::BadInput;
}

ExitCode Compiler::runPasses() {
  ExitCode code;
  if ((code = level(EmitKind::Model, "1-model.mlir")) != ExitCode::Done)
    return code;

  // Costs first: every later decision compares times.
  AnnotateCostsPassOptions costs;
  costs.profile = options.profile;
  if ((code = runPass(createAnnotateCostsPass(costs))) != ExitCode::Done ||
      (code = level(EmitKind::Plan, "2-costs.mlir")) != ExitCode::Done)
    return code;

  // Stages before order: the schedule is over stages.
  AssignStagesPassOptions assign;
  assign.stages = options.stages;
  assign.maxStages = options.maxStages;
  assign.replicas = options.replicas;
  assign.cuts.assign(cuts.begin(), cuts.end());
  assign.assignBy = cutsLayers ? "graph" : options.assign;
  assign.schedulePolicy = infers() || schedule == "gpipe" ? schedule : "1f1b";
  if (scheduleFile) {
    assign.stages = scheduleFile->stages;
    assign.schedulePolicy = memoryPolicy(*scheduleFile);
    const int32_t stages = scheduleFile->stages;
    Schedule placed = computeSchedule(*scheduleFile);
    // Families with one stage a rank that hold more than 1F1B and less than GPipe
    // are placed too: the exact chain knows those two only.
    const bool between = (!namesScheduleFile(schedule) ||
                          isScheduleRule(schedule)) &&
                         assign.schedulePolicy != "1f1b";
    if (placed.roles.size() != size_t(stages) || between) {
      const std::vector<int32_t> ranks = sortRoles(placed, stages);
      const std::vector<int32_t> held = heldByStage(placed, stages);
      assign.ranks.assign(ranks.begin(), ranks.end());
      assign.held.assign(held.begin(), held.end());
    }
  }
  assign.costModel = options.costModel;
  assign.objective = options.objective;
  assign.maxTime = options.maxTime;
  assign.maxPrice = options.maxPrice;
  assign.workLimit = options.workLimit;
  assign.searchWork = options.searchWork;
  assign.dumpSmt2 = options.dumpSmt2;
  if ((code = runPass(createAssignStagesPass(assign))) != ExitCode::Done ||
      (code = level(EmitKind::Plan, "3-stages.mlir")) != ExitCode::Done)
    return code;

  SchedulePassOptions order;
  order.schedule = schedule;
  order.dumpSmt2 = options.dumpSmt2;
  order.searchWork = options.searchWork;
  if (namesScheduleFile(schedule))
    order.file = schedule;
  if ((code = runPass(createSchedulePass(order))) != ExitCode::Done ||
      (code = level(EmitKind::Pipe, "4-pipe.mlir")) != ExitCode::Done)
    return code;

  // Transfers follow from the order of the calls that make and use the data.
  if ((code = runPass(createInsertCommsPass())) != ExitCode::Done)
    return code;

  // Last, over everything that takes time in the step.
  std::string error;
  if (options.explainComm)
    beforeOverlap = coll::exportLowering(*module, error);
  if (options.overlap) {
    OverlapCommsPassOptions overlap;
    overlap.bucketSize = options.bucketSize;
    overlap.lanes = options.reduceLanes;
    overlap.dumpSmt2 = options.dumpSmt2;
    overlap.searchWork = options.searchWork;
    if ((code = runPass(createOverlapCommsPass(overlap))) != ExitCode::Done)
      return code;
  }
  return level(EmitKind::Comm, "5-comm.mlir");
}

ExitCode Compiler::lowerToPlan() {
  std::string error;
  std::optional<LoweringProblem> problem = coll::exportLowering(*module, error);
  if (!problem)
    return fail(error);
  problem->compiler = fmt::format("taktc {}", versionString());
  problem->inputHash = inputHash;
  if (auto fault = problem->check())
    return fail(*fault);
  plan = lower(*problem);
  std::vector<std::string> faults = rt::checkStructure(plan);
  if (!faults.empty())
    return fail("the lowered plan is not sound: " + faults.front(),
                ExitCode::Internal);
  for (const rt::Role &role : plan.roles)
    if (role.capacity > 0 && role.arenaBytes > role.capacity)
      return fail(
          fmt::format("{} needs {} bytes a device, the device has {}; more "
                      "stages, more micro-batches or fewer in flight "
                      "('--schedule=1f1b') would need less",
                      role.name, role.arenaBytes, role.capacity),
          ExitCode::Infeasible);
  return ExitCode::Done;
}

/// The simulator is the interpreter under a virtual clock: a plan that cannot
/// run to its end fails here, not on the cluster.
ExitCode Compiler::predict() {
  simulation = rt::simulate(plan);
  plan.predictedStep = simulation.makespan;
  if (infers())
    predictFlow();
  std::string error;
  if (auto parts = pipe::findProgram(*module, error)) {
    plan.objectiveStep = parts->program.getObjectiveNs();
    plan.boundStep = parts->program.getBoundNs();
  }
  return ExitCode::Done;
}

/// When micro-batches leave the last stage: the first of them, and how far one
/// is behind the other on the average of the step.
void Compiler::predictFlow() {
  const rt::Role &last = plan.roles.back();
  std::vector<rt::Nanos> left(plan.training.microBatches, 0);
  for (const rt::Record &record : simulation.records) {
    if (record.rank < last.firstRank)
      continue;
    const rt::Lane &lane = last.lanes[record.lane];
    const rt::Instr &instr = lane.instrs[record.instr];
    if (lane.kind == rt::LaneKind::Compute && instr.microBatch >= 0)
      left[instr.microBatch] = std::max(left[instr.microBatch], record.end);
  }
  plan.predictedLatency = left.front();
  plan.predictedPeriod = left.size() > 1 ? (left.back() - left.front()) /
                                               rt::Nanos(left.size() - 1)
                                         : left.front();
}

/// No plan leaves the compiler unproven; one that fails is the compiler's
/// fault.
ExitCode Compiler::prove() {
  rt::Proof proof = rt::certify(plan);
  if (!proof.holds())
    return fail("the lowered plan fails its proof: " + rt::proofText(proof),
                ExitCode::Internal);
  for (const rt::ProofFailure &warning : proof.warnings)
    err << "taktc: warning: " << warning.text << '\n';
  return ExitCode::Done;
}

/// Poses the problem of stage assignment once more, from the IR it was solved
/// in, so that the neighbours of its answer can be valued.
bool Compiler::poseStages(StagedProblem &staged, Partition &partition,
                          bool &isGraph) const {
  std::string error;
  auto parts = pipe::findProgram(*module, error);
  if (!parts)
    return false;
  pipe::StagedModel posed = pipe::exportModel(*parts);
  std::optional<PartitionCluster> devices =
      pipe::exportPartitionCluster(parts->cluster, error);
  if (!posed.costs || !devices)
    return false;
  staged.training = model::exportTraining(parts->graph);
  staged.constraints = pipe::exportConstraints(*module);
  PartitionProblem problem = partitionProblem(
      posed.graph, posed.segments, staged.training, *posed.costs, *devices);
  if (auto kept = sideConstraints(posed.graph, posed.segments,
                                  staged.constraints, error))
    if (auto constrained = constrain(problem, *kept))
      problem = std::move(*constrained);
  if (schedule == "gpipe" ||
      (scheduleFile && std::string(memoryPolicy(*scheduleFile)) == "gpipe"))
    problem.inFlight = InFlightPolicy::GPipe;
  pipe::exportPlacement(parts->program, problem);
  partition = pipe::exportPartition(parts->program, problem.replicaOptions);
  partition.bound = plan.boundStep;
  isGraph = !posed.order.empty();
  staged.graph = std::move(posed.graph);
  staged.costs = std::move(*posed.costs);
  staged.problem = std::move(problem);
  return true;
}

void Compiler::explainStages() const {
  if (explainMixed())
    return;
  StagedProblem staged;
  Partition partition;
  bool isGraph = false;
  if (poseStages(staged, partition, isGraph))
    err << explainPartition(staged.problem, partition,
                            isGraph ? &staged : nullptr);
}

nlohmann::ordered_json Compiler::stagesJson() const {
  StagedProblem staged;
  Partition partition;
  bool isGraph = false;
  if (!poseStages(staged, partition, isGraph))
    return nullptr;
  return partitionJson(staged.problem, partition, isGraph ? &staged : nullptr);
}

/// Chooses the buckets once more, from the IR they were chosen in.
std::optional<OverlapChoice> Compiler::chooseAgain() const {
  if (!options.overlap || !beforeOverlap)
    return std::nullopt;
  OverlapOptions overlap;
  overlap.bucketBytes = options.bucketSize;
  overlap.lanes = int32_t(options.reduceLanes);
  overlap.limits.workLimit = options.searchWork;
  LoweringProblem problem = *beforeOverlap;
  return chooseOverlap(problem, overlap);
}

ExitCode Compiler::run() {
  DiagnosticBridge bridge(&context, diags);
  ExitCode code = ExitCode::Done;
  auto step = [&](ExitCode (Compiler::*next)()) {
    if (code == ExitCode::Done && !written)
      code = (this->*next)();
  };
  step(&Compiler::readInputs);
  step(&Compiler::import);
  step(&Compiler::resolveCutNames);
  step(&Compiler::runPasses);
  step(&Compiler::lowerToPlan);
  step(&Compiler::prove);
  step(&Compiler::predict);
  interrupted = search::interrupted();
  if (watch)
    watch->endProgress();
  diags.print(err);
  if (interrupted)
    reportInterrupt();
  if (code != ExitCode::Done || written)
    return code;
  if (options.explainStages && !options.json)
    explainStages();
  if (options.explainComm && !options.json)
    err << explainOverlap(plan, simulation, chooseAgain());
  code = emitPlan();
  if (code == ExitCode::Done)
    report();
  return code;
}

int takt::compile(const CompileOptions &options) {
  try {
    Watch watch(options.progress);
    CompileOptions settled = options;
    if (options.schedule == "auto")
      if (ExitCode code = chooseSchedule(settled, std::cerr);
          code != ExitCode::Done)
        return int(code);
    return int(Compiler(settled, std::cerr, &watch).run());
  } catch (const rt::Error &error) {
    std::cerr << "taktc: error: " << error.what() << '\n';
    return int(error.code());
  } catch (const std::exception &error) {
    std::cerr << "taktc: internal error: " << error.what() << '\n';
    return int(ExitCode::Internal);
  }
}

CompileOutcome takt::compileForReport(const CompileOptions &options) {
  CompileOptions quiet = options;
  quiet.output.clear();
  quiet.emit = EmitKind::Plan;
  quiet.quiet = true;
  quiet.json = false;
  CompileOutcome outcome;
  std::ostringstream messages;
  try {
    ExitCode code = options.schedule == "auto" ? chooseSchedule(quiet, messages)
                                               : ExitCode::Done;
    Compiler compiler(quiet, messages);
    outcome.code = int(code == ExitCode::Done ? compiler.run() : code);
    if (outcome.code == int(ExitCode::Done))
      outcome.report = compiler.reportJson();
  } catch (const rt::Error &error) {
    messages << "taktc: error: " << error.what() << '\n';
    outcome.code = int(error.code());
  } catch (const std::exception &error) {
    messages << "taktc: internal error: " << error.what() << '\n';
    outcome.code = int(ExitCode::Internal);
  }
  outcome.messages = messages.str();
  return outcome;
}
