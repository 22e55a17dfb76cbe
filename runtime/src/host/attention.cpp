//===- attention.cpp - causal multi-head attention ------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// softmax(q k^T / sqrt(headDim)) v (Vaswani et al. 2017, arXiv 1706.03762), one
// sample and head at a time, over blocks of query positions: a block meets only
// the keys at or before its last position, so for long sequences half of the
// arithmetic is never done. The forward pass keeps the log-sum-exp of every row
// and not the probabilities; the backward pass computes those again.
//
// Heads may share keys and values in groups (Ainslie et al. 2023, arXiv
// 2305.13245): their gradients add up over the heads of a group, in order.
//
//===----------------------------------------------------------------------===//

#include "blas.h"
#include "families.h"
#include "vector_math.h"

#include <algorithm>

namespace takt::rt::host {

namespace {
constexpr int64_t kBlock = 64;

struct Shape {
  int64_t samples, positions, heads, headDim, kvHeads;
  explicit Shape(const std::vector<int64_t> &dims)
      : samples(dims[0]), positions(dims[1]), heads(dims[2]), headDim(dims[3]),
        kvHeads(dims.size() > 4 ? dims[4] : dims[2]) {}
  int64_t width() const { return heads * headDim; }
  int64_t stride() const { return (heads + 2 * kvHeads) * headDim; }
};

/// Where the parts of one (sample, head) lie; all have the same row stride.
template <typename T>
struct Head {
  T *q, *k, *v;
};

template <typename T>
Head<T> headOf(T *qkv, int64_t sample, int64_t head, const Shape &shape) {
  T *row = qkv + sample * shape.positions * shape.stride();
  T *k = row + shape.width() +
         head / (shape.heads / shape.kvHeads) * shape.headDim;
  return {row + head * shape.headDim, k, k + shape.kvHeads * shape.headDim};
}

/// Scores of rows [begin, end) over keys [0, end) to probabilities, zero beyond
/// the diagonal; lse[i] for each row.
template <typename T>
TAKT_CLONES void softmaxBlock(T *scores, T *lse, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i, scores += end) {
    int64_t n = i + 1;
    T top = laneMax(scores, n);
    for (int64_t j = 0; j < n; ++j)
      scores[j] = expOf(scores[j] - top);
    T sum = laneSum<T>(n, [&](int64_t j) { return scores[j]; });
    T inverse = T(1) / sum;
    for (int64_t j = 0; j < n; ++j)
      scores[j] *= inverse;
    std::fill(scores + n, scores + end, T(0));
    lse[i] = top + std::log(sum);
  }
}

/// The same probabilities from the scores and the stored log-sum-exp.
template <typename T>
TAKT_CLONES void recompute(T *scores, const T *lse, int64_t begin,
                           int64_t end) {
  for (int64_t i = begin; i < end; ++i, scores += end) {
    T shift = lse[i];
    for (int64_t j = 0; j <= i; ++j)
      scores[j] = expOf(std::min(scores[j] - shift, T(0)));
    std::fill(scores + i + 1, scores + end, T(0));
  }
}

/// dp becomes the gradient of the scores: p (dp - sum(dout out)).
template <typename T>
TAKT_CLONES void scoreGrad(const T *p, T *dp, const T *out, const T *dout,
                           int64_t stride, int64_t headDim, int64_t begin,
                           int64_t end) {
  for (int64_t i = begin; i < end; ++i, p += end, dp += end) {
    const T *o = out + i * stride;
    const T *d = dout + i * stride;
    T delta = laneSum<T>(headDim, [&](int64_t j) { return o[j] * d[j]; });
    for (int64_t j = 0; j < end; ++j)
      dp[j] = p[j] * (dp[j] - delta);
  }
}
} // namespace

template <typename T>
void attentionForward(const KernelCall<T> &call) {
  const Shape shape(call.kernel.dims);
  int64_t samples = shape.samples, positions = shape.positions;
  int64_t heads = shape.heads, headDim = shape.headDim;
  int64_t width = shape.width(), stride = shape.stride();
  T *qkv = call.operand(0);
  T *out = call.operand(1);
  T *lse = call.operand(2);
  T *p = call.operand(3);
  T scale = T(1) / std::sqrt(T(headDim));
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t h = 0; h < heads; ++h, lse += positions) {
      Head<T> in = headOf(qkv, s, h, shape);
      T *o = out + s * positions * width + h * headDim;
      for (int64_t begin = 0; begin < positions; begin += kBlock) {
        int64_t end = std::min(begin + kBlock, positions);
        gemm(Transpose::No, Transpose::Yes, end - begin, end, headDim, scale,
             in.q + begin * stride, stride, in.k, stride, T(0), p, end);
        softmaxBlock(p, lse, begin, end);
        gemm(Transpose::No, Transpose::No, end - begin, headDim, end, T(1), p,
             end, in.v, stride, T(0), o + begin * width, width);
      }
    }
}
TAKT_INSTANTIATE(attentionForward)

template <typename T>
void attentionInputGrad(const KernelCall<T> &call) {
  const Shape shape(call.kernel.dims);
  int64_t samples = shape.samples, positions = shape.positions;
  int64_t heads = shape.heads, headDim = shape.headDim;
  int64_t width = shape.width(), stride = shape.stride();
  T *qkv = call.operand(0);
  const T *out = call.operand(1);
  const T *lse = call.operand(2);
  const T *dout = call.operand(3);
  T *dqkv = call.operand(4);
  T *p = call.operand(5);
  T *dp = p + positions * positions;
  T scale = T(1) / std::sqrt(T(headDim));
  // Keys and values gather from all later positions: they start at zero.
  std::fill(dqkv, dqkv + samples * positions * stride, T(0));
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t h = 0; h < heads; ++h, lse += positions) {
      Head<T> in = headOf(qkv, s, h, shape);
      Head<T> grad = headOf(dqkv, s, h, shape);
      const T *o = out + s * positions * width + h * headDim;
      const T *d = dout + s * positions * width + h * headDim;
      for (int64_t begin = 0; begin < positions; begin += kBlock) {
        int64_t end = std::min(begin + kBlock, positions);
        int64_t rows = end - begin;
        gemm(Transpose::No, Transpose::Yes, rows, end, headDim, scale,
             in.q + begin * stride, stride, in.k, stride, T(0), p, end);
        recompute(p, lse, begin, end);
        gemm(Transpose::Yes, Transpose::No, end, headDim, rows, T(1), p, end,
             d + begin * width, width, T(1), grad.v, stride);
        gemm(Transpose::No, Transpose::Yes, rows, end, headDim, T(1),
             d + begin * width, width, in.v, stride, T(0), dp, end);
        scoreGrad(p, dp, o, d, width, headDim, begin, end);
        gemm(Transpose::No, Transpose::No, rows, headDim, end, scale, dp, end,
             in.k, stride, T(0), grad.q + begin * stride, stride);
        gemm(Transpose::Yes, Transpose::No, end, headDim, rows, scale, dp, end,
             in.q + begin * stride, stride, T(1), grad.k, stride);
      }
    }
}
TAKT_INSTANTIATE(attentionInputGrad)

} // namespace takt::rt::host
