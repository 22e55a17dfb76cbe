//===- OptimizerTests.cpp - updates against their formulas ----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Several updates of a few parameters against the formulas written down as
// plainly as can be.
//
//===----------------------------------------------------------------------===//

#include "KernelArena.h"

namespace takt::rt::test {
namespace {

constexpr int64_t kSize = 23;
constexpr int64_t kSteps = 4;
constexpr double kRate = 0.05, kDecay = 0.1;

/// Runs `kSteps` updates by a kernel, each from gradients drawn anew, and in
/// parallel the formula on every element.
template <typename Formula>
void compare(KernelKind kind, int states, const std::vector<double> &scalars,
             Formula formula) {
  KernelArena<double> a;
  std::vector<BufferRef> operands = {a.random(kSize), a.make(kSize)};
  for (int s = 0; s < states; ++s)
    operands.push_back(a.make(kSize));
  std::vector<double> expected = a.values(operands[0]);
  std::vector<double> first(kSize), second(kSize);
  for (int64_t step = 0; step < kSteps; ++step) {
    BufferRef drawn = a.random(kSize);
    a.run(KernelKind::Copy, {drawn, operands[1]}, {kSize});
    for (int64_t i = 0; i < kSize; ++i)
      formula(expected[i], a.at(drawn)[i], first[i], second[i], step + 1);
    a.run(kind, operands, {kSize}, scalars, {kRate, step});
    EXPECT_LT(relativeError(a.values(operands[0]), expected), 1e-14)
        << "step " << step;
    EXPECT_EQ(a.values(operands[1]), std::vector<double>(kSize, 0.0));
  }
}

TEST(Optimizer, Sgd) {
  compare(KernelKind::SgdUpdate, 0, {kDecay},
          [](double &w, double g, double &, double &, int64_t) {
            w = w - kRate * (g + kDecay * w);
          });
}

TEST(Optimizer, Momentum) {
  compare(KernelKind::MomentumUpdate, 1, {0.9, kDecay},
          [](double &w, double g, double &v, double &, int64_t) {
            v = 0.9 * v + g + kDecay * w;
            w = w - kRate * v;
          });
}

TEST(Optimizer, AdamW) {
  compare(KernelKind::AdamWUpdate, 2, {0.9, 0.99, 1e-3, kDecay},
          [](double &w, double g, double &m, double &v, int64_t t) {
            m = 0.9 * m + 0.1 * g;
            v = 0.99 * v + 0.01 * g * g;
            double mHat = m / (1 - std::pow(0.9, t));
            double vHat = v / (1 - std::pow(0.99, t));
            w = w - kRate * kDecay * w;
            w = w - kRate * mHat / (std::sqrt(vHat) + 1e-3);
          });
}

} // namespace
} // namespace takt::rt::test
