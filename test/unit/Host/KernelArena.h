//===- KernelArena.h - kernels on tensors of a test -------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// An arena in which a test lays out tensors, fills them with random values and
// runs kernels over them, in float or double.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/data/random.h"
#include "takt-rt/host/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>

namespace takt::rt::test {

template <typename T>
class KernelArena {
public:
  explicit KernelArena(uint64_t seed = 1, Bytes shift = 0) : seed(seed) {
    pools.resize(1);
    pools[0].slotBytes = Bytes(1) << 20;
    storage.reset(static_cast<std::byte *>(std::aligned_alloc(
        kAlignment, size_t(pools[0].slotBytes) * sizeof(T) / 4)));
    top = shift;
  }

  /// Room for n elements, zero.
  BufferRef make(int64_t n) {
    BufferRef ref{0, top, n * 4};
    top = alignUp(top + n * 4 - shiftOf()) + shiftOf();
    EXPECT_LE(top, pools[0].slotBytes);
    std::fill_n(at(ref), n, T(0));
    return ref;
  }
  /// n standard normal elements; the same for every scalar type.
  BufferRef random(int64_t n, double scale = 1) {
    BufferRef ref = make(n);
    for (int64_t i = 0; i < n; ++i)
      at(ref)[i] = static_cast<T>(scale * normal(seed, drawn++));
    return ref;
  }
  BufferRef ids(int64_t n, int64_t bound) {
    BufferRef ref = make(n);
    for (int64_t i = 0; i < n; ++i)
      view().ids(ref)[i] = int32_t(draw(seed, drawn++) % bound);
    return ref;
  }

  T *at(const BufferRef &ref) { return view().elements(ref); }
  int32_t *idsAt(const BufferRef &ref) { return view().ids(ref); }
  int64_t size(const BufferRef &ref) const { return ref.bytes / 4; }

  void run(KernelKind kind, std::vector<BufferRef> operands,
           std::vector<int64_t> dims, std::vector<double> scalars = {},
           RunArgs args = {}) {
    Kernel kernel{kind,
                  Phase::Forward,
                  -1,
                  std::move(operands),
                  std::move(dims),
                  std::move(scalars)};
    ASSERT_EQ(checkKernel(kernel).value_or(""), "");
    runKernel(kernel, view(), args);
  }

  std::vector<double> values(const BufferRef &ref) {
    return std::vector<double>(at(ref), at(ref) + size(ref));
  }

private:
  SlotView<T> view() { return SlotView<T>(storage.get(), pools); }
  Bytes shiftOf() const { return top % kAlignment; }

  struct Free {
    void operator()(std::byte *p) const { std::free(p); }
  };
  uint64_t seed;
  uint64_t drawn = 0;
  Bytes top = 0;
  std::vector<Pool> pools;
  std::unique_ptr<std::byte, Free> storage;
};

inline double dot(const std::vector<double> &a, const std::vector<double> &b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// |a - b| / (|a| + |b|) over vectors.
inline double relativeError(const std::vector<double> &a,
                            const std::vector<double> &b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += a[i] * a[i] + b[i] * b[i];
  }
  return size > 0 ? std::sqrt(difference / size) : 0;
}

/// Central differences of `loss` by the elements of a tensor.
inline std::vector<double> numericGrad(KernelArena<double> &arena,
                                       const BufferRef &x,
                                       const std::function<double()> &loss,
                                       double h = 1e-5) {
  std::vector<double> grad;
  for (int64_t i = 0; i < arena.size(x); ++i) {
    double value = arena.at(x)[i];
    arena.at(x)[i] = value + h;
    double above = loss();
    arena.at(x)[i] = value - h;
    double below = loss();
    arena.at(x)[i] = value;
    grad.push_back((above - below) / (2 * h));
  }
  return grad;
}

} // namespace takt::rt::test
