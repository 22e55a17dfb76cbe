//===- kernel_shape.cpp - what the operands of a kernel must hold -*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One row a kernel kind. Sizes are computed with overflow checks, as the dims
// may come from a damaged file.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/kernel_shape.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/names.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <limits>

namespace takt::rt {

namespace {

constexpr int64_t kElement = 4;

struct Arity {
  size_t dims;
  size_t scalars;
};

Arity arityOf(KernelKind kind) {
  switch (kind) {
  case KernelKind::EmbeddingForward:
  case KernelKind::EmbeddingWeightGrad:
  case KernelKind::PositionForward:
  case KernelKind::PositionWeightGrad:
  case KernelKind::LinearInputGrad:
  case KernelKind::GluForward:
  case KernelKind::GluInputGrad:
    return {3, 0};
  case KernelKind::LinearForward:
  case KernelKind::LinearWeightGrad:
  case KernelKind::AttentionForward:
  case KernelKind::AttentionInputGrad:
    return {4, 0};
  case KernelKind::RotaryForward:
  case KernelKind::RotaryInputGrad:
    return {5, 1};
  case KernelKind::LayerNormForward:
  case KernelKind::RmsNormForward:
  case KernelKind::CrossEntropyForward:
  case KernelKind::CrossEntropyInputGrad:
    return {2, 1};
  case KernelKind::LayerNormInputGrad:
  case KernelKind::LayerNormWeightGrad:
  case KernelKind::RmsNormInputGrad:
  case KernelKind::RmsNormWeightGrad:
    return {2, 0};
  case KernelKind::GeluForward:
  case KernelKind::GeluInputGrad:
  case KernelKind::GeluTanhForward:
  case KernelKind::GeluTanhInputGrad:
  case KernelKind::ReluForward:
  case KernelKind::ReluInputGrad:
  case KernelKind::AddForward:
  case KernelKind::Accumulate:
  case KernelKind::Copy:
  case KernelKind::Zero:
    return {1, 0};
  case KernelKind::MseForward:
  case KernelKind::MseInputGrad:
  case KernelKind::SgdUpdate:
    return {1, 1};
  case KernelKind::MomentumUpdate:
    return {1, 2};
  case KernelKind::AdamWUpdate:
    return {1, 4};
  case KernelKind::Profiled:
    return {0, 0};
  }
  throw Error("unknown kernel kind");
}

void requireCount(const Kernel &kernel, const char *what, size_t has,
                  size_t needs) {
  if (has != needs)
    throw Error(fmt::format("kernel '{}' takes {} {}, not {}",
                            nameOf(kernel.kind), needs, what, has));
}

bool isAttention(KernelKind kind) {
  return kind == KernelKind::AttentionForward ||
         kind == KernelKind::AttentionInputGrad;
}

bool hasBiasFlag(KernelKind kind) {
  return kind == KernelKind::LinearForward ||
         kind == KernelKind::LinearWeightGrad;
}

void checkNumbers(const Kernel &kernel) {
  // Kernels over n elements take any n; the others pass their dims to matrix
  // products, whose interfaces count in int.
  int64_t most = kernel.dims.size() == 1 ? std::numeric_limits<int64_t>::max()
                                         : std::numeric_limits<int32_t>::max();
  for (size_t i = 0; i < kernel.dims.size(); ++i) {
    int64_t dim = kernel.dims[i];
    bool isFlag = hasBiasFlag(kernel.kind) && i == 3;
    if (isFlag ? dim != 0 && dim != 1 : dim < 1 || dim > most)
      throw Error(fmt::format("dim {} of kernel '{}' is {}", i,
                              nameOf(kernel.kind), dim));
  }
  for (double scalar : kernel.scalars)
    if (!std::isfinite(scalar))
      throw Error(fmt::format("a scalar of kernel '{}' is not finite",
                              nameOf(kernel.kind)));
}

/// Bytes of a tensor of that many elements.
Bytes tensor(std::initializer_list<int64_t> dims) {
  int64_t bytes = kElement;
  for (int64_t dim : dims)
    if (__builtin_mul_overflow(bytes, dim, &bytes))
      throw Error("a tensor's size overflows");
  return bytes;
}

std::vector<Bytes> linearBytes(const Kernel &kernel) {
  int64_t rows = kernel.dims[0], in = kernel.dims[1], out = kernel.dims[2];
  Bytes x = tensor({rows, in}), y = tensor({rows, out});
  Bytes w = tensor({in, out}), bias = tensor({out});
  if (kernel.kind == KernelKind::LinearInputGrad)
    return {y, w, x};
  bool hasBias = kernel.dims[3] != 0;
  if (kernel.kind == KernelKind::LinearForward)
    return hasBias ? std::vector<Bytes>{x, w, bias, y}
                   : std::vector<Bytes>{x, w, y};
  return hasBias ? std::vector<Bytes>{x, y, w, bias}
                 : std::vector<Bytes>{x, y, w};
}

std::vector<Bytes> layerNormBytes(const Kernel &kernel) {
  int64_t rows = kernel.dims[0], width = kernel.dims[1];
  Bytes x = tensor({rows, width}), gain = tensor({width});
  Bytes stat = tensor({rows});
  if (kernel.kind == KernelKind::LayerNormForward)
    return {x, gain, gain, x, stat, stat};
  if (kernel.kind == KernelKind::LayerNormInputGrad)
    return {x, gain, stat, stat, x, x};
  return {x, stat, stat, x, gain, gain};
}

std::vector<Bytes> rmsNormBytes(const Kernel &kernel) {
  int64_t rows = kernel.dims[0], width = kernel.dims[1];
  Bytes x = tensor({rows, width}), gain = tensor({width});
  Bytes stat = tensor({rows});
  if (kernel.kind == KernelKind::RmsNormForward)
    return {x, gain, x, stat};
  if (kernel.kind == KernelKind::RmsNormInputGrad)
    return {x, gain, stat, x, x};
  return {x, stat, x, gain};
}

std::vector<Bytes> attentionBytes(const Kernel &kernel) {
  int64_t samples = kernel.dims[0], positions = kernel.dims[1];
  int64_t heads = kernel.dims[2], headDim = kernel.dims[3];
  int64_t kvHeads = kernel.dims.size() > 4 ? kernel.dims[4] : heads;
  if (heads % kvHeads != 0)
    throw Error(
        fmt::format("kernel '{}' has {} heads for {} of keys and values",
                    nameOf(kernel.kind), heads, kvHeads));
  Bytes out = tensor({samples, positions, heads, headDim});
  Bytes qkv = tensor({samples, positions, heads + 2 * kvHeads, headDim});
  Bytes lse = tensor({samples, heads, positions});
  if (kernel.kind == KernelKind::AttentionForward)
    return {qkv, out, lse, tensor({positions, positions})};
  return {qkv, out, lse, out, qkv, tensor({2, positions, positions})};
}

std::vector<Bytes> rotaryBytes(const Kernel &kernel) {
  const std::vector<int64_t> &d = kernel.dims;
  if (d[3] % 2 != 0 || tensor({d[2], d[3]}) > tensor({d[4]}))
    throw Error(fmt::format("kernel '{}' turns {} heads of {} elements in rows "
                            "of {}",
                            nameOf(kernel.kind), d[2], d[3], d[4]));
  if (kernel.scalars[0] <= 0)
    throw Error(fmt::format("kernel '{}' has a theta of {}",
                            nameOf(kernel.kind), kernel.scalars[0]));
  return std::vector<Bytes>(2, tensor({d[0], d[1], d[4]}));
}

std::vector<Bytes> gluBytes(const Kernel &kernel) {
  int64_t rows = kernel.dims[0], width = kernel.dims[1];
  if (kernel.dims[2] > 3)
    throw Error(fmt::format("kernel '{}' has an unknown activation {}",
                            nameOf(kernel.kind), kernel.dims[2]));
  Bytes x = tensor({rows, width, 2}), y = tensor({rows, width});
  if (kernel.kind == KernelKind::GluForward)
    return {x, y};
  return {x, y, x};
}

std::vector<Bytes> sizesOf(const Kernel &kernel) {
  const std::vector<int64_t> &d = kernel.dims;
  switch (kernel.kind) {
  case KernelKind::EmbeddingForward:
    return {tensor({d[0]}), tensor({d[1], d[2]}), tensor({d[0], d[2]})};
  case KernelKind::EmbeddingWeightGrad:
    return {tensor({d[0]}), tensor({d[0], d[2]}), tensor({d[1], d[2]})};
  case KernelKind::PositionForward:
    return {tensor({d[0], d[1], d[2]}), tensor({d[1], d[2]}),
            tensor({d[0], d[1], d[2]})};
  case KernelKind::PositionWeightGrad:
    return {tensor({d[0], d[1], d[2]}), tensor({d[1], d[2]})};
  case KernelKind::LinearForward:
  case KernelKind::LinearInputGrad:
  case KernelKind::LinearWeightGrad:
    return linearBytes(kernel);
  case KernelKind::LayerNormForward:
  case KernelKind::LayerNormInputGrad:
  case KernelKind::LayerNormWeightGrad:
    return layerNormBytes(kernel);
  case KernelKind::AttentionForward:
  case KernelKind::AttentionInputGrad:
    return attentionBytes(kernel);
  case KernelKind::RmsNormForward:
  case KernelKind::RmsNormInputGrad:
  case KernelKind::RmsNormWeightGrad:
    return rmsNormBytes(kernel);
  case KernelKind::RotaryForward:
  case KernelKind::RotaryInputGrad:
    return rotaryBytes(kernel);
  case KernelKind::GluForward:
  case KernelKind::GluInputGrad:
    return gluBytes(kernel);
  case KernelKind::CrossEntropyForward:
    return {tensor({d[0], d[1]}), tensor({d[0]}), tensor({d[0]}), kElement};
  case KernelKind::CrossEntropyInputGrad:
    return {tensor({d[0], d[1]}), tensor({d[0]}), tensor({d[0]}),
            tensor({d[0], d[1]})};
  case KernelKind::MseForward:
    return {tensor({d[0]}), tensor({d[0]}), kElement};
  case KernelKind::Zero:
    return {tensor({d[0]})};
  case KernelKind::GeluForward:
  case KernelKind::GeluTanhForward:
  case KernelKind::ReluForward:
  case KernelKind::Accumulate:
  case KernelKind::Copy:
  case KernelKind::SgdUpdate:
    return std::vector<Bytes>(2, tensor({d[0]}));
  case KernelKind::GeluInputGrad:
  case KernelKind::GeluTanhInputGrad:
  case KernelKind::ReluInputGrad:
  case KernelKind::AddForward:
  case KernelKind::MseInputGrad:
  case KernelKind::MomentumUpdate:
    return std::vector<Bytes>(3, tensor({d[0]}));
  case KernelKind::AdamWUpdate:
    return std::vector<Bytes>(4, tensor({d[0]}));
  case KernelKind::Profiled:
    return std::vector<Bytes>(kernel.operands.size(), 0);
  }
  throw Error("unknown kernel kind");
}

} // namespace

std::vector<Bytes> operandBytes(const Kernel &kernel) {
  Arity arity = arityOf(kernel.kind);
  if (kernel.kind == KernelKind::Profiled && !kernel.dims.empty()) {
    requireCount(kernel, "dims", kernel.dims.size(), 1);
    requireCount(kernel, "scalars", kernel.scalars.size(), 0);
    if (kernel.dims[0] < 0 ||
        kernel.dims[0] > static_cast<int64_t>(kernel.operands.size()))
      throw Error(fmt::format("kernel 'profiled' reads {} of {} operands",
                              kernel.dims[0], kernel.operands.size()));
    return std::vector<Bytes>(kernel.operands.size(), 0);
  }
  if (!isAttention(kernel.kind) || kernel.dims.size() != 5)
    requireCount(kernel, "dims", kernel.dims.size(), arity.dims);
  requireCount(kernel, "scalars", kernel.scalars.size(), arity.scalars);
  checkNumbers(kernel);
  std::vector<Bytes> sizes = sizesOf(kernel);
  requireCount(kernel, "operands", kernel.operands.size(), sizes.size());
  return sizes;
}

} // namespace takt::rt
