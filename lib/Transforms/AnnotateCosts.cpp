//===- AnnotateCosts.cpp - takt-annotate-costs ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Gives every layer the times of its phases, from a roofline of the cluster's
// devices or from a profile. The first pass: all later ones weigh layers by
// what it writes. The figures themselves come from lib/Cost.
//
//===----------------------------------------------------------------------===//
#include "Model/ModelBridge.h"
#include "Pipe/PipeBridge.h"
#include "takt/Cost/Cost.h"
#include "takt/Frontend/Read.h"
#include "takt/Transforms/Passes.h"

using namespace mlir;
using namespace takt;

namespace takt {
#define GEN_PASS_DEF_ANNOTATECOSTSPASS
#include "takt/Transforms/Passes.h.inc"
} // namespace takt

namespace {

/// The only op of a kind in the module, or null after an error.
template <typename OpTy>
OpTy findOne(ModuleOp module) {
  auto ops = llvm::to_vector(module.getOps<OpTy>());
  if (ops.size() == 1)
    return ops.front();
  InFlightDiagnostic diag = module.emitError()
                            << "needs one '" << OpTy::getOperationName()
                            << "', found " << ops.size();
  for (OpTy op : ops)
    diag.attachNote(op.getLoc()) << "found here";
  return {};
}

/// Costs of each kind of device that nodes have, all by the roofline.
std::vector<KindCosts> costsByKind(const Graph &model,
                                   const rt::Training &training,
                                   const ClusterSpec &cluster,
                                   const std::vector<int64_t> &options) {
  std::vector<KindCosts> kinds;
  for (const DeviceKindSpec &device : cluster.devices)
    if (llvm::any_of(cluster.nodes, [&](const NodeGroupSpec &nodes) {
          return nodes.device == device.name;
        }))
      kinds.push_back(
          {device.name, rooflineCosts(model, training, device, options)});
  return kinds;
}

/// Reads a profile; faults come at their place in the file.
std::optional<ProfileSpec> loadProfile(ModuleOp module,
                                       const std::string &file) {
  Diagnostics diags;
  std::optional<ProfileSpec> profile = readProfile(file, diags);
  for (const takt::Diagnostic &fault : diags.all()) {
    Location loc = module.getLoc();
    if (!fault.loc.file.empty())
      loc = FileLineColLoc::get(module.getContext(), fault.loc.file,
                                fault.loc.line, fault.loc.column);
    if (fault.severity == Severity::Error)
      emitError(loc) << fault.message;
    else
      emitWarning(loc) << fault.message;
  }
  return profile;
}

/// Reports the layers of the model that the profile does not know.
LogicalResult reportMissing(model::GraphOp graph, const Graph &model,
                            const std::string &file,
                            const std::vector<std::string> &missing) {
  if (missing.empty())
    return success();
  constexpr size_t kMaxNotes = 10;
  std::vector<Location> places = layerLocations(graph);
  InFlightDiagnostic diag = graph.emitError()
                            << "the profile '" << file << "' lacks "
                            << missing.size() << " of the " << places.size()
                            << " layers";
  size_t notes = 0;
  for (size_t i = 0; i < places.size() && notes < kMaxNotes; ++i)
    if (llvm::is_contained(missing, model.layers[i].name)) {
      diag.attachNote(places[i])
          << "no times of '" << model.layers[i].name << "'";
      ++notes;
    }
  return failure();
}

struct AnnotateCosts : takt::impl::AnnotateCostsPassBase<AnnotateCosts> {
  using AnnotateCostsPassBase::AnnotateCostsPassBase;

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }

  LogicalResult run() {
    auto graph = findOne<model::GraphOp>(getOperation());
    auto clusterOp = findOne<pipe::ClusterOp>(getOperation());
    if (!graph || !clusterOp)
      return failure();
    ClusterSpec cluster = exportCluster(clusterOp);
    Graph model = exportGraph(graph);
    rt::Training training = exportTraining(graph);
    std::vector<int64_t> options =
        replicaOptions(training.microBatchSize(), cluster.numDevices());
    std::vector<KindCosts> kinds =
        costsByKind(model, training, cluster, options);
    if (!profile.empty()) {
      if (kinds.size() > 1)
        return clusterOp.emitError()
               << "the profile '" << profile
               << "' is of one kind of device, the cluster has '"
               << kinds[0].device << "' and '" << kinds[1].device << "'";
      std::optional<ProfileSpec> measured =
          loadProfile(getOperation(), profile);
      if (!measured)
        return failure();
      std::vector<std::string> missing;
      kinds[0].table =
          profileCosts(model, training, *measured, options, missing);
      if (failed(reportMissing(graph, model, profile, missing)))
        return failure();
    }
    if (kinds.size() == 1)
      kinds[0].device.clear(); // nothing to tell apart
    annotateCosts(graph, kinds);
    numLayers += kinds[0].table.layers.size();
    return success();
  }
};

} // namespace
