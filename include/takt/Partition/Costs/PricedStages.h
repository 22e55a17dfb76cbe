//===- PricedStages.h - stages by time and price -------------- -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A chain on devices that are paid by the second, of classes with memory,
// speed, bandwidth and price of their own (Liu et al. 2022, FuncPipe, arXiv
// 2204.13561). Each of d pipelines runs M / d micro-batches, all forwards
// before all backwards; what passes between stages goes through storage, up at
// the sender's bandwidth and down at the receiver's. With t_s the time of stage
// s and u the uploads and downloads of activations and gradients, one
// micro-batch each,
//
//     T = sum_s t_s + sum u + (M / d - 1) max(t_s, u) + max_s sync_s
//     price = T d sum_s price_s
//
// and sync_s the gradients' scatter-reduce among d replicas through storage, in
// passes of s / bandwidth: 3 - 2 / d plain, 2 with uploads beside downloads.
// Which of time and price matters how much is the user's: all plans that no
// other beats in both are returned.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Costs/Antichains.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

struct DeviceClass {
  std::string name;
  double speed = 1;          ///< work of the profile per second
  double bytesPerSecond = 0; ///< each way
  double memoryBytes = 0;
  double price = 0; ///< of a second
};

struct PricedProblem {
  std::vector<ProfiledNode> layers; ///< of one micro-batch, in chain order
  std::vector<DeviceClass> classes;
  std::vector<int64_t> replicaOptions{1}; ///< d: divisors of microBatches
  int64_t microBatches = 1;
  int64_t maxStages = 0;  ///< 0: no limit
  double stateFactor = 3; ///< bytes kept for each byte of parameters
  bool duplex = true;     ///< uploads beside downloads in the scatter-reduce

  std::optional<std::string> check() const;
};

struct PricedStage {
  int32_t begin = 0, end = 0; ///< layers [begin, end)
  int32_t deviceClass = 0;
};

struct PricedPlan {
  std::vector<PricedStage> stages;
  int64_t replicas = 1;
  double seconds = 0, price = 0;

  /// `timeWeight` seconds + `priceWeight` price.
  double objective(double timeWeight, double priceWeight) const {
    return timeWeight * seconds + priceWeight * price;
  }
};

/// Plans that no other beats in time and price, from the shortest to the
/// cheapest: seconds ascend and prices fall, both strictly. Empty if none fits.
std::vector<PricedPlan> paretoPlans(const PricedProblem &problem);

/// The one of least objective, the shorter of equal ones: it is a Pareto plan.
std::optional<PricedPlan> choosePriced(const PricedProblem &problem,
                                       double timeWeight, double priceWeight);

/// All plans one by one; for tests.
std::vector<PricedPlan> bruteForcePriced(const PricedProblem &problem);

/// Passes of the gradients over the link of each of `replicas`.
double storagePasses(int64_t replicas, bool duplex);

std::optional<std::string> verify(const PricedProblem &problem,
                                  const PricedPlan &plan);

} // namespace takt
