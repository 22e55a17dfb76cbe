//===- Pipelines.h - the passes in their order ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// From `model.graph` and `pipe.cluster` to a program with communication, which
// `takt/Lower` turns into a plan.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Transforms/Passes.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace takt {

/// What a user may decide; the defaults leave everything to the compiler.
struct PipelineOptions {
  std::string profile;           ///< file of measured costs; empty: roofline
  int64_t stages = 0;            ///< exact number; 0: free
  int64_t maxStages = 0;         ///< 0: no limit
  std::vector<int64_t> cuts;     ///< segments before which a stage ends
  int64_t replicas = 0;          ///< of every stage; 0: free
  std::string schedule = "1f1b"; ///< "1f1b" or "gpipe"
  int64_t workLimit = int64_t(4) << 30; ///< of stage assignment
  bool overlap = true;     ///< gradient buckets beside the last backward
  int64_t bucketSize = 0;  ///< bytes that close a bucket; 0: by the stage
  int64_t reduceLanes = 1; ///< of each rank: 1 or 2
};

/// Adds every pass. The module needs one graph and one cluster.
void buildTaktPipeline(mlir::OpPassManager &manager,
                       const PipelineOptions &options);

/// Registers it as `takt-pipeline`, with an option for each field.
void registerTaktPipeline();

} // namespace takt
