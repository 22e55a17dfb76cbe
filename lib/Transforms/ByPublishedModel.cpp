//===- ByPublishedModel.cpp - stages that a formula chooses ---------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "ByPublishedModel.h"

#include "Pipe/PipeBridge.h"

using namespace takt;
using mlir::failed;
using mlir::failure;
using mlir::success;

llvm::LogicalResult ByPublishedModel::refuseConstraints() {
  auto module = graph->getParentOfType<mlir::ModuleOp>();
  if (module.getOps<pipe::ConstraintOp>().empty())
    return success();
  return graph.emitError() << "the cost model '" << costModelName(model)
                           << "' does not know side constraints";
}

llvm::LogicalResult ByPublishedModel::report(const ModelFault &fault) {
  if (!fault.infeasible)
    return graph.emitError() << fault.text;
  graph->getParentOfType<mlir::ModuleOp>()->setAttr(
      pipe::kInfeasibleAttr,
      mlir::StringAttr::get(graph.getContext(), fault.text));
  return graph.emitError() << "no stages fit " << fault.text;
}

/// What was chosen has to fit as any other stages.
llvm::LogicalResult ByPublishedModel::checkFits(const PartitionProblem &problem,
                                                const Partition &partition) {
  const std::optional<std::string> fault = verify(problem, partition);
  if (!fault)
    return success();
  graph->getParentOfType<mlir::ModuleOp>()->setAttr(
      pipe::kInfeasibleAttr, mlir::StringAttr::get(graph.getContext(), *fault));
  mlir::InFlightDiagnostic diag = graph.emitError();
  diag << "the stages of the cost model '" << costModelName(model)
       << "' do not fit: " << *fault;
  diag.attachNote() << "it does not know what a device keeps; '--cost-model="
                       "takt' does";
  return diag;
}

llvm::LogicalResult
ByPublishedModel::solve(const std::vector<Segment> &segments,
                        const CostTable &costs, const PartitionProblem &problem,
                        PartitionResult &result) {
  if (failed(refuseConstraints()))
    return failure();
  std::vector<Nanos> forward;
  for (const Segment &segment : segments) {
    forward.push_back(0);
    for (int32_t l = segment.begin; l < segment.end; ++l)
      forward.back() += costs.layers[l].forward.front();
  }
  ModelFault fault;
  std::optional<ModelledStages> found =
      stagesByModel(problem, model, forward, fault);
  if (!found)
    return report(fault);
  result = solvePartition(problem, workLimit);
  if (!result.partition)
    return success();
  Partition partition;
  partition.stages = std::move(found->stages);
  partition.bound = result.partition->bound;
  partition.method = std::string("cost model ") + costModelName(model);
  evaluate(problem, partition);
  if (failed(checkFits(problem, partition)))
    return failure();
  result.partition = std::move(partition);
  step = found->step;
  return success();
}

llvm::LogicalResult ByPublishedModel::solveGraph(
    const Graph &layers, const rt::Training &training, const CostTable &costs,
    const PartitionProblem &problem, GraphStages &found) {
  if (failed(refuseConstraints()))
    return failure();
  ModelFault fault;
  auto modelled = graphStagesByModel(layers, training, costs, problem, model,
                                     workLimit, fault);
  if (!modelled)
    return report(fault);
  found = std::move(modelled->found);
  if (!found.result.partition)
    return success();
  if (failed(checkFits(found.problem, *found.result.partition)))
    return failure();
  step = modelled->step;
  return success();
}
