//===- embedding.cpp - embedding tables -----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Rows of a table by id, and the table of positions. Gradients of one row are
// added in the order of the samples.
//
//===----------------------------------------------------------------------===//

#include "families.h"
#include "vector_math.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace takt::rt::host {

void checkIds(const int32_t *ids, int64_t n, int64_t bound, const char *what) {
  for (int64_t i = 0; i < n; ++i)
    if (ids[i] < 0 || ids[i] >= bound)
      throw Error(fmt::format("{} {} of row {} lies outside [0, {})", what,
                              ids[i], i, bound));
}

namespace {
template <typename T>
TAKT_CLONES void addRow(const T *src, T *dst, int64_t width) {
  for (int64_t j = 0; j < width; ++j)
    dst[j] += src[j];
}

template <typename T>
TAKT_CLONES void addPositions(const T *x, const T *table, T *y, int64_t samples,
                              int64_t tableSize) {
  for (int64_t s = 0; s < samples; ++s, x += tableSize, y += tableSize)
    for (int64_t j = 0; j < tableSize; ++j)
      y[j] = x[j] + table[j];
}
} // namespace

template <typename T>
void embeddingForward(const KernelCall<T> &call) {
  int64_t rows = call.dim(0), vocab = call.dim(1), width = call.dim(2);
  const int32_t *ids = call.ids(0);
  const T *table = call.operand(1);
  T *y = call.operand(2);
  checkIds(ids, rows, vocab, "id");
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(table + ids[i] * width, width, y + i * width);
}
TAKT_INSTANTIATE(embeddingForward)

template <typename T>
void embeddingWeightGrad(const KernelCall<T> &call) {
  int64_t rows = call.dim(0), vocab = call.dim(1), width = call.dim(2);
  const int32_t *ids = call.ids(0);
  const T *dy = call.operand(1);
  T *grad = call.operand(2);
  checkIds(ids, rows, vocab, "id");
  for (int64_t i = 0; i < rows; ++i)
    addRow(dy + i * width, grad + ids[i] * width, width);
}
TAKT_INSTANTIATE(embeddingWeightGrad)

template <typename T>
void positionForward(const KernelCall<T> &call) {
  addPositions<T>(call.operand(0), call.operand(1), call.operand(2),
                  call.dim(0), call.dim(1) * call.dim(2));
}
TAKT_INSTANTIATE(positionForward)

template <typename T>
void positionWeightGrad(const KernelCall<T> &call) {
  int64_t tableSize = call.dim(1) * call.dim(2);
  const T *dy = call.operand(0);
  for (int64_t s = 0; s < call.dim(0); ++s)
    addRow<T>(dy + s * tableSize, call.operand(1), tableSize);
}
TAKT_INSTANTIATE(positionWeightGrad)

} // namespace takt::rt::host
