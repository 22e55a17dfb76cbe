//===- StageBuilder.cpp - procedures of one stage -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Walks the layers forward, then backward, adding up the gradient of a value
// that several layers read. The additions happen in the order of the backward
// walk, which no cut can change: losses are equal bit for bit for every number
// of stages.
//
// A value that later stages read, too, passes through the stage: it is copied
// from the message that comes in to the one that goes on, and the gradient that
// comes back for it is the sum of all later readers', to which this stage adds
// its own.
//
//===----------------------------------------------------------------------===//
#include "StageBuilder.h"

#include <algorithm>
#include <set>

using namespace takt;
using rt::KernelKind;
using rt::Phase;

namespace {

class Builder {
public:
  Builder(const LoweringProblem &problem, int32_t index, int32_t replicas,
          bool split)
      : problem(problem), graph(problem.graph), input(problem.stages[index]),
        index(index), emitter(problem, stage, tensorOf),
        needsGrad(valuesNeedingGrad(graph)) {
    stage.split = split;
    stage.samples = problem.training.microBatchSize() / replicas;
  }

  Stage build() {
    collectParams();
    addInputs();
    addOutputs();
    for (int32_t l = input.layerBegin; l < input.layerEnd; ++l)
      emitter.forward(l);
    for (Crossing &end : stage.outputs)
      if (end.tensor < 0) {
        end.tensor = tensorOf.at(end.value);
        stage.tensors[end.tensor].role = TensorRole::Output;
      }
    backward();
    freeOutputs();
    if (graph.mode == rt::Mode::Inference && graph.result() >= 0 &&
        size_t(index) + 1 == problem.stages.size())
      stage.result = tensorOf.at(graph.result());
    for (Crossing &end : stage.inputs)
      if (needsGrad[end.value])
        finishInputGradient(end);
    return std::move(stage);
  }

private:
  void collectParams();
  void addInputs();
  void addOutputs();
  void backward();
  void freeOutputs();
  void addGradient(int32_t value, int32_t gradient, bool fresh,
                   std::vector<AbstractKernel> &out, int32_t layer);
  void finishInputGradient(Crossing &end);
  std::vector<Crossing> crossings(int32_t layer) const;
  AbstractKernel copy(int32_t value, int32_t from, int32_t to, Phase phase);

