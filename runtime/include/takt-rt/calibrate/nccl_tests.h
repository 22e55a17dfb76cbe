//===- nccl_tests.h - what nccl-tests print ---------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The tables of all_reduce_perf and sendrecv_perf
// (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md): bytes, microseconds,
// GB/s. A ring of n ranks that reduces S bytes takes 2 (n - 1) messages of S /
// n bytes, one after the other; a sendrecv takes one message of S.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/calibrate/fit.h"

#include <string>
#include <vector>

namespace takt::rt {

struct NcclTable {
  bool allReduce = true; ///< otherwise sendrecv
  int32_t ranks = 0;
  int32_t hosts = 0;               ///< 0: the text does not say
  std::vector<TransferTime> times; ///< as printed, of S bytes
};

/// Throws `Error` (BadInput) with the line: no table, another test, figures
/// that contradict each other or the number of ranks.
NcclTable parseNcclTests(const std::string &text, const std::string &path);

/// The link that one message crosses.
LinkFit fitNcclTests(const NcclTable &table);

} // namespace takt::rt
