//===- AssignStages.cpp - takt-assign-stages ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Turns a costed graph and a cluster into a `pipe.program` with stages. It runs
// after the costs are known and before the schedule, which needs the number of
// stages. The work is done by takt/Partition; this reads the problem and writes
// the answer.
//
//===----------------------------------------------------------------------===//
#include "takt/Transforms/Passes.h"

#include "AssignMixed.h"
#include "ByPublishedModel.h"
#include "SolverFailure.h"

#include "Model/ModelBridge.h"
#include "Pipe/PipeBridge.h"
#include "takt/Cost/GraphStages.h"
#include "takt/Partition/Constraints.h"
#include "takt/Support/Quantity.h"

#include <limits>
#include <numeric>

namespace takt {
#define GEN_PASS_DEF_ASSIGNSTAGESPASS
#include "takt/Transforms/Passes.h.inc"
} // namespace takt

using namespace takt;
using mlir::failed;
using mlir::failure;
using mlir::FailureOr;
using mlir::ModuleOp;
using mlir::success;

namespace {

/// The one op of a kind in the module, or an error.
template <typename OpTy>
FailureOr<OpTy> findOnly(ModuleOp module) {
  auto ops = module.getOps<OpTy>();
  if (!ops.empty() && std::next(ops.begin()) == ops.end())
    return *ops.begin();
  return module.emitError()
         << "needs exactly one '" << OpTy::getOperationName() << "', has "
         << std::distance(ops.begin(), ops.end());
}

struct AssignStages : impl::AssignStagesPassBase<AssignStages> {
  using AssignStagesPassBase::AssignStagesPassBase;

  void runOnOperation() override {
    if (failed(assign()))
      signalPassFailure();
  }

  llvm::LogicalResult assign();
  llvm::LogicalResult readOptions(model::GraphOp graph,
                                  PartitionProblem &problem);
  llvm::LogicalResult reportNone(model::GraphOp graph, pipe::ClusterOp cluster,
                                 const std::vector<Segment> &segments,
                                 const PartitionResult &result);
  llvm::LogicalResult
  reportClash(const std::vector<SideConstraint> &constraints,
              const ClashReport &clash);
  llvm::LogicalResult assignGraph(model::GraphOp graph, pipe::ClusterOp cluster,
                                  const Graph &layers, const CostTable &costs,
                                  const PartitionCluster &devices,
                                  std::optional<ByPublishedModel> &published);
  llvm::LogicalResult reportPins(const GraphStages &found);
  solver::Settings solverSettings() const {
    solver::Settings settings;
    settings.workLimit = searchWork;
    settings.dumpFolder = dumpSmt2;
    settings.name = "stages";
    return settings;
  }
  llvm::LogicalResult assignUnequal(model::GraphOp graph,
                                    pipe::ClusterOp cluster,
                                    const Graph &layers, const CostTable &costs,
                                    bool asGraph);
  pipe::ProgramOp write(model::GraphOp graph, pipe::ClusterOp cluster,
                        const Graph &layers,
                        const std::vector<Segment> &segments,
                        const CostTable &costs, const PartitionProblem &problem,
                        const Partition &partition);

  std::optional<Nanos> modelledStep; ///< by a published formula
};

} // namespace

llvm::LogicalResult AssignStages::readOptions(model::GraphOp graph,
                                              PartitionProblem &problem) {
  if (problem.continuous) {
    if (schedulePolicy != "forward")
      return graph.emitError()
             << "the mode 'inference' has the schedule 'forward', not '"
             << schedulePolicy << "'";
    if (!ranks.empty())
      return graph.emitError()
             << "in the mode 'inference' every stage has a rank of its own";
  } else if (schedulePolicy == "1f1b")
    problem.inFlight = InFlightPolicy::OneFOneB;
  else if (schedulePolicy == "gpipe")
    problem.inFlight = InFlightPolicy::GPipe;
  else
    return graph.emitError() << "unknown schedule policy '" << schedulePolicy
                             << "'; known are '1f1b' and 'gpipe'";
  if (workLimit < 1)
    return graph.emitError()
           << "work-limit must be positive, got " << workLimit.getValue();
  problem.stages = stages;
  problem.maxStages = maxStages;
  if (replicas != 0)
    problem.replicas = replicas;
  if (!cuts.empty())
    problem.cuts = std::vector<int64_t>(cuts.begin(), cuts.end());
  problem.rankOfStage.assign(ranks.begin(), ranks.end());
  problem.heldByStage.assign(held.begin(), held.end());
  if (std::optional<std::string> fault = problem.check())
    return graph.emitError() << *fault;
  return success();
}

