//===- AssignMixed.cpp - takt-assign-stages on unequal devices ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads pools and the costs of each kind, asks the library and writes the
// answer with the cluster's device numbers.
//
//===----------------------------------------------------------------------===//
#include "AssignMixed.h"

#include "Model/ModelBridge.h"
#include "Pipe/PipeBridge.h"
#include "Pipe/PipePools.h"
#include "takt/Cost/MixedStages.h"
#include "takt/Support/Quantity.h"

using namespace takt;
using mlir::failed;
using mlir::failure;
using mlir::success;

namespace {

class Assignment {
public:
  Assignment(mlir::ModuleOp module, model::GraphOp graph,
             pipe::ClusterOp cluster, const MixedOptions &options)
      : module(module), graph(graph), cluster(cluster), options(options),
        pools(pipe::exportPools(cluster)) {}

  llvm::LogicalResult run();

private:
  llvm::LogicalResult readRequest(MixedRequest &request);
  llvm::LogicalResult report(const MixedStages &found);
  void write(const MixedStages &found, const MixedRequest &request);

  mlir::ModuleOp module;
  model::GraphOp graph;
  pipe::ClusterOp cluster;
  const MixedOptions &options;
  const pipe::ClusterPools pools;
};

llvm::LogicalResult Assignment::readRequest(MixedRequest &request) {
  if (pools.pools.size() > size_t(kMaxPools))
    return cluster.emitError()
           << "has " << pools.pools.size() << " kinds of unlike nodes, at most "
           << kMaxPools << " can be planned";
  if (!options.chain.rankOfStage.empty())
    return cluster.emitError()
           << "a schedule with several stages a rank needs equal nodes of one "
              "kind of device";
  request.options = options.chain;
  request.options.cluster.network = pools.network;
  request.pools = pools.pools;
  request.objective = options.objective;
  request.maxTime = options.maxTime;
  request.maxPrice = options.maxPrice;
  if (options.objective == StageObjective::Price || options.maxPrice >= 0)
    for (const DevicePool &pool : pools.pools)
      if (pool.price == 0)
        return mlir::emitError(pipe::locationOfKind(cluster, pool.kind))
               << "device '" << pool.kind
               << "' has no 'price_per_hour', by which stages are to be chosen";
  for (const std::string &kind : pipe::usedKinds(cluster)) {
    std::optional<CostTable> costs = model::exportCosts(graph, kind);
    if (!costs)
      return graph.emitError()
             << "the layers have no costs on devices of kind '" << kind
             << "'; run takt-annotate-costs first";
    request.costs.push_back({kind, std::move(*costs)});
  }
  return success();
}

llvm::LogicalResult Assignment::report(const MixedStages &found) {
  const MixedInfeasible &infeasible = found.result.infeasible;
  const std::vector<ConstraintSpec> specs = pipe::exportConstraints(module);
  std::vector<mlir::Location> lines;
  for (pipe::ConstraintOp op : module.getOps<pipe::ConstraintOp>())
    lines.push_back(op.getLoc());
  const std::string reason =
      found.clash ? "no assignment to these devices keeps all side constraints"
                  : infeasible.reason;
  module->setAttr(found.result.outOfWork ? pipe::kLimitReachedAttr
                                         : pipe::kInfeasibleAttr,
                  mlir::StringAttr::get(module.getContext(), reason));
  mlir::Location place = graph.getLoc();
  if (!found.clash && infeasible.segment >= 0) {
    int32_t layer = found.segments[infeasible.segment].begin;
    if (!found.staged.order.empty())
      layer = found.staged.order[layer];
    place = model::layerLocations(graph)[layer];
  }
  mlir::InFlightDiagnostic diag = mlir::emitError(place);
  diag << (found.result.outOfWork ? "no stages found: " : "no stages fit: ")
       << reason;
  if (found.clash) {
    for (mlir::Location line : lines)
      diag.attachNote(line) << "a constraint to keep";
    if (found.relief >= 0)
      diag.attachNote(lines[found.relief])
          << "cheapest way out: remove this one; a step then takes "
          << formatTime(found.reliefTime);
    else
      diag.attachNote() << "no single one of these is enough to give up";
    return diag;
  }
  for (const std::string &kind : pipe::usedKinds(cluster)) {
    if (infeasible.byLimit)
      break;
    mlir::Diagnostic &note =
        diag.attachNote(pipe::locationOfKind(cluster, kind));
    note << "'" << kind << "' has "
         << formatBytes(cluster.lookupDevice(kind).getMemory()) << " a device";
  }
  for (size_t w = 0; w < infeasible.waysOut.size(); ++w) {
    const MixedWay &way = infeasible.waysOut[w];
    diag.attachNote(way.pool >= 0 ? pipe::locationOfKind(
                                        cluster, pools.pools[way.pool].kind)
                                  : graph.getLoc())
        << (w == 0 ? "a way out: " : "or: ") << way.text;
  }
  return diag;
}

void Assignment::write(const MixedStages &found, const MixedRequest &request) {
  const MixedPartition &partition = *found.result.partition;
  const Graph &layers = found.staged.graph;
  mlir::SymbolTable symbols(module);
  mlir::OpBuilder builder(module.getContext());
  auto program = pipe::ProgramOp::create(
      builder, graph.getLoc(), "job", graph.getSymName(), cluster.getSymName(),
      options.schedulePolicy, partition.time, partition.bound,
      partition.method);
  symbols.insert(program, module.getBody()->end());
  if (!found.staged.order.empty())
    program->setAttr(pipe::kOrderAttr,
                     builder.getDenseI32ArrayAttr(found.staged.order));
  builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
  int32_t number = 0;
  for (const MixedStage &stage : partition.stages) {
    const int32_t begin = found.segments[stage.begin].begin;
    const int32_t end = found.segments[stage.end - 1].end;
    const CostTable *costs = nullptr;
    for (const KindCosts &kind : request.costs)
      if (kind.device == pools.pools[stage.pool].kind)
        costs = &kind.table;
    Nanos forward = 0, backward = 0;
    for (int32_t l = begin; l < end; ++l) {
      const int32_t layer =
          found.staged.order.empty() ? l : found.staged.order[l];
      const LayerTimes &times = costs->layers[layer];
      forward += times.forward[stage.option];
      backward +=
          times.inputGrad[stage.option] + times.weightGrad[stage.option];
    }
    const int64_t count = found.problem.chain.replicaOptions[stage.option];
    const std::vector<int32_t> &own = pools.devices[stage.pool];
    const std::vector<int32_t> devices(own.begin() + stage.firstDevice,
                                       own.begin() + stage.firstDevice + count);
    pipe::StageOp::create(builder, graph.getLoc(), number++, begin, end,
                          layers.layers[begin].name,
                          layers.layers[end - 1].name, stage.begin, stage.end,
                          count, devices, forward, backward, stage.transfer,
                          stage.allReduce, stage.memory, stage.inFlight);
  }
}

llvm::LogicalResult Assignment::run() {
  MixedRequest request;
  if (failed(readRequest(request)))
    return failure();
  std::string error;
  const MixedStages found = solveMixedStages(
      model::exportGraph(graph), model::exportTraining(graph), request,
      options.asGraph, pipe::exportConstraints(module), options.workLimit,
      error);
  if (!error.empty())
    return graph.emitError() << error;
  if (!found.result.partition)
    return report(found);
  if (std::optional<std::string> fault =
          verify(found.problem, *found.result.partition))
    return graph.emitError()
           << "the assignment found fails its check: " << *fault;
  write(found, request);
  return success();
}

} // namespace

llvm::LogicalResult takt::assignMixed(mlir::ModuleOp module,
                                      model::GraphOp graph,
                                      pipe::ClusterOp cluster,
                                      const MixedOptions &options) {
  return Assignment(module, graph, cluster, options).run();
}
