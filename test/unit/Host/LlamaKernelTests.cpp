//===- LlamaKernelTests.cpp - kernels of Llama-like models ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Root-mean-square norms, rotary positions, grouped attention and gated units:
// gradients in double against central differences, forward passes against their
// formulas, float against double, and what the host refuses.
//
//===----------------------------------------------------------------------===//

#include "KernelArena.h"

namespace takt::rt::test {
namespace {

constexpr double kTolerance = 1e-7;
using Arena = KernelArena<double>;

struct Rows {
  int64_t rows, width;
};
void PrintTo(const Rows &s, std::ostream *os) {
  *os << s.rows << 'x' << s.width;
}

class RmsNorm : public testing::TestWithParam<Rows> {};

TEST_P(RmsNorm, GradientMatchesDifferences) {
  auto [rows, width] = GetParam();
  std::vector<int64_t> dims = {rows, width};
  Arena a;
  BufferRef x = a.random(rows * width), gain = a.random(width);
  BufferRef y = a.make(rows * width), rstd = a.make(rows);
  BufferRef dy = a.random(rows * width), dx = a.make(rows * width);
  BufferRef dgain = a.random(width);
  auto loss = [&] {
    a.run(KernelKind::RmsNormForward, {x, gain, y, rstd}, dims, {1e-2});
    return dot(a.values(y), a.values(dy));
  };
  loss();
  a.run(KernelKind::RmsNormInputGrad, {x, gain, rstd, dy, dx}, dims);
  std::vector<double> sums = a.values(dgain);
  a.run(KernelKind::RmsNormWeightGrad, {x, rstd, dy, dgain}, dims);
  std::vector<double> added = a.values(dgain);
  for (size_t i = 0; i < added.size(); ++i)
    added[i] -= sums[i];
  EXPECT_LT(relativeError(a.values(dx), numericGrad(a, x, loss)), kTolerance);
  EXPECT_LT(relativeError(added, numericGrad(a, gain, loss)), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RmsNorm,
                         testing::Values(Rows{1, 1}, Rows{3, 7}, Rows{5, 16},
                                         Rows{2, 35}));

TEST(RmsNormKernel, MatchesTheFormula) {
  int64_t rows = 3, width = 20;
  Arena a;
  BufferRef x = a.random(rows * width), gain = a.random(width);
  BufferRef y = a.make(rows * width), rstd = a.make(rows);
  a.run(KernelKind::RmsNormForward, {x, gain, y, rstd}, {rows, width}, {0.25});
  for (int64_t i = 0; i < rows; ++i) {
    double squares = 0;
    for (int64_t j = 0; j < width; ++j)
      squares += std::pow(a.at(x)[i * width + j], 2);
    double scale = 1 / std::sqrt(squares / width + 0.25);
    EXPECT_NEAR(a.at(rstd)[i], scale, 1e-14);
    for (int64_t j = 0; j < width; ++j)
      EXPECT_NEAR(a.at(y)[i * width + j],
                  a.at(x)[i * width + j] * scale * a.at(gain)[j], 1e-13);
  }
}

struct Heads {
  int64_t samples, positions, heads, kvHeads, headDim;
  int64_t columns() const { return (heads + 2 * kvHeads) * headDim; }
};
void PrintTo(const Heads &s, std::ostream *os) {
  *os << s.samples << 'x' << s.positions << 'x' << s.heads << '/' << s.kvHeads
      << 'x' << s.headDim;
}

class GroupedAttention : public testing::TestWithParam<Heads> {};

TEST_P(GroupedAttention, GradientMatchesDifferences) {
  const Heads s = GetParam();
  std::vector<int64_t> dims = {s.samples, s.positions, s.heads, s.headDim,
                               s.kvHeads};
  int64_t in = s.samples * s.positions * s.columns();
  int64_t n = s.samples * s.positions * s.heads * s.headDim;
  Arena a;
  BufferRef qkv = a.random(in), out = a.make(n);
  BufferRef lse = a.make(s.samples * s.heads * s.positions);
  BufferRef dout = a.random(n), dqkv = a.random(in);
  BufferRef scratch = a.make(2 * s.positions * s.positions);
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

// Grouped heads compute what heads with copies of their keys and values do.
TEST_P(GroupedAttention, EqualsRepeatedKeysAndValues) {
  const Heads s = GetParam();
  int64_t rows = s.samples * s.positions, width = s.heads * s.headDim;
  Arena a;
  BufferRef grouped = a.random(rows * s.columns());
  BufferRef whole = a.make(rows * 3 * width);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t d = 0; d < s.headDim; ++d) {
        const double *from = a.at(grouped) + row * s.columns();
        double *to = a.at(whole) + row * 3 * width + h * s.headDim + d;
        int64_t shared = h / (s.heads / s.kvHeads) * s.headDim + d;
        to[0] = from[h * s.headDim + d];
        to[width] = from[width + shared];
        to[2 * width] = from[width + s.kvHeads * s.headDim + shared];
      }
  BufferRef out = a.make(rows * width), expected = a.make(rows * width);
  BufferRef lse = a.make(s.samples * s.heads * s.positions);
  BufferRef scratch = a.make(s.positions * s.positions);
  a.run(KernelKind::AttentionForward, {grouped, out, lse, scratch},
        {s.samples, s.positions, s.heads, s.headDim, s.kvHeads});
  a.run(KernelKind::AttentionForward, {whole, expected, lse, scratch},
        {s.samples, s.positions, s.heads, s.headDim});
  EXPECT_EQ(a.values(out), a.values(expected));
}

INSTANTIATE_TEST_SUITE_P(Shapes, GroupedAttention,
                         testing::Values(Heads{1, 1, 2, 1, 1},
                                         Heads{2, 5, 4, 2, 3},
                                         Heads{1, 6, 3, 3, 2},
                                         Heads{1, 66, 2, 1, 1}));

class Rotary : public testing::TestWithParam<Heads> {};

TEST_P(Rotary, GradientMatchesDifferences) {
  const Heads s = GetParam();
  std::vector<int64_t> dims = {s.samples, s.positions, s.heads + s.kvHeads,
                               s.headDim, s.columns()};
  int64_t n = s.samples * s.positions * s.columns();
  Arena a;
  BufferRef x = a.random(n), y = a.make(n), dy = a.random(n), dx = a.random(n);
  auto loss = [&] {
    a.run(KernelKind::RotaryForward, {x, y}, dims, {100});
    return dot(a.values(y), a.values(dy));
  };
  a.run(KernelKind::RotaryInputGrad, {dy, dx}, dims, {100});
  EXPECT_LT(relativeError(a.values(dx), numericGrad(a, x, loss)), kTolerance);
}

// 132 elements a head are more pairs than the kernel keeps angles of at once.
INSTANTIATE_TEST_SUITE_P(Shapes, Rotary,
                         testing::Values(Heads{1, 1, 1, 1, 2},
                                         Heads{2, 5, 2, 1, 6},
                                         Heads{1, 3, 1, 1, 132}));

TEST(RotaryKernel, ProductsDependOnTheDistanceOnly) {
  int64_t positions = 9, headDim = 8;
  Arena a;
  BufferRef x = a.make(positions * headDim), y = a.make(positions * headDim);
  BufferRef row = a.random(headDim);
  for (int64_t t = 0; t < positions; ++t)
    std::copy_n(a.at(row), headDim, a.at(x) + t * headDim);
  a.run(KernelKind::RotaryForward, {x, y}, {1, positions, 1, headDim, headDim},
        {50});
  auto product = [&](int64_t s, int64_t t) {
    return std::inner_product(a.at(y) + s * headDim,
                              a.at(y) + (s + 1) * headDim,
                              a.at(y) + t * headDim, 0.0);
  };
  for (int64_t distance = 0; distance < positions; ++distance)
    for (int64_t t = 0; t + distance < positions; ++t)
      EXPECT_NEAR(product(t, t + distance), product(0, distance), 1e-12);
  EXPECT_NE(product(0, 1), product(0, 0));
}

TEST(RotaryKernel, TurnsByPowersOfTheta) {
  Arena a;
  BufferRef x = a.make(3 * 5), y = a.make(3 * 5);
  for (int64_t t = 0; t < 3; ++t) {
    const double values[] = {1, 1, 0, 0, 7}; // the last is no part of the head
    std::copy_n(values, 5, a.at(x) + 5 * t);
  }
  a.run(KernelKind::RotaryForward, {x, y}, {1, 3, 1, 4, 5}, {16});
  for (int64_t t = 0; t < 3; ++t) {
    EXPECT_NEAR(a.at(y)[5 * t], std::cos(double(t)), 1e-15);
    EXPECT_NEAR(a.at(y)[5 * t + 1], std::cos(t / 4.0), 1e-15);
    EXPECT_NEAR(a.at(y)[5 * t + 2], std::sin(double(t)), 1e-15);
    EXPECT_NEAR(a.at(y)[5 * t + 3], std::sin(t / 4.0), 1e-15);
    EXPECT_EQ(a.at(y)[5 * t + 4], 7);
  }
}

double gateValue(int64_t activation, double x) {
  if (activation == 1)
    return x / (1 + std::exp(-x));
  if (activation == 2)
    return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
  return x * 0.5 *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

class Glu : public testing::TestWithParam<int64_t> {};

TEST_P(Glu, MatchesFormulaAndDifferences) {
  int64_t rows = 3, width = 11;
  std::vector<int64_t> dims = {rows, width, GetParam()};
  Arena a;
  BufferRef x = a.random(2 * rows * width, 2), y = a.make(rows * width);
  BufferRef dy = a.random(rows * width), dx = a.make(2 * rows * width);
  auto loss = [&] {
    a.run(KernelKind::GluForward, {x, y}, dims);
    return dot(a.values(y), a.values(dy));
  };
  loss();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j) {
      const double *row = a.at(x) + 2 * i * width;
      EXPECT_NEAR(a.at(y)[i * width + j],
                  gateValue(GetParam(), row[j]) * row[width + j], 1e-14);
    }
  a.run(KernelKind::GluInputGrad, {x, dy, dx}, dims);
  EXPECT_LT(relativeError(a.values(dx), numericGrad(a, x, loss)), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Activations, Glu, testing::Values(1, 2, 3));

TEST(GeluTanhKernel, MatchesFormulaAndDifferences) {
  int64_t n = 37;
  Arena a;
  BufferRef x = a.random(n, 2), y = a.make(n);
  BufferRef dy = a.random(n), dx = a.make(n);
  auto loss = [&] {
    a.run(KernelKind::GeluTanhForward, {x, y}, {n});
    return dot(a.values(y), a.values(dy));
  };
  loss();
  for (int64_t i = 0; i < n; ++i)
    EXPECT_NEAR(a.at(y)[i], gateValue(3, a.at(x)[i]), 1e-14);
  a.run(KernelKind::GeluTanhInputGrad, {x, dy, dx}, {n});
  EXPECT_LT(relativeError(a.values(dx), numericGrad(a, x, loss)), kTolerance);
}

// A block of a Llama-like model: every new kernel, forward and backward.
template <typename T>
std::vector<double> runBlock(KernelArena<T> &a) {
  const Heads s{2, 19, 4, 2, 8};
  int64_t rows = s.samples * s.positions, width = s.heads * s.headDim;
  std::vector<double> all;
  auto keep = [&](const BufferRef &ref) {
    std::vector<double> values = a.values(ref);
    all.insert(all.end(), values.begin(), values.end());
  };
  std::vector<int64_t> heads = {s.samples, s.positions, s.heads, s.headDim,
                                s.kvHeads};
  std::vector<int64_t> turned = {s.samples, s.positions, s.heads + s.kvHeads,
                                 s.headDim, s.columns()};
  std::vector<int64_t> gate = {rows, width / 2, 1};
  BufferRef x = a.random(rows * s.columns()), y = a.make(rows * s.columns());
  BufferRef gain = a.random(s.columns()), rstd = a.make(rows);
  a.run(KernelKind::RmsNormForward, {x, gain, y, rstd}, {rows, s.columns()},
        {1e-5});
  BufferRef qkv = a.make(rows * s.columns());
  a.run(KernelKind::RotaryForward, {y, qkv}, turned, {1e4});
  BufferRef out = a.make(rows * width), scratch = a.make(2 * 19 * 19);
  BufferRef lse = a.make(s.samples * s.heads * s.positions);
  a.run(KernelKind::AttentionForward, {qkv, out, lse, scratch}, heads);
  BufferRef gated = a.make(rows * width / 2), dout = a.make(rows * width);
  a.run(KernelKind::GluForward, {out, gated}, gate);
  keep(gated);
  a.run(KernelKind::GluInputGrad, {out, gated, dout}, gate);
  BufferRef dqkv = a.make(rows * s.columns()), dy = a.make(rows * s.columns());
  a.run(KernelKind::AttentionInputGrad, {qkv, out, lse, dout, dqkv, scratch},
        heads);
  a.run(KernelKind::RotaryInputGrad, {dqkv, dy}, turned, {1e4});
  keep(dy);
  BufferRef dx = a.make(rows * s.columns()), dgain = a.make(s.columns());
  a.run(KernelKind::RmsNormInputGrad, {x, gain, rstd, dy, dx},
        {rows, s.columns()});
  a.run(KernelKind::RmsNormWeightGrad, {x, rstd, dy, dgain},
        {rows, s.columns()});
  keep(dx);
  keep(dgain);
  return all;
}

TEST(LlamaKernels, FloatMatchesDouble) {
  KernelArena<float> single, shifted(1, 4);
  KernelArena<double> twice;
  std::vector<double> values = runBlock(single);
  EXPECT_LT(relativeError(values, runBlock(twice)), 2e-6);
  EXPECT_EQ(values, runBlock(shifted)); // addresses do not matter
}

TEST(LlamaKernels, GatesBearExtremes) {
  KernelArena<float> a;
  const float values[] = {-1e10f, -200.f, 0.f, 200.f, 1e10f};
  BufferRef x = a.make(5), y = a.make(5), one = a.make(5), dx = a.make(5);
  std::copy_n(values, 5, a.at(x));
  std::fill_n(a.at(one), 5, 1.f);
  a.run(KernelKind::GeluTanhForward, {x, y}, {5});
  a.run(KernelKind::GeluTanhInputGrad, {x, one, dx}, {5});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(a.at(y)[i], std::max(values[i], 0.f));
    EXPECT_EQ(a.at(dx)[i], i < 2 ? 0.f : i == 2 ? 0.5f : 1.f);
  }
}

std::string refusal(KernelKind kind, size_t operands, std::vector<int64_t> dims,
                    std::vector<double> scalars = {}) {
  Kernel kernel{kind,
                Phase::Forward,
                0,
                std::vector<BufferRef>(operands, {0, 0, 1 << 20}),
                std::move(dims),
                std::move(scalars)};
  return checkKernel(kernel).value_or("");
}

TEST(LlamaKernels, WhatTheHostRefuses) {
  EXPECT_EQ(refusal(KernelKind::AttentionForward, 4, {1, 2, 4, 2, 3}),
            "kernel 'attention_forward' has 4 heads for 3 of keys and values");
  EXPECT_EQ(refusal(KernelKind::AttentionForward, 4, {1, 2, 4, 2, 2, 1}),
            "kernel 'attention_forward' takes 4 dims, not 6");
  EXPECT_EQ(refusal(KernelKind::RotaryForward, 2, {1, 2, 2, 3, 8}, {1e4}),
            "kernel 'rotary_forward' turns 2 heads of 3 elements in rows of 8");
  EXPECT_EQ(refusal(KernelKind::RotaryForward, 2, {1, 2, 3, 4, 8}, {1e4}),
            "kernel 'rotary_forward' turns 3 heads of 4 elements in rows of 8");
  EXPECT_EQ(refusal(KernelKind::RotaryInputGrad, 2, {1, 2, 2, 4, 8}, {0}),
            "kernel 'rotary_input_grad' has a theta of 0");
  EXPECT_EQ(refusal(KernelKind::GluForward, 2, {3, 4, 4}),
            "kernel 'glu_forward' has an unknown activation 4");
  EXPECT_EQ(refusal(KernelKind::RmsNormForward, 4, {1 << 10, 1 << 10}, {1e-5}),
            "operand 0 of kernel 'rms_norm_forward' has 1048576 bytes where "
            "4194304 are needed");
}

} // namespace
} // namespace takt::rt::test