/// At the layer that does not fit, if one does not, and with the memory it
/// would take at that of the devices.
llvm::LogicalResult
AssignStages::reportNone(model::GraphOp graph, pipe::ClusterOp cluster,
                         const std::vector<Segment> &segments,
                         const PartitionResult &result) {
  // Neither is bad input: callers tell the three apart by these attributes.
  const Infeasible &infeasible = result.infeasible;
  getOperation()->setAttr(
      result.outOfWork ? pipe::kLimitReachedAttr : pipe::kInfeasibleAttr,
      mlir::StringAttr::get(&getContext(), infeasible.reason));
  mlir::Location place = graph.getLoc();
  if (infeasible.segment >= 0)
    place = model::layerLocations(graph)[segments[infeasible.segment].begin];
  mlir::InFlightDiagnostic diag = mlir::emitError(place);
  diag << (result.outOfWork ? "no stages found: " : "no stages fit: ")
       << infeasible.reason;
  for (size_t w = 0; w < infeasible.waysOut.size(); ++w)
    diag.attachNote(int32_t(w) == infeasible.memoryWay ? cluster.getLoc()
                                                       : graph.getLoc())
        << infeasible.waysOut[w];
  return diag;
}

/// Each clash at the lines it is made of, then the way out at the line to
/// change.
llvm::LogicalResult
AssignStages::reportClash(const std::vector<SideConstraint> &constraints,
                          const ClashReport &clash) {
  std::vector<mlir::Location> places;
  for (pipe::ConstraintOp op : getOperation().getOps<pipe::ConstraintOp>())
    places.push_back(op.getLoc());
  std::string facts;
  for (const std::string &fact : clash.facts)
    facts += (facts.empty() ? " with " : " and ") + fact;
  for (size_t c = 0; c < clash.cores.size(); ++c) {
    const std::vector<int32_t> &core = clash.cores[c];
    const std::string first = "'" + toYaml(constraints[core.front()]) + "'";
    std::string message = "no stages fit: " + first + " cannot be kept";
    if (core.size() > 1)
      message = "no stages fit: " + first + " contradicts " +
                std::to_string(core.size() - 1) + " other " +
                (core.size() == 2 ? "constraint" : "constraints");
    if (c == 0) {
      message += facts;
      getOperation()->setAttr(pipe::kInfeasibleAttr,
                              mlir::StringAttr::get(&getContext(), message));
    }
    mlir::InFlightDiagnostic diag = mlir::emitError(places[core.front()])
                                    << message;
    for (size_t i = 1; i < core.size(); ++i)
      diag.attachNote(places[core[i]])
          << "with '" << toYaml(constraints[core[i]]) << "'";
    if (c + 1 < clash.cores.size())
      continue;
    for (size_t r = 0; r < clash.reliefs.size(); ++r) {
      const Relief &relief = clash.reliefs[r];
      mlir::Diagnostic &note = diag.attachNote(places[relief.constraint]);
      note << (r != 0            ? "and "
               : clash.outOfWork ? "a way out: "
                                 : "cheapest way out: ");
      if (relief.replacement)
        note << "change it to '" << toYaml(*relief.replacement) << "'";
      else
        note << "remove '" << toYaml(constraints[relief.constraint]) << "'";
      if (r + 1 == clash.reliefs.size())
        note << "; 'assigned' is then " << formatTime(clash.objective);
    }
    if (!clash.minimal)
      diag.attachNote()
          << "the work limit ended the search for fewer lines that "
             "contradict each other: not all of these need to";
    if (clash.reliefs.empty())
      diag.attachNote() << (clash.outOfWork
                                ? "no way out was found within the work limit"
                                : "no few of these are enough to give up");
  }
  return failure();
}