  const LoweringProblem &problem;
  const Graph &graph;
  const StageInput &input;
  int32_t index;
  Stage stage;
  std::map<int32_t, int32_t> tensorOf; ///< value -> forward tensor
  std::map<int32_t, int32_t> gradOf;   ///< value -> gradient so far
  LayerEmitter emitter;
  std::vector<bool> needsGrad;
};

void Builder::collectParams() {
  for (int32_t l = input.layerBegin; l < input.layerEnd; ++l) {
    const Layer &layer = graph.layers[l];
    for (int32_t param : layer.params) {
      auto same = [&](const StageParam &p) { return p.param == param; };
      auto it = std::find_if(stage.params.begin(), stage.params.end(), same);
      if (it == stage.params.end()) {
        const rt::Param &info = graph.params[param];
        StageParam own;
        own.param = param;
        own.trainable = info.trainable;
        own.firstLayer = l;
        own.bytes = TensorType{info.shape, DType::Float32}.bytes();
        it = stage.params.insert(stage.params.end(), own);
      }
      ++it->uses;
    }
  }
}

/// What crosses the cut before a layer, with its places in the message.
std::vector<Crossing> Builder::crossings(int32_t layer) const {
  std::vector<Crossing> result;
  Bytes offset = 0;
  for (int32_t value : crossingValues(graph, layer)) {
    result.push_back({value, -1, -1, offset});
    offset += rt::alignUp(graph.values[value].type.bytes() * stage.samples);
  }
  return result;
}

/// Tensors that come from outside: model inputs that some layer reads, and the
/// values over the cut before this stage.
void Builder::addInputs() {
  auto add = [&](int32_t id, TensorRole role) {
    const Value &value = graph.values[id];
    return tensorOf[id] = emitter.newTensor(
               value.name, value.type.bytes() * stage.samples, role);
  };
  if (index > 0)
    stage.inputs = crossings(input.layerBegin);
  for (Crossing &end : stage.inputs)
    end.tensor = add(end.value, TensorRole::Input);
  for (int32_t l = input.layerBegin; l < input.layerEnd; ++l)
    for (int32_t id : graph.layers[l].inputs)
      if (graph.values[id].producer < 0 && !tensorOf.count(id))
        stage.loads.push_back(
            {graph.values[id].name, add(id, TensorRole::Batch)});
}

/// What passes through goes on at once: it need not stay for that.
void Builder::addOutputs() {
  if (size_t(index) + 1 == problem.stages.size())
    return;
  stage.outputs = crossings(input.layerEnd);
  for (Crossing &end : stage.outputs) {
    const Value &value = graph.values[end.value];
    if (value.producer >= input.layerBegin)
      continue;
    int32_t from = tensorOf.at(end.value);
    end.tensor = emitter.newTensor(value.name, stage.tensors[from].bytes,
                                   TensorRole::Output);
    stage.forward.push_back(copy(end.value, from, end.tensor, Phase::Forward));
  }
}

AbstractKernel Builder::copy(int32_t value, int32_t from, int32_t to,
                             Phase phase) {
  AbstractKernel k;
  k.kernel.kind = KernelKind::Copy;
  k.kernel.phase = phase;
  k.kernel.layer = input.layerBegin;
  k.kernel.dims = {graph.values[value].type.elements() * stage.samples};
  k.operands = {{Operand::Tensor, from, 0}, {Operand::Tensor, to, 0}};
  return k;
}

/// A value read by several layers has the sum of their gradients. A gradient
/// just made by a kernel (`fresh`) takes the earlier sum in place; one that is
/// handed through may have other readers, so the sum is a new tensor.
void Builder::addGradient(int32_t value, int32_t gradient, bool fresh,
                          std::vector<AbstractKernel> &out, int32_t layer) {
  auto [it, first] = gradOf.insert({value, gradient});
  if (first)
    return;
  AbstractKernel k;
  k.kernel.phase = Phase::InputGrad;
  k.kernel.layer = layer;
  k.kernel.dims = {graph.values[value].type.elements() * stage.samples};
  int32_t earlier = it->second;
  if (fresh) {
    k.kernel.kind = KernelKind::Accumulate;
    k.operands = {{Operand::Tensor, earlier, 0},
                  {Operand::Tensor, gradient, 0}};
    it->second = gradient;
  } else {
    int32_t sum = emitter.newTensor(graph.values[value].name + ".grad",
                                    stage.tensors[earlier].bytes);
    k.kernel.kind = KernelKind::AddForward;
    k.operands = {{Operand::Tensor, earlier, 0},
                  {Operand::Tensor, gradient, 0},
                  {Operand::Tensor, sum, 0}};
    it->second = sum;
  }
  out.push_back(std::move(k));
}

void Builder::backward() {
  for (Crossing &end : stage.outputs)
    if (needsGrad[end.value])
      gradOf[end.value] = end.gradient = emitter.newTensor(
          graph.values[end.value].name + ".grad",
          stage.tensors[end.tensor].bytes, TensorRole::OutputGrad);
  auto &inputGrads = stage.inputGrad;
  auto &weightGrads = stage.split ? stage.weightGrad : stage.inputGrad;
  for (int32_t l = input.layerEnd - 1; l >= input.layerBegin; --l) {
    const Layer &layer = graph.layers[l];
    auto found = gradOf.find(layer.output);
    int32_t dy = found == gradOf.end() ? -1 : found->second;
    bool loss = l + 1 == int32_t(graph.layers.size());
    if (!needsGrad[layer.output] || (dy < 0 && !loss))
      continue;
    // W first: the output gradient can die as soon as I has read it.
    emitter.weightGrad(l, dy, weightGrads);
    std::vector<bool> needs;
    for (int32_t id : layer.inputs)
      needs.push_back(needsGrad[id]);
    std::vector<int32_t> grads = emitter.inputGrad(l, dy, needs, inputGrads);
    for (size_t i = 0; i < grads.size(); ++i)
      if (grads[i] >= 0)
        addGradient(layer.inputs[i], grads[i], grads[i] != dy, inputGrads, l);
  }
}

/// A message is held as long as backward reads any of its values. Where it has
/// several, those that backward reads are kept for themselves.
void Builder::freeOutputs() {
  for (Crossing &end : stage.outputs) {
    const int32_t made = end.tensor;
    auto reads = [&](const AbstractKernel &kernel) {
      return std::any_of(kernel.operands.begin(), kernel.operands.end(),
                         [&](const Operand &operand) {
                           return operand.kind == Operand::Tensor &&
                                  operand.index == made;
                         }) ||
             std::count(kernel.reads.begin(), kernel.reads.end(), made) > 0;
    };
    if (stage.outputs.size() < 2 ||
        (std::none_of(stage.inputGrad.begin(), stage.inputGrad.end(), reads) &&
         std::none_of(stage.weightGrad.begin(), stage.weightGrad.end(), reads)))
      continue;
    stage.tensors[made].role = TensorRole::Internal;
    end.tensor =
        emitter.newTensor(stage.tensors[made].name, stage.tensors[made].bytes,
                          TensorRole::Output);
    stage.forward.push_back(copy(end.value, made, end.tensor, Phase::Forward));
  }
}

/// What goes to the previous stage lies in a buffer of its own; a gradient that
/// was only handed through is copied there.
void Builder::finishInputGradient(Crossing &end) {
  int32_t gradient = gradOf.at(end.value);
  if (stage.tensors[gradient].role == TensorRole::Internal) {
    stage.tensors[gradient].role = TensorRole::InputGrad;
    end.gradient = gradient;
    return;
  }
  end.gradient =
      emitter.newTensor(graph.values[end.value].name + ".grad",
                        stage.tensors[gradient].bytes, TensorRole::InputGrad);
  stage.inputGrad.push_back(
      copy(end.value, gradient, end.gradient, Phase::InputGrad));
}

} // namespace

Bytes takt::messageBytes(const Stage &stage, const std::vector<Crossing> &end,
                         bool gradients) {
  Bytes bytes = 0;
  for (const Crossing &crossing : end) {
    int32_t tensor = gradients ? crossing.gradient : crossing.tensor;
    if (tensor >= 0)
      bytes = crossing.offset + stage.tensors[tensor].bytes;
  }
  return bytes;
}

Stage takt::buildStage(const LoweringProblem &problem, int32_t index,
                       int32_t replicas, bool split) {
  return Builder(problem, index, replicas, split).build();
}
