//===- TwoBw.h - PipeDream-2BW's planner ---------------------- -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Equal blocks cut into d equal stages, each on w replicas, with micro-batches
// of b samples, with or without recomputation (Narayanan et al. 2021, "Memory-
// Efficient Pipeline-Parallel DNN Training", ICML, arXiv 2006.09503). A device
// holds, of W bytes of parameters, A(b) of activations of the whole model and
// I(b) of a stage's input,
//
//     v W / d + A(b) / d + d I(b)   with recomputation
//     v W / d + A(b)     + d I(b)   without: d micro-batches of A(b) / d
//
// with v = 2 versions under 2BW and 1 under Flush; GPipe holds m micro-batches
// in place of d. A micro-batch passes every
//
//     t = max(compute + transfers, all-reduce / m)
//
// where recomputation makes compute 4/3; under Flush and GPipe the pipeline
// fills once a batch, which takes (m + d - 1) t.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

enum class TwoBwSchedule : uint8_t {
  DoubleBuffered, ///< 2BW: no flush, two versions of the weights
  Flush,          ///< 1F1B with a flush each batch
  GPipe,          ///< all forwards, then all backwards
};

struct TwoBwProblem {
  int64_t blocks = 1;
  double parameterBytes = 0;           ///< W
  double activationBytesPerSample = 0; ///< A(1)
  double inputBytesPerSample = 0;      ///< I(1)
  /// Of all blocks, forward and backward, by micro-batch: b samples take
  /// fixed + perSample b seconds.
  double fixedSeconds = 0, secondsPerSample = 0;
  int64_t devices = 1, devicesPerServer = 1;
  double withinRate = 0, acrossRate = 0; ///< bytes/s in and between servers
  double memoryBytes = 0;                ///< of a device
  int64_t batch = 1;                     ///< most samples between two updates
  std::vector<int64_t> microBatches{1};  ///< b to choose from, ascending
  TwoBwSchedule schedule = TwoBwSchedule::DoubleBuffered;

  std::optional<std::string> check() const;
};

struct TwoBwPlan {
  int64_t replicas = 1, depth = 1, microBatch = 1; ///< w, d, b
  bool recompute = false;
  int64_t accumulated = 1; ///< g: a pipeline takes m = d g micro-batches
  double bytes = 0;        ///< of a device
  double samplesPerSecond = 0;
};

/// The best of all (w, d, b, recompute) with w d devices at most, d a divisor
/// of the blocks and b w d g samples at most in a batch; of equal ones that
/// with fewer devices. Nothing if none fits.
std::optional<TwoBwPlan> planTwoBw(const TwoBwProblem &problem);

/// One layout; nothing if it has no whole batch or does not fit.
std::optional<TwoBwPlan> valueTwoBw(const TwoBwProblem &problem,
                                    int64_t replicas, int64_t depth,
                                    int64_t microBatch, bool recompute);

/// The formulas above, for m micro-batches a batch and pipeline.
double twoBwMemory(const TwoBwProblem &problem, int64_t depth,
                   int64_t microBatch, bool recompute, int64_t perBatch);

/// Version of the weights that micro-batch k, counted from 1, uses on every
/// stage, both ways: max(floor((k - 1) / m) - 1, 0).
int64_t twoBwVersion(int64_t microBatch, int64_t perBatch);

std::optional<std::string> verify(const TwoBwProblem &problem,
                                  const TwoBwPlan &plan);

} // namespace takt