llvm::LogicalResult AssignStages::assign() {
  ModuleOp module = getOperation();
  FailureOr<model::GraphOp> graph = findOnly<model::GraphOp>(module);
  FailureOr<pipe::ClusterOp> cluster = findOnly<pipe::ClusterOp>(module);
  if (failed(graph) || failed(cluster))
    return failure();
  if (!module.getOps<pipe::ProgramOp>().empty())
    return module.emitError() << "stages are assigned already";
  std::optional<CostTable> costs = model::exportCosts(*graph);
  if (!costs)
    return graph->emitError() << "the layers have no costs; run "
                                 "takt-annotate-costs first";
  std::string error;
  std::optional<PartitionCluster> devices =
      pipe::exportPartitionCluster(*cluster, error);

  Graph layers = model::exportGraph(*graph);
  std::vector<Segment> segments = chainSegments(layers);
  // More stages than a chain can have need cuts that several values cross.
  const bool few = stages > int64_t(segments.size()) && ranks.empty();
  if (assignBy != "auto" && assignBy != "chain" && assignBy != "graph")
    return graph->emitError() << "unknown way to assign stages '" << assignBy
                              << "'; known are 'auto', 'chain' and 'graph'";
  const std::optional<CostModel> costsBy = parseCostModel(costModel);
  if (!costsBy)
    return graph->emitError() << "unknown cost model '" << costModel
                              << "'; known are " << costModelNames();
  std::optional<ByPublishedModel> published;
  if (*costsBy != CostModel::Takt)
    published.emplace(*graph, *costsBy, workLimit);
  if (published && layers.mode == rt::Mode::Inference)
    return graph->emitError() << "the cost model '" << costModel
                              << "' plans training and not inference";
  const bool chainsOnly = published && !plansGraphs(*costsBy);
  if (chainsOnly && assignBy == "graph")
    return graph->emitError() << "the cost model '" << costModel
                              << "' plans chains and not graphs";
  const bool asGraph = assignBy == "graph" ||
                       (assignBy == "auto" && !chainsOnly && cuts.empty() &&
                        (few || !isChain(layers, segments)));
  if (!devices || objective != "time" || maxTime > 0 || maxPrice >= 0)
    return assignUnequal(*graph, *cluster, layers, *costs, asGraph);
  if (asGraph)
    return assignGraph(*graph, *cluster, layers, *costs, *devices, published);
  PartitionProblem problem = partitionProblem(
      layers, segments, model::exportTraining(*graph), *costs, *devices);
  if (failed(readOptions(*graph, problem)))
    return failure();
  std::optional<std::vector<SideConstraint>> constraints =
      sideConstraints(layers, segments, pipe::exportConstraints(module), error);
  if (!constraints)
    return graph->emitError() << error;
  PartitionResult result;
  if (published) {
    if (failed(published->solve(segments, *costs, problem, result)))
      return failure();
    modelledStep = published->step;
  } else {
    result = solvePartition(problem, *constraints, workLimit);
  }
  // Clashes are explained for stages with devices of their own.
  if (!result.partition && !result.outOfWork && !constraints->empty() &&
      problem.rankOfStage.empty()) {
    ClashReport clash = explainClash(problem, *constraints, solverSettings());
    if (failed(reportFailure(*graph, clash.failure)))
      return failure();
    if (!clash.cores.empty())
      return reportClash(*constraints, clash);
    result = solvePartition(problem, workLimit); // no matter of constraints
  }
  if (!result.partition)
    return reportNone(*graph, *cluster, segments, result);
  if (std::optional<std::string> fault =
          verify(problem, *constraints, *result.partition))
    return graph->emitError()
           << "the assignment found fails its check: " << *fault;
  write(*graph, *cluster, layers, segments, *costs, problem, *result.partition);
  return success();
}

/// Any number of values may cross a cut, and the layers may stand in another
/// order than the model's.
llvm::LogicalResult
AssignStages::assignGraph(model::GraphOp graph, pipe::ClusterOp cluster,
                          const Graph &layers, const CostTable &costs,
                          const PartitionCluster &devices,
                          std::optional<ByPublishedModel> &published) {
  const rt::Training training = model::exportTraining(graph);
  PartitionProblem problem =
      partitionProblem(layers, layerSegments(layers), training, costs, devices);
  if (failed(readOptions(graph, problem)))
    return failure();
  GraphStages found;
  if (published) {
    if (failed(published->solveGraph(layers, training, costs, problem, found)))
      return failure();
    modelledStep = published->step;
  } else {
    std::string error;
    found = solveGraphStages(layers, training, costs, problem,
                             pipe::exportConstraints(getOperation()), workLimit,
                             solverSettings(), error);
    if (!error.empty())
      return graph.emitError() << error;
    if (failed(reportFailure(graph, found.failure)) ||
        failed(reportFailure(graph, found.clash.failure)))
      return failure();
    if (!found.clash.cores.empty())
      if (const auto named =
              sideConstraints(layers, layerSegments(layers),
                              pipe::exportConstraints(getOperation()), error))
        return reportClash(*named, found.clash);
  }
  if (!found.contradiction.empty())
    return reportPins(found);
  if (!found.result.partition) {
    PartitionResult result = found.result; // its segments are in its own order
    if (int32_t &segment = result.infeasible.segment; segment >= 0)
      segment = found.staged.order[segment];
    return reportNone(graph, cluster, layerSegments(layers), result);
  }
  if (std::optional<std::string> fault =
          verify(found.problem, found.constraints, *found.result.partition))
    return graph.emitError()
           << "the assignment found fails its check: " << *fault;
  const StagedGraph &staged = found.staged;
  pipe::ProgramOp program =
      write(graph, cluster, staged.graph, layerSegments(staged.graph),
            staged.costs, found.problem, *found.result.partition);
  program->setAttr(pipe::kOrderAttr,
                   mlir::DenseI32ArrayAttr::get(&getContext(), staged.order));
  return success();
}

