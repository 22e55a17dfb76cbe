//===- StageBuilder.h - procedures of one stage over abstract tensors -----===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A stage's kernels are first written over tensors without addresses. Their
// lifetimes then decide which are saved between procedures and where each lies
// (MemoryPlan.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Lower/Lower.h"

#include <map>
#include <vector>

namespace takt {

/// Why a tensor of a micro-batch exists; decides its pool.
enum class TensorRole : uint8_t {
  Internal,   ///< made and used by this stage
  Batch,      ///< a model input, filled by a load
  Input,      ///< from the previous stage
  Output,     ///< to the next stage
  OutputGrad, ///< from the next stage
  InputGrad,  ///< to the previous stage
  Loss,       ///< one float per micro-batch
};

struct StageTensor {
  std::string name;
  Bytes bytes = 0;
  TensorRole role = TensorRole::Internal;
};

/// An operand before addresses: a tensor, or a parameter's buffer.
struct Operand {
  enum Kind : uint8_t { Tensor, Weight, Grad, State } kind = Tensor;
  int32_t index = -1; ///< tensor, or index into Stage::params
  int32_t part = 0;   ///< which use (Grad) or which state tensor (State)
};

struct AbstractKernel {
  rt::Kernel kernel; ///< operands still empty
  std::vector<Operand> operands;
  /// Tensors a profiled layer reads and makes, which are not operands.
  std::vector<int32_t> reads, makes;
};

struct StageParam {
  int32_t param = -1; ///< index into Graph::params
  int32_t uses = 0;   ///< on this stage, in layer order
  bool trainable = true;
  int32_t firstLayer = -1;
  Bytes bytes = 0;
};

/// A value that crosses an end of the stage. The message over a cut holds all
/// such values one after another; the gradients coming back lie at the same
/// offsets, so that it is known which is whose.
struct Crossing {
  int32_t value = -1;
  int32_t tensor = -1;   ///< as it is received or sent
  int32_t gradient = -1; ///< the same; -1: it has none
  Bytes offset = 0;      ///< of both in their messages
};

/// Everything of a stage but addresses.
struct Stage {
  std::vector<StageTensor> tensors;
  std::vector<StageParam> params; ///< by first use
  /// Kernels by phase; when `split` is false backward is in inputGrad alone,
  /// layer by layer, and weightGrad is empty.
  std::vector<AbstractKernel> forward, inputGrad, weightGrad;
  bool split = false;
  std::vector<std::pair<std::string, int32_t>> loads; ///< input name, tensor
  std::vector<Crossing> inputs, outputs; ///< in the order of their producers
  int32_t loss = -1;
  int32_t result = -1; ///< tensor that the last stage of inference gives
  int64_t samples = 1; ///< of this rank's share of a micro-batch
};

/// Bytes of the message of all values, or of all gradients, over an end of a
/// stage; 0: there is none.
Bytes messageBytes(const Stage &stage, const std::vector<Crossing> &end,
                   bool gradients);

/// Writes a stage's procedures for each of `replicas`. `split`: some action of
/// the stage is I or W.
Stage buildStage(const LoweringProblem &problem, int32_t index,
                 int32_t replicas, bool split);

/// Emits the kernels of one layer; used by buildStage.
class LayerEmitter {
public:
  LayerEmitter(const LoweringProblem &problem, Stage &stage,
               std::map<int32_t, int32_t> &tensorOf)
      : problem(problem), graph(problem.graph), stage(stage),
        tensorOf(tensorOf) {}

  void forward(int32_t layer);
  /// Kernels that make the gradients of the inputs from `dy` (-1 for a loss).
  /// `needs` says which inputs want one. Returns a tensor per input, -1 if
  /// none. `dy` itself may be returned: the gradient passes unchanged.
  std::vector<int32_t> inputGrad(int32_t layer, int32_t dy,
                                 const std::vector<bool> &needs,
                                 std::vector<AbstractKernel> &out);
  void weightGrad(int32_t layer, int32_t dy, std::vector<AbstractKernel> &out);

  int32_t newTensor(std::string name, Bytes bytes,
                    TensorRole role = TensorRole::Internal);

private:
  struct Dims {
    int64_t rows = 1, in = 1, out = 1;
  };
  const TensorType &typeOf(int32_t value) const {
    return graph.values[value].type;
  }
  int64_t elements(int32_t value) const {
    return typeOf(value).elements() * stage.samples;
  }
  int64_t rows(int32_t value) const;
  double lossScale(const Layer &layer) const;
  // Dims of kernels, the same forward and backward.
  std::vector<int64_t> attentionDims(const Layer &layer,
                                     const TensorType &out) const;
  std::vector<int64_t> rotaryDims(const Layer &layer,
                                  const TensorType &x) const;
  std::vector<int64_t> gluDims(const Layer &layer) const;
  AbstractKernel start(rt::KernelKind kind, rt::Phase phase, int32_t layer);
  Operand tensor(int32_t value) const {
    return {Operand::Tensor, tensorOf.at(value), 0};
  }
  static Operand plain(int32_t tensor) { return {Operand::Tensor, tensor, 0}; }
  Operand weight(int32_t layer, int32_t which) const;
  Operand grad(int32_t layer, int32_t which) const;
  bool trains(int32_t layer, int32_t which) const;
  int32_t scratch(const Layer &layer, int64_t elements);
  int32_t stageParam(int32_t param) const;

  const LoweringProblem &problem;
  const Graph &graph;
  Stage &stage;
  std::map<int32_t, int32_t> &tensorOf; ///< value -> forward tensor
  std::map<int32_t, std::vector<int32_t>>
      statistics; ///< layer -> mean, rstd, lse
};

} // namespace takt
