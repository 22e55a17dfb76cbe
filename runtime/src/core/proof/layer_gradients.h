//===- layer_gradients.h - one way of a micro-batch -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The procedures that a micro-batch passes in one stage are gone through kernel
// by kernel. Forward they give the stage's graph of layers, and by the chain
// rule the gradient of each tensor as a sum of shares, one for each layer that
// reads it. Backward every buffer holds such a sum, and a kernel that takes the
// gradient of a tensor must find just the sum that is due: a share that is
// missing, or is there twice, is a layer whose kernel is missing or runs twice.
//
// Adds and positional embeddings hand a gradient on as it is, so a sum may have
// as many shares as the stage has layers. Sums are therefore kept as 128-bit
// fingerprints: a random number for each share, added.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "gradient_flow.h"
#include "program.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace takt::rt::proof {

/// The fingerprint of a sum of shares.
struct ShareSum {
  uint64_t high = 0, low = 0;
  void add(const ShareSum &o) {
    high += o.high;
    low += o.low;
  }
  bool operator==(const ShareSum &o) const {
    return high == o.high && low == o.low;
  }
};

/// Pool and offset of a buffer.
using BufferKey = std::pair<uint16_t, Bytes>;
inline BufferKey keyOf(const BufferRef &ref) { return {ref.pool, ref.offset}; }
/// Where several tensors cross a boundary, the gradient of each lies in its own
/// message at the offset that the tensor has in its.
inline bool isGradientOf(const BufferKey &gradient, const BufferKey &tensor) {
  return gradient.second == tensor.second;
}

/// What the stages of a role have in common.
struct RoleGradients {
  RoleGradients(const Program &program, size_t index);

  const Program &program;
  const Plan &plan;
  const Role &role;
  size_t index;
  std::map<BufferKey, size_t> paramOfWeight, paramOfSum; ///< of the role's
  /// Stages that read a buffer forward.
  std::map<BufferKey, std::set<int32_t>> readers;
  /// Layer and stage whose kernel adds to an accumulator.
  std::map<BufferKey, std::pair<int32_t, int32_t>> adders;
  bool hasDeadLayers = false; ///< some layer does not reach the loss
};

class LayerGradients {
public:
  /// `procedures` in the order F, B or F, I, W, pieces by number.
  LayerGradients(RoleGradients &common, int32_t stage,
                 std::vector<uint16_t> procedures);
  std::optional<ProofFailure> run();
  /// True if the failure is that a layer has a gradient though nobody reads its
  /// output: its kernels forward may name wrong buffers.
  bool vague() const { return isVague; }
  /// "is not the sum of the shares of ...", of a tensor from outside.
  std::string outsideText(const BufferKey &buffer) const;
  /// True if the sums could not be followed: some layer names no buffers.
  bool opaque() const { return isOpaque; }

  /// After `run`: buffers with gradients that a stage of the same role must
  /// have made, what each buffer holds in the end, and the gradients due of
  /// what came from outside.
  std::set<BufferKey> handedOver;
  std::map<BufferKey, ShareSum> held;
  std::map<BufferKey, ShareSum> dueOutside;
  std::set<BufferKey> left; ///< buffers of tensors that leave the stage
  /// Layers known by costs only that make an input gradient.
  std::set<int32_t> profiledInputs;

private:
  /// A kernel of the forward pass with the tensors that it reads and makes.
  struct Step {
    uint16_t procedure = 0;
    const Kernel *kernel = nullptr;
    ForwardFlow flow;
    std::vector<size_t> inputs;
    size_t output = 0;
    bool isAlive = false; ///< its output reaches the loss
  };
  struct Tensor {
    BufferKey buffer;
    bool outside = false;
    bool learns = false; ///< something trained lies at or before it
    bool alive = false;
    ShareSum due;
    std::vector<size_t> readers; ///< steps that are alive
  };

  void eachKernel(const std::function<void(uint16_t, const Kernel &)> &visit);
  void once(uint16_t procedure, const Kernel &kernel);
  void forward(uint16_t procedure, const Kernel &kernel);
  bool goesBack(const BufferKey &tensor) const;
  size_t tensorIn(const BufferRef &ref);
  void findDue();
  void backward(uint16_t procedure, const Kernel &kernel);
  void layerKernel(uint16_t procedure, const Kernel &kernel,
                   const BackwardFlow &flow);
  void addsTo(uint16_t procedure, const Kernel &kernel, const BufferRef &ref);
  void checkWeights();
  void checkProfiled();
  void checkSent();
  ShareSum handedShare(const BufferKey &key) const;
  ShareSum read(const BufferKey &key);
  std::string dueText(const Tensor &tensor) const;
  std::string layerText(int32_t layer) const;
  void fail(uint16_t procedure, const Kernel *kernel, const std::string &text);

  RoleGradients &common;
  const Plan &plan;
  const Role &role;
  int32_t stage;
  std::vector<uint16_t> procedures;
  std::vector<Step> steps;
  std::map<std::pair<int32_t, KernelKind>, size_t> stepOf; ///< by layer
  std::vector<Tensor> tensors;
  std::map<BufferKey, size_t> current; ///< tensor that a buffer holds
  /// Tensors that come in messages, and gradients that come and go in them.
  std::set<BufferKey> came, arriving, sent;
  /// Layers known by costs only have no operands: the graph is not known.
  bool isOpaque = false;
  std::map<int32_t, std::multiset<size_t>> added; ///< parameters, by layer
  std::set<BufferKey> sums;
  std::set<std::tuple<KernelKind, Phase, int32_t, std::vector<BufferKey>>> seen;
  std::optional<ProofFailure> failure;
  bool isVague = false;
};

} // namespace takt::rt::proof
