//===- StageBuilder.cpp - procedures of one stage -------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Walks the layers forward, then backward, adding up the gradient of a value that
// several layers read. The additions happen in the order of the backward walk,
// which no cut can change: losses are equal bit for bit for every number of
// stages.
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
    for (int32_t l = input.layerBegin; l < input.layerEnd; ++l)
      emitter.forward(l);
    bool last = size_t(index) + 1 == problem.stages.size();
    if (!last) {
      stage.output = tensorOf.at(graph.layers[input.layerEnd - 1].output);
      stage.tensors[stage.output].role = TensorRole::Output;
    }
    backward(last);
    return std::move(stage);
  }

private:
  void collectParams();
  void addInputs();
  void backward(bool last);
  void addGradient(int32_t value, int32_t gradient, bool fresh,
                   std::vector<AbstractKernel> &out, int32_t layer);
  void finishInputGradient(std::vector<AbstractKernel> &out);

  const LoweringProblem &problem;
  const Graph &graph;
  const StageInput &input;
  int32_t index;
  Stage stage;
  std::map<int32_t, int32_t> tensorOf; ///< value -> forward tensor
  std::map<int32_t, int32_t> gradOf;   ///< value -> gradient so far
  LayerEmitter emitter;
  std::vector<bool> needsGrad;
  int32_t crossing = -1; ///< value received from the previous stage
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

/// Tensors that come from outside: model inputs that some layer reads, and the
/// value over the boundary before this stage.
void Builder::addInputs() {
  std::set<int32_t> seen;
  if (index > 0)
    crossing = graph.layers[input.layerBegin - 1].output;
  for (int32_t l = input.layerBegin; l < input.layerEnd; ++l)
    for (int32_t id : graph.layers[l].inputs) {
      const Value &value = graph.values[id];
      if (value.producer >= input.layerBegin || !seen.insert(id).second)
        continue;
      bool loaded = value.producer < 0;
      int32_t t =
          emitter.newTensor(value.name, value.type.bytes() * stage.samples,
                            loaded ? TensorRole::Batch : TensorRole::Input);
      tensorOf[id] = t;
      if (loaded)
        stage.loads.push_back({value.name, t});
      else
        stage.input = t;
    }
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
    k.operands = {{Operand::Tensor, earlier, 0}, {Operand::Tensor, gradient, 0}};
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

void Builder::backward(bool last) {
  if (!last) {
    int32_t value = graph.layers[input.layerEnd - 1].output;
    if (needsGrad[value]) {
      stage.outputGrad = emitter.newTensor(graph.values[value].name + ".grad",
                                           stage.tensors[stage.output].bytes,
                                           TensorRole::OutputGrad);
      gradOf[value] = stage.outputGrad;
    }
  }
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
  if (crossing >= 0 && needsGrad[crossing])
    finishInputGradient(inputGrads);
}

/// What goes to the previous stage lies in a buffer of its own; a gradient that
/// was only handed through is copied there.
void Builder::finishInputGradient(std::vector<AbstractKernel> &out) {
  int32_t gradient = gradOf.at(crossing);
  if (stage.tensors[gradient].role == TensorRole::Internal) {
    stage.tensors[gradient].role = TensorRole::InputGrad;
    stage.inputGradient = gradient;
    return;
  }
  stage.inputGradient = emitter.newTensor(
      graph.values[crossing].name + ".grad", stage.tensors[gradient].bytes,
      TensorRole::InputGrad);
  AbstractKernel k;
  k.kernel.kind = KernelKind::Copy;
  k.kernel.phase = Phase::InputGrad;
  k.kernel.layer = input.layerBegin;
  k.kernel.dims = {graph.values[crossing].type.elements() * stage.samples};
  k.operands = {{Operand::Tensor, gradient, 0},
                {Operand::Tensor, stage.inputGradient, 0}};
  out.push_back(std::move(k));
}

} // namespace

Stage takt::buildStage(const LoweringProblem &problem, int32_t index,
                       int32_t replicas, bool split) {
  return Builder(problem, index, replicas, split).build();
}
