//===- FloatKernelTests.cpp - kernels in float ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Float kernels against the same kernels in double, the accuracy of the float
// exponential and normal distribution, independence of addresses, and what the
// kernels refuse.
//
//===----------------------------------------------------------------------===//

#include "KernelArena.h"

#include "takt-rt/core/error.h"

#include <cstring>
#include <limits>

namespace takt::rt::test {
namespace {

/// Runs some kernels over an arena and returns all they wrote.
template <typename T>
std::vector<double> runAll(KernelArena<T> &a) {
  int64_t samples = 2, positions = 33, heads = 2, headDim = 8;
  int64_t rows = samples * positions, width = heads * headDim, classes = 50;
  std::vector<double> all;
  auto keep = [&](const BufferRef &ref) {
    std::vector<double> values = a.values(ref);
    all.insert(all.end(), values.begin(), values.end());
  };
  BufferRef ids = a.ids(rows, classes), table = a.random(classes * width);
  BufferRef x = a.make(rows * width), y = a.make(rows * width);
  a.run(KernelKind::EmbeddingForward, {ids, table, x}, {rows, classes, width});
  BufferRef gain = a.random(width), bias = a.random(width);
  BufferRef mean = a.make(rows), rstd = a.make(rows);
  a.run(KernelKind::LayerNormForward, {x, gain, bias, y, mean, rstd},
        {rows, width}, {1e-5});
  keep(y);
  BufferRef w = a.random(3 * width * width, 0.3), b = a.random(3 * width);
  BufferRef qkv = a.make(3 * rows * width);
  a.run(KernelKind::LinearForward, {y, w, b, qkv}, {rows, width, 3 * width, 1});
  keep(qkv);
  BufferRef out = a.make(rows * width), scratch = a.make(2 * 33 * 33);
  BufferRef lse = a.make(samples * heads * positions);
  std::vector<int64_t> dims = {samples, positions, heads, headDim};
  a.run(KernelKind::AttentionForward, {qkv, out, lse, scratch}, dims);
  keep(out);
  BufferRef act = a.make(rows * width);
  a.run(KernelKind::GeluForward, {out, act}, {rows * width});
  keep(act);
  BufferRef head = a.random(classes * width, 0.5);
  BufferRef logits = a.make(rows * classes), dlogits = a.make(rows * classes);
  BufferRef rowLse = a.make(rows), loss = a.make(1);
  a.run(KernelKind::LinearForward, {act, head, logits},
        {rows, width, classes, 0});
  a.run(KernelKind::CrossEntropyForward, {logits, ids, rowLse, loss},
        {rows, classes}, {1.0 / rows});
  keep(loss);
  a.run(KernelKind::CrossEntropyInputGrad, {logits, ids, rowLse, dlogits},
        {rows, classes}, {1.0});
  keep(dlogits);
  BufferRef dact = a.make(rows * width), dout = a.make(rows * width);
  a.run(KernelKind::LinearInputGrad, {dlogits, head, dact},
        {rows, width, classes});
  a.run(KernelKind::GeluInputGrad, {out, dact, dout}, {rows * width});
  keep(dout);
  BufferRef dqkv = a.make(3 * rows * width);
  a.run(KernelKind::AttentionInputGrad, {qkv, out, lse, dout, dqkv, scratch},
        dims);
  keep(dqkv);
  BufferRef dw = a.make(3 * width * width), db = a.make(3 * width);
  a.run(KernelKind::LinearWeightGrad, {y, dqkv, dw, db},
        {rows, width, 3 * width, 1});
  keep(dw);
  keep(db);
  return all;
}

TEST(FloatKernels, MatchDouble) {
  KernelArena<float> single;
  KernelArena<double> twice;
  EXPECT_LT(relativeError(runAll(single), runAll(twice)), 1e-6);
}

TEST(FloatKernels, DoNotDependOnAddresses) {
  KernelArena<float> straight(1, 0), shifted(1, 4);
  EXPECT_EQ(runAll(straight), runAll(shifted));
}

TEST(FloatKernels, GeluIsAccurateEverywhere) {
  int64_t n = 40001;
  KernelArena<float> a;
  BufferRef x = a.make(n), y = a.make(n), one = a.make(n), dx = a.make(n);
  for (int64_t i = 0; i < n; ++i) {
    a.at(x)[i] = float(i - n / 2) * 6e-4f;
    a.at(one)[i] = 1;
  }
  a.run(KernelKind::GeluForward, {x, y}, {n});
  a.run(KernelKind::GeluInputGrad, {x, one, dx}, {n});
  for (int64_t i = 0; i < n; ++i) {
    double v = a.at(x)[i];
    double cdf = 0.5 * std::erfc(-v / std::sqrt(2.0));
    double density = std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
    ASSERT_NEAR(a.at(y)[i], v * cdf, 3e-7 * std::max(1.0, std::fabs(v)))
        << "x = " << v;
    ASSERT_NEAR(a.at(dx)[i], cdf + v * density, 5e-7) << "x = " << v;
  }
}

TEST(FloatKernels, SoftmaxBearsExtremes) {
  int64_t classes = 5;
  KernelArena<float> a;
  BufferRef logits = a.make(classes), target = a.ids(1, 1);
  BufferRef lse = a.make(1), loss = a.make(1), grad = a.make(classes);
  const float values[] = {1e4f, -1e4f, 0.f, -3e38f, 9999.f};
  std::memcpy(a.at(logits), values, sizeof(values));
  a.run(KernelKind::CrossEntropyForward, {logits, target, lse, loss},
        {1, classes}, {1});
  EXPECT_NEAR(a.at(loss)[0], std::log1p(std::exp(-1.0)), 1e-3);
  a.run(KernelKind::CrossEntropyInputGrad, {logits, target, lse, grad},
        {1, classes}, {1});
  EXPECT_EQ(a.at(grad)[1], 0.f);
  EXPECT_EQ(a.at(grad)[3], 0.f);
  a.at(logits)[2] = std::numeric_limits<float>::quiet_NaN();
  a.run(KernelKind::CrossEntropyForward, {logits, target, lse, loss},
        {1, classes}, {1});
  EXPECT_TRUE(std::isnan(a.at(loss)[0]));
}

TEST(ElementKernels, AddAccumulateCopyZero) {
  int64_t n = 21;
  KernelArena<float> a;
  BufferRef x = a.random(n), y = a.random(n), z = a.make(n);
  std::vector<double> before = a.values(y);
  a.run(KernelKind::AddForward, {x, y, z}, {n});
  a.run(KernelKind::Accumulate, {x, y}, {n});
  EXPECT_EQ(a.values(z), a.values(y));
  EXPECT_NE(a.values(y), before);
  a.run(KernelKind::Copy, {x, z}, {n});
  EXPECT_EQ(a.values(z), a.values(x));
  a.run(KernelKind::Zero, {z}, {n});
  EXPECT_EQ(a.values(z), std::vector<double>(n, 0.0));
}

TEST(KernelRefusals, IdsOutsideTheTable) {
  KernelArena<float> a;
  BufferRef ids = a.ids(3, 4), w = a.random(8), y = a.make(6);
  for (int32_t bad : {-1, 4, std::numeric_limits<int32_t>::min()}) {
    a.idsAt(ids)[2] = bad;
    try {
      a.run(KernelKind::EmbeddingForward, {ids, w, y}, {3, 4, 2});
      FAIL() << "id " << bad << " was accepted";
    } catch (const Error &error) {
      EXPECT_EQ(error.code(), ExitCode::BadInput);
      EXPECT_NE(std::string(error.what()).find(std::to_string(bad)),
                std::string::npos);
    }
  }
}

TEST(KernelRefusals, WhatTheHostCannotRun) {
  Kernel kernel;
  kernel.kind = KernelKind::Profiled;
  EXPECT_NE(checkKernel(kernel).value_or("").find("costs only"),
            std::string::npos);
  kernel.kind = KernelKind::GeluForward;
  EXPECT_TRUE(checkKernel(kernel).has_value());
  kernel.operands = {BufferRef{0, 0, 16}, BufferRef{0, 64, 12}};
  kernel.dims = {4};
  EXPECT_NE(checkKernel(kernel).value_or("").find("operand 1"),
            std::string::npos);
  kernel.operands[1].bytes = 16;
  EXPECT_EQ(checkKernel(kernel), std::nullopt);
  kernel.kind = KernelKind::AttentionForward;
  kernel.operands.assign(4, BufferRef{0, 0, Bytes(1) << 60});
  kernel.dims = {1, 1, 1 << 20, 1 << 20};
  EXPECT_NE(checkKernel(kernel).value_or("").find("strides"),
            std::string::npos);
}

} // namespace
} // namespace takt::rt::test
