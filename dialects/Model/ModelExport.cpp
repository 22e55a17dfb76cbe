//===- ModelExport.cpp - IR to plain structs ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Unrolls repeats into the flat graph, and reads training settings and costs
// back.
//
//===----------------------------------------------------------------------===//
#include "Model/ModelBridge.h"

#include <map>

using namespace mlir;
using namespace takt;
using namespace takt::model;

// The enumerations of both sides convert by value.
static_assert(int(InitKind::Uniform) == int(rt::InitKind::Uniform) &&
              int(Optimizer::AdamW) == int(rt::OptimizerKind::AdamW) &&
              int(LrSchedule::Cosine) == int(rt::LrSchedule::Cosine) &&
              int(DataSource::Synthetic) == int(DataKind::Synthetic) &&
              int(Gate::GeluTanh) == int(GateKind::GeluTanh));

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

std::string model::nameOfRepetition(StringRef name, int64_t index) {
  size_t star = name.find('*');
  if (star == StringRef::npos)
    return name.str();
  return (name.take_front(star) + Twine(index) + name.drop_front(star + 1))
      .str();
}

takt::TensorType model::describeType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return {tensor.getShape().vec(), tensor.getElementType().isInteger(32)
                                       ? DType::Int32
                                       : DType::Float32};
}

