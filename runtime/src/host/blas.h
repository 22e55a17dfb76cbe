//===- blas.h - dense products ----------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The one BLAS call the kernels use, overloaded on the scalar, row-major.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace takt::rt::host {

enum class Transpose : bool { No, Yes };

/// C[m, n] = alpha op(A) op(B) + beta C, with op(A) [m, k] and op(B) [k, n].
/// C is not read when beta is 0. Runs on the calling thread only. All of m, n,
/// k and the leading dimensions must fit int32.
void gemm(Transpose transA, Transpose transB, int64_t m, int64_t n, int64_t k,
          float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
          float beta, float *c, int64_t ldc);
void gemm(Transpose transA, Transpose transB, int64_t m, int64_t n, int64_t k,
          double alpha, const double *a, int64_t lda, const double *b,
          int64_t ldb, double beta, double *c, int64_t ldc);

/// Makes the library use one thread a call: the ranks are the parallelism.
/// Cheap to call again.
void useOneBlasThread();

} // namespace takt::rt::host
