//===- GradientTests.cpp - gradient kernels against differences -----------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every kernel's input and weight gradients, in double, against central
// differences of its forward kernel. Weight gradients start from values other
// than zero, as they must add.
//
//===----------------------------------------------------------------------===//

#include "KernelArena.h"

namespace takt::rt::test {
namespace {

constexpr double kTolerance = 1e-7;
using Arena = KernelArena<double>;

/// Subtracts what an accumulator held before.
std::vector<double> added(Arena &arena, const BufferRef &ref,
                          const std::vector<double> &before) {
  std::vector<double> now = arena.values(ref);
  for (size_t i = 0; i < now.size(); ++i)
    now[i] -= before[i];
  return now;
}

struct Shape {
  int64_t a, b, c, d;
};
void PrintTo(const Shape &s, std::ostream *os) {
  *os << s.a << 'x' << s.b << 'x' << s.c << 'x' << s.d;
}

class LinearGradient : public testing::TestWithParam<Shape> {};

TEST_P(LinearGradient, MatchesDifferences) {
  auto [rows, in, out, hasBias] = GetParam();
  Arena a;
  BufferRef x = a.random(rows * in), w = a.random(out * in);
  BufferRef b = a.random(out), y = a.make(rows * out);
  BufferRef dy = a.random(rows * out), dx = a.make(rows * in);
  BufferRef dw = a.random(out * in), db = a.random(out);
  auto loss = [&, rows = rows, in = in, out = out, hasBias = hasBias] {
    std::vector<BufferRef> operands = {x, w, b, y};
    if (!hasBias)
      operands.erase(operands.begin() + 2);
    a.run(KernelKind::LinearForward, operands, {rows, in, out, hasBias});
    return dot(a.values(y), a.values(dy));
  };
  a.run(KernelKind::LinearInputGrad, {dy, w, dx}, {rows, in, out});
  EXPECT_LT(relativeError(a.values(dx), numericGrad(a, x, loss)), kTolerance);
  std::vector<double> dw0 = a.values(dw), db0 = a.values(db);
  std::vector<BufferRef> operands = {x, dy, dw, db};
  if (!hasBias)
    operands.pop_back();
  a.run(KernelKind::LinearWeightGrad, operands, {rows, in, out, hasBias});
  EXPECT_LT(relativeError(added(a, dw, dw0), numericGrad(a, w, loss)),
            kTolerance);
  if (hasBias)
    EXPECT_LT(relativeError(added(a, db, db0), numericGrad(a, b, loss)),
              kTolerance);
  else
    EXPECT_EQ(a.values(db), db0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearGradient,
                         testing::Values(Shape{1, 1, 1, 1}, Shape{3, 5, 2, 1},
                                         Shape{7, 4, 9, 0},
                                         Shape{17, 16, 3, 1}));

class LayerNormGradient : public testing::TestWithParam<Shape> {};

TEST_P(LayerNormGradient, MatchesDifferences) {
  int64_t rows = GetParam().a, width = GetParam().b;
  Arena a;
  BufferRef x = a.random(rows * width), gain = a.random(width);
  BufferRef bias = a.random(width), y = a.make(rows * width);
  BufferRef mean = a.make(rows), rstd = a.make(rows);
  BufferRef dy = a.random(rows * width), dx = a.make(rows * width);
  BufferRef dgain = a.random(width), dbias = a.random(width);
  auto loss = [&] {
    a.run(KernelKind::LayerNormForward, {x, gain, bias, y, mean, rstd},
          {rows, width}, {1e-2});
    return dot(a.values(y), a.values(dy));
  };
  loss();
  a.run(KernelKind::LayerNormInputGrad, {x, gain, mean, rstd, dy, dx},
        {rows, width});
  std::vector<double> dgain0 = a.values(dgain), dbias0 = a.values(dbias);
  a.run(KernelKind::LayerNormWeightGrad, {x, mean, rstd, dy, dgain, dbias},
        {rows, width});
  EXPECT_LT(relativeError(a.values(dx), numericGrad(a, x, loss)), kTolerance);
  EXPECT_LT(relativeError(added(a, dgain, dgain0), numericGrad(a, gain, loss)),
            kTolerance);
  EXPECT_LT(relativeError(added(a, dbias, dbias0), numericGrad(a, bias, loss)),
            kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerNormGradient,
                         testing::Values(Shape{1, 2, 0, 0}, Shape{3, 7, 0, 0},
                                         Shape{5, 16, 0, 0},
                                         Shape{2, 35, 0, 0}));

class AttentionGradient : public testing::TestWithParam<Shape> {};

TEST_P(AttentionGradient, MatchesDifferences) {
  auto [samples, positions, heads, headDim] = GetParam();
  std::vector<int64_t> dims = {samples, positions, heads, headDim};
  int64_t n = samples * positions * heads * headDim;
  Arena a;
  BufferRef qkv = a.random(3 * n), out = a.make(n);
  BufferRef lse = a.make(samples * heads * positions);
  BufferRef dout = a.random(n), dqkv = a.random(3 * n);
  BufferRef scratch = a.make(2 * positions * positions);
  auto loss = [&] {
    a.run(KernelKind::AttentionForward, {qkv, out, lse, scratch}, dims);
    return dot(a.values(out), a.values(dout));
  };
  loss();
  a.run(KernelKind::AttentionInputGrad, {qkv, out, lse, dout, dqkv, scratch},
        dims);
  EXPECT_LT(relativeError(a.values(dqkv), numericGrad(a, qkv, loss)),
            kTolerance);
}

// 65 and 130 positions cross the kernel's blocks.
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionGradient,
                         testing::Values(Shape{1, 1, 1, 1}, Shape{2, 5, 3, 4},
                                         Shape{1, 65, 2, 1},
                                         Shape{1, 130, 1, 1}));

TEST(Attention, MatchesTheFormula) {
  int64_t positions = 70, heads = 2, headDim = 3, width = heads * headDim;
  Arena a;
  BufferRef qkv = a.random(positions * 3 * width);
  BufferRef out = a.make(positions * width);
  BufferRef lse = a.make(heads * positions);
  BufferRef scratch = a.make(positions * positions);
  a.run(KernelKind::AttentionForward, {qkv, out, lse, scratch},
        {1, positions, heads, headDim});
  std::vector<double> expected(positions * width), expectedLse;
  const double *x = a.at(qkv);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < positions; ++i) {
      double sum = 0;
      for (int64_t j = 0; j <= i; ++j) {
        double score = 0;
        for (int64_t d = 0; d < headDim; ++d)
          score += x[i * 3 * width + h * headDim + d] *
                   x[j * 3 * width + width + h * headDim + d];
        double weight = std::exp(score / std::sqrt(double(headDim)));
        sum += weight;
        for (int64_t d = 0; d < headDim; ++d)
          expected[i * width + h * headDim + d] +=
              weight * x[j * 3 * width + 2 * width + h * headDim + d];
      }
      for (int64_t d = 0; d < headDim; ++d)
        expected[i * width + h * headDim + d] /= sum;
      expectedLse.push_back(std::log(sum));
    }
  EXPECT_LT(relativeError(a.values(out), expected), 1e-14);
  EXPECT_LT(relativeError(a.values(lse), expectedLse), 1e-14);
}

TEST(EmbeddingGradient, MatchesDifferences) {
  int64_t rows = 11, vocab = 4, width = 3;
  Arena a;
  BufferRef ids = a.ids(rows, vocab), w = a.random(vocab * width);
  BufferRef y = a.make(rows * width), dy = a.random(rows * width);
  BufferRef dw = a.random(vocab * width);
  auto loss = [&] {
    a.run(KernelKind::EmbeddingForward, {ids, w, y}, {rows, vocab, width});
    return dot(a.values(y), a.values(dy));
  };
  std::vector<double> dw0 = a.values(dw);
  a.run(KernelKind::EmbeddingWeightGrad, {ids, dy, dw}, {rows, vocab, width});
  EXPECT_LT(relativeError(added(a, dw, dw0), numericGrad(a, w, loss)),
            kTolerance);
}

TEST(PositionGradient, MatchesDifferences) {
  int64_t samples = 3, positions = 4, width = 5;
  Arena a;
  std::vector<int64_t> dims = {samples, positions, width};
  BufferRef x = a.random(samples * positions * width);
  BufferRef p = a.random(positions * width);
  BufferRef y = a.make(samples * positions * width);
  BufferRef dy = a.random(samples * positions * width);
  BufferRef dp = a.random(positions * width);
  auto loss = [&] {
    a.run(KernelKind::PositionForward, {x, p, y}, dims);
    return dot(a.values(y), a.values(dy));
  };
  std::vector<double> dp0 = a.values(dp);
  a.run(KernelKind::PositionWeightGrad, {dy, dp}, dims);
  EXPECT_LT(relativeError(added(a, dp, dp0), numericGrad(a, p, loss)),
            kTolerance);
  EXPECT_LT(relativeError(a.values(dy), numericGrad(a, x, loss)), kTolerance);
}

TEST(GeluGradient, MatchesDifferences) {
  int64_t n = 37;
  Arena a;
  BufferRef x = a.random(n, 2), y = a.make(n);
  BufferRef dy = a.random(n), dx = a.make(n);
  auto loss = [&] {
    a.run(KernelKind::GeluForward, {x, y}, {n});
    return dot(a.values(y), a.values(dy));
  };
  a.run(KernelKind::GeluInputGrad, {x, dy, dx}, {n});
  EXPECT_LT(relativeError(a.values(dx), numericGrad(a, x, loss)), kTolerance);
}

TEST(ReluGradient, MatchesDifferences) {
  int64_t n = 37;
  Arena a;
  BufferRef x = a.random(n), y = a.make(n);
  BufferRef dy = a.random(n), dx = a.make(n);
  auto loss = [&] {
    a.run(KernelKind::ReluForward, {x, y}, {n});
    return dot(a.values(y), a.values(dy));
  };
  loss();
  a.run(KernelKind::ReluInputGrad, {y, dy, dx}, {n});
  EXPECT_LT(relativeError(a.values(dx), numericGrad(a, x, loss)), kTolerance);
}

class CrossEntropyGradient : public testing::TestWithParam<Shape> {};

TEST_P(CrossEntropyGradient, MatchesDifferences) {
  int64_t rows = GetParam().a, classes = GetParam().b;
  double scale = 0.25;
  Arena a;
  BufferRef logits = a.random(rows * classes, 3);
  BufferRef targets = a.ids(rows, classes);
  BufferRef lse = a.make(rows), value = a.make(1);
  BufferRef grad = a.make(rows * classes);
  auto loss = [&] {
    a.run(KernelKind::CrossEntropyForward, {logits, targets, lse, value},
          {rows, classes}, {scale});
    return a.at(value)[0];
  };
  double expected = 0;
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < classes; ++j)
      sum += std::exp(a.at(logits)[i * classes + j]);
    expected += scale * (std::log(sum) -
                         a.at(logits)[i * classes + a.idsAt(targets)[i]]);
  }
  EXPECT_NEAR(loss(), expected, 1e-13 * rows);
  a.run(KernelKind::CrossEntropyInputGrad, {logits, targets, lse, grad},
        {rows, classes}, {scale});
  EXPECT_LT(relativeError(a.values(grad), numericGrad(a, logits, loss)),
            kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CrossEntropyGradient,
                         testing::Values(Shape{1, 2, 0, 0}, Shape{5, 3, 0, 0},
                                         Shape{4, 33, 0, 0}));

TEST(MseGradient, MatchesDifferences) {
  int64_t n = 19;
  double scale = 0.125;
  Arena a;
  BufferRef x = a.random(n), target = a.random(n);
  BufferRef value = a.make(1), dx = a.make(n);
  auto loss = [&] {
    a.run(KernelKind::MseForward, {x, target, value}, {n}, {scale});
    return a.at(value)[0];
  };
  double expected = 0;
  for (int64_t i = 0; i < n; ++i)
    expected += scale * std::pow(a.at(x)[i] - a.at(target)[i], 2);
  EXPECT_NEAR(loss(), expected, 1e-14);
  a.run(KernelKind::MseInputGrad, {x, target, dx}, {n}, {scale});
  EXPECT_LT(relativeError(a.values(dx), numericGrad(a, x, loss)), kTolerance);
}

} // namespace
} // namespace takt::rt::test