/// On pools of devices, each with times, memory and price of its own.
llvm::LogicalResult AssignStages::assignUnequal(model::GraphOp graph,
                                                pipe::ClusterOp cluster,
                                                const Graph &layers,
                                                const CostTable &costs,
                                                bool asGraph) {
  if (costModel != costModelName(CostModel::Takt))
    return graph.emitError() << "the cost model '" << costModel
                             << "' knows neither unequal devices nor prices";
  if (objective != "time" && objective != "price")
    return graph.emitError() << "unknown objective '" << objective
                             << "'; known are 'time' and 'price'";
  if (layers.mode == rt::Mode::Inference)
    return graph.emitError() << "the mode 'inference' plans for equal devices, "
                                "and knows no prices yet";
  PartitionCluster all;
  all.devices = cluster.getNumDevices();
  MixedOptions options;
  options.chain = partitionProblem(
      layers, asGraph ? layerSegments(layers) : chainSegments(layers),
      model::exportTraining(graph), costs, all);
  if (failed(readOptions(graph, options.chain)))
    return failure();
  if (objective == "price")
    options.objective = StageObjective::Price;
  options.maxTime = maxTime;
  options.maxPrice = maxPrice;
  options.asGraph = asGraph;
  // A label takes as long as some transitions of the program of equal devices.
  options.workLimit = std::max<int64_t>(1, workLimit / 16);
  options.schedulePolicy = schedulePolicy;
  return assignMixed(getOperation(), graph, cluster, options);
}

/// Two pins against the order of the layers that they name.
llvm::LogicalResult AssignStages::reportPins(const GraphStages &found) {
  std::vector<pipe::ConstraintOp> pins;
  for (pipe::ConstraintOp op : getOperation().getOps<pipe::ConstraintOp>())
    pins.push_back(op);
  auto yaml = [&](int32_t index) {
    SideConstraint pin;
    pin.kind = ConstraintKind::Pin;
    for (auto name : pins[index].getLayers().getAsRange<mlir::StringAttr>())
      pin.names.push_back(name.str());
    pin.number = pins[index].getNumber();
    return toYaml(pin);
  };
  const int32_t early = found.contradiction[0], late = found.contradiction[1];
  const std::string message =
      "no stages fit: '" + yaml(early) + "' contradicts '" + yaml(late) + "'";
  getOperation()->setAttr(pipe::kInfeasibleAttr,
                          mlir::StringAttr::get(&getContext(), message));
  mlir::InFlightDiagnostic diag = mlir::emitError(pins[early].getLoc())
                                  << message;
  diag.attachNote(pins[late].getLoc())
      << "what is pinned here is read, perhaps through other layers, by what "
         "is "
         "to lie in an earlier stage";
  return diag;
}

pipe::ProgramOp
AssignStages::write(model::GraphOp graph, pipe::ClusterOp cluster,
                    const Graph &layers, const std::vector<Segment> &segments,
                    const CostTable &costs, const PartitionProblem &problem,
                    const Partition &partition) {
  // Symbols share the module's scope: take a name that is free.
  mlir::SymbolTable symbols(getOperation());
  mlir::OpBuilder builder(&getContext());
  auto program = pipe::ProgramOp::create(
      builder, graph.getLoc(), "job", graph.getSymName(), cluster.getSymName(),
      schedulePolicy, partition.objective, partition.bound, partition.method);
  symbols.insert(program, getOperation().getBody()->end());
  if (modelledStep)
    program->setAttr(
        pipe::kCostModelAttr,
        builder.getDictionaryAttr(
            {builder.getNamedAttr("name", builder.getStringAttr(costModel)),
             builder.getNamedAttr("step_ns",
                                  builder.getI64IntegerAttr(*modelledStep))}));

  builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
  int32_t number = 0;
  for (const StageChoice &choice : partition.stages) {
    int32_t begin = segments[choice.begin].begin;
    int32_t end = segments[choice.end - 1].end;
    Nanos forward = 0, backward = 0;
    for (int32_t l = begin; l < end; ++l) {
      const LayerTimes &times = costs.layers[l];
      forward += times.forward[choice.option];
      backward +=
          times.inputGrad[choice.option] + times.weightGrad[choice.option];
    }
    int32_t count = problem.replicaOptions[choice.option];
    std::vector<int32_t> devices(count);
    std::iota(devices.begin(), devices.end(), choice.firstDevice);
    pipe::StageOp::create(builder, graph.getLoc(), number++, begin, end,
                          layers.layers[begin].name,
                          layers.layers[end - 1].name, choice.begin, choice.end,
                          count, devices, forward, backward, choice.transfer,
                          choice.allReduce, choice.memory, choice.inFlight);
  }
  return program;
}