rt::Param model::describeParam(ParamOp param) {
  rt::Param result;
  result.name = param.getSymName().str();
  result.shape = describeType(param.getType()).shape;
  result.init = rt::InitKind(param.getInit().getKind());
  result.initScale = param.getInit().getScale().value;
  result.trainable = !param.getFrozen();
  return result;
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

namespace {

/// Calls a visitor for each layer in execution order, repeats unrolled.
/// `index` is the repetition, 0 outside repeats.
template <typename OnLayer, typename OnRepetition, typename AfterRepeat>
void visitLayers(GraphOp graph, OnLayer onLayer, OnRepetition onRepetition,
                 AfterRepeat afterRepeat) {
  for (Operation &op : graph.getBody().front()) {
    if (auto layer = dyn_cast<LayerOpInterface>(op))
      onLayer(layer, 0);
    auto repeat = dyn_cast<RepeatOp>(op);
    if (!repeat)
      continue;
    for (int64_t k = 0; k < int64_t(repeat.getCount()); ++k) {
      onRepetition(repeat, k);
      for (Operation &inner : repeat.getBody().front())
        if (auto layer = dyn_cast<LayerOpInterface>(inner))
          onLayer(layer, k);
    }
    afterRepeat(repeat);
  }
}

/// The layers alone.
template <typename OnLayer>
void visitLayers(GraphOp graph, OnLayer onLayer) {
  visitLayers(
      graph, onLayer, [](RepeatOp, int64_t) {}, [](RepeatOp) {});
}

class Unroller {
public:
  Graph run(GraphOp op) {
    graph.name = op.getSymName().str();
    graph.mode = rt::Mode(op.getTraining().getMode());
    for (auto [arg, attr] :
         llvm::zip(op.getBody().getArguments(), op.getInputs()))
      addInput(arg, cast<InputAttr>(attr));
    for (auto param : op.getOps<ParamOp>())
      declared.insert({param.getSymName(), param});
    visitLayers(
        op, [&](LayerOpInterface layer, int64_t k) { addLayer(layer, k); },
        [&](RepeatOp repeat, int64_t k) { enter(repeat, k); },
        [&](RepeatOp repeat) { leave(repeat); });
    return std::move(graph);
  }

private:
  void addInput(BlockArgument arg, InputAttr attr) {
    takt::TensorType type = describeType(arg.getType());
    std::string name = attr.getLabel().str();
    rt::InputInfo info;
    info.name = name;
    info.dtype = type.dtype;
    info.shape = type.shape;
    info.classes = attr.getClasses();
    ids[arg] = int32_t(graph.values.size());
    graph.values.push_back(
        {std::move(name), type, -1, int32_t(graph.inputs.size())});
    graph.inputs.push_back(std::move(info));
  }

  /// A body's argument is the graph's value that enters this repetition.
  void enter(RepeatOp repeat, int64_t k) {
    mlir::Value from =
        k == 0 ? repeat.getInput()
               : cast<YieldOp>(repeat.getBody().front().getTerminator())
                     .getValue();
    ids[repeat.getBody().getArgument(0)] = idOf(from);
  }

  void leave(RepeatOp repeat) {
    auto yield = cast<YieldOp>(repeat.getBody().front().getTerminator());
    ids[repeat.getOutput()] = idOf(yield.getValue());
  }

  void addLayer(LayerOpInterface op, int64_t k) {
    Layer layer = op.describe();
    layer.name = nameOfRepetition(op.getLayerName(), k);
    for (mlir::Value operand : op->getOperands())
      layer.inputs.push_back(idOf(operand));
    for (FlatSymbolRefAttr ref : op.getParamRefs())
      layer.params.push_back(paramIndex(ref.getValue(), k));
    layer.output = int32_t(graph.values.size());
    graph.values.push_back({layer.name,
                            describeType(op->getResult(0).getType()),
                            int32_t(graph.layers.size()), -1});
    ids[op->getResult(0)] = layer.output;
    graph.layers.push_back(std::move(layer));
  }

  /// -1 for a value that is read before it is made: the verifier runs before
  /// MLIR's own check of that.
  int32_t idOf(mlir::Value value) const {
    auto it = ids.find(value);
    return it == ids.end() ? -1 : it->second;
  }

  /// Parameters stand in the order of their first use.
  int32_t paramIndex(StringRef symbol, int64_t k) {
    std::string name = nameOfRepetition(symbol, k);
    auto [entry, isNew] = params.insert({name, int32_t(graph.params.size())});
    if (isNew) {
      graph.params.push_back(describeParam(declared.lookup(symbol)));
      graph.params.back().name = std::move(name);
    }
    return entry->second;
  }

  Graph graph;
  llvm::DenseMap<mlir::Value, int32_t> ids;
  llvm::StringMap<ParamOp> declared;
  std::map<std::string, int32_t> params;
};

} // namespace

Graph model::exportGraph(GraphOp graph) { return Unroller().run(graph); }

int64_t GraphOp::numLayers() {
  int64_t total = 0;
  for (Operation &op : getBody().front()) {
    if (isa<LayerOpInterface>(op))
      ++total;
    else if (auto repeat = dyn_cast<RepeatOp>(op))
      total += int64_t(repeat.getCount()) *
               int64_t(repeat.getBody().front().getOperations().size() - 1);
  }
  return total;
}

std::vector<Location> model::layerLocations(GraphOp graph) {
  std::vector<Location> locations;
  visitLayers(graph, [&](LayerOpInterface layer, int64_t) {
    locations.push_back(layer.getLoc());
  });
  return locations;
}

//===----------------------------------------------------------------------===//
// Settings and costs
//===----------------------------------------------------------------------===//

rt::Training model::exportTraining(GraphOp graph) {
  TrainingAttr attr = graph.getTraining();
  rt::Training result;
  result.globalBatch = attr.getGlobalBatch();
  result.microBatches = attr.getMicroBatches();
  result.seed = attr.getSeed();
  result.optimizer = rt::OptimizerKind(attr.getOptimizer());
  result.learningRate = attr.getLearningRate().value;
  result.momentum = attr.getMomentum().value;
  result.beta1 = attr.getBeta1().value;
  result.beta2 = attr.getBeta2().value;
  result.epsilon = attr.getEpsilon().value;
  result.weightDecay = attr.getWeightDecay().value;
  result.schedule = rt::LrSchedule(attr.getSchedule());
  result.warmupSteps = attr.getWarmupSteps();
  result.totalSteps = attr.getTotalSteps();
  result.minLearningRate = attr.getMinLearningRate().value;
  result.mode = rt::Mode(attr.getMode());
  return result;
}

DataKind model::exportData(GraphOp graph) { return DataKind(graph.getData()); }

/// The costs of one kind: all where none is named.
static ArrayRef<Attribute> costsOf(ArrayAttr costs, StringRef device) {
  ArrayRef<Attribute> all = costs.getValue();
  auto kindOf = [](Attribute cost) { return cast<CostAttr>(cost).getDevice(); };
  StringAttr first = kindOf(all.front());
  auto isMeant = [&](Attribute cost) {
    StringAttr kind = kindOf(cost);
    return !kind || (device.empty() ? kind == first : kind == device);
  };
  return all.drop_while([&](Attribute cost) { return !isMeant(cost); })
      .take_while(isMeant);
}

std::optional<CostTable> model::exportCosts(GraphOp graph, StringRef device) {
  CostTable table;
  if (StringAttr source = graph.getCostSourceAttr())
    table.source = source.str();
  if (DenseI64ArrayAttr options = graph.getReplicaOptionsAttr())
    table.replicaOptions = options.asArrayRef().vec();
  bool complete = true;
  visitLayers(graph, [&](LayerOpInterface layer, int64_t k) {
    ArrayRef<Attribute> costs;
    if (ArrayAttr all = layer.getCosts())
      costs = costsOf(all, device);
    if (costs.empty()) {
      complete = false;
      return;
    }
    auto cost = cast<CostAttr>(costs[costs.size() == 1 ? 0 : k]);
    table.layers.push_back({cost.getForward().asArrayRef().vec(),
                            cost.getInputGrad().asArrayRef().vec(),
                            cost.getWeightGrad().asArrayRef().vec(),
                            cost.getUpdate()});
  });
  if (!complete)
    return std::nullopt;
  return table;
}

void model::annotateCosts(GraphOp graph, const CostTable &table) {
  annotateCosts(graph, std::vector<KindCosts>{{"", table}});
}

void model::annotateCosts(GraphOp graph, const std::vector<KindCosts> &kinds) {
  MLIRContext *context = graph.getContext();
  auto phase = [&](const std::vector<Nanos> &times) {
    return DenseI64ArrayAttr::get(context, times);
  };
  llvm::MapVector<Operation *, SmallVector<Attribute>> all;
  for (const KindCosts &kind : kinds) {
    const StringAttr device = kind.device.empty()
                                  ? StringAttr()
                                  : StringAttr::get(context, kind.device);
    // Entries of each op, in the order of repetitions; equal ones fold into
    // one.
    llvm::MapVector<Operation *, SmallVector<Attribute>> costs;
    size_t index = 0;
    visitLayers(graph, [&](LayerOpInterface layer, int64_t) {
      const LayerTimes &times = kind.table.layers[index++];
      costs[layer].push_back(
          CostAttr::get(context, phase(times.forward), phase(times.inputGrad),
                        phase(times.weightGrad), times.update, device));
    });
    for (auto &[op, entries] : costs) {
      if (llvm::all_equal(entries))
        entries.resize(1);
      llvm::append_range(all[op], entries);
    }
  }
  for (auto &[op, entries] : all)
    cast<LayerOpInterface>(op).setCosts(ArrayAttr::get(context, entries));
  const CostTable &table = kinds.front().table;
  graph.setReplicaOptionsAttr(
      DenseI64ArrayAttr::get(context, table.replicaOptions));
  graph.setCostSourceAttr(StringAttr::get(context, table.source));
}
