//===- blas.cpp - dense products ------------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Products go to OpenBLAS, which picks the code for the machine's vectors.
//
//===----------------------------------------------------------------------===//

#include "blas.h"

#include <cblas.h>

#include <mutex>

namespace takt::rt::host {

static CBLAS_TRANSPOSE flag(Transpose t) {
  return t == Transpose::Yes ? CblasTrans : CblasNoTrans;
}

void gemm(Transpose transA, Transpose transB, int64_t m, int64_t n, int64_t k,
          float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
          float beta, float *c, int64_t ldc) {
  cblas_sgemm(CblasRowMajor, flag(transA), flag(transB), m, n, k, alpha, a, lda,
              b, ldb, beta, c, ldc);
}

void gemm(Transpose transA, Transpose transB, int64_t m, int64_t n, int64_t k,
          double alpha, const double *a, int64_t lda, const double *b,
          int64_t ldb, double beta, double *c, int64_t ldc) {
  cblas_dgemm(CblasRowMajor, flag(transA), flag(transB), m, n, k, alpha, a, lda,
              b, ldb, beta, c, ldc);
}

void useOneBlasThread() {
  static std::once_flag once;
  std::call_once(once, [] { openblas_set_num_threads(1); });
}

} // namespace takt::rt::host
