//===- Mixed.h - stage assignment on unequal devices ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A chain is cut into stages as in takt/Partition/Problem.h, on a cluster of
// several *pools*: equal nodes of devices of one kind. Every stage has its
// replicas in one pool; times, memory and the link in a node are the pool's,
// and what leaves a node takes the network. With the time of a step
//
//     T = sum_s t_s + sum_b c_b + (m - 1) max(t_s, c_b) + max_s a_s
//
// of that header, the objective is T, or the price of a step: T times what the
// devices used cost for as long. Paying for time is the objective of Liu et al.
// 2022 (FuncPipe, arXiv 2204.13561), whose own rules are in
// takt/Partition/Costs/PricedStages.h.
//
// Prices are counted in millionths of the currency, for an hour of one device.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Partition/Problem.h"

namespace takt {

/// More pools than this are refused.
constexpr int32_t kMaxPools = 8;

struct DevicePool {
  std::string kind;           ///< of its devices
  int64_t devices = 1;        ///< a multiple of `devicesPerNode`
  int64_t devicesPerNode = 1; ///< nodes are equal
  rt::Link intraNode;
  Bytes memory = 0;                     ///< of each device; 0 = unlimited
  int64_t price = 0;                    ///< millionths for an hour of a device
  std::vector<std::vector<Nanos>> time; ///< by segment and replica option
  std::vector<std::vector<Nanos>> update; ///< likewise
};

enum class StageObjective : uint8_t { Time, Price };

struct MixedProblem {
  /// Segments, limits and the network. Its times, its devices and their memory
  /// are not asked, and no rank has several stages.
  PartitionProblem chain;
  std::vector<DevicePool> pools;
  StageObjective objective = StageObjective::Time;
  Nanos maxTime = 0;    ///< of a step; 0: no limit
  double maxPrice = -1; ///< of a step, in the currency; below 0: no limit

  /// First fault in the problem, or nothing.
  std::optional<std::string> check() const;
};

struct MixedStage {
  int64_t begin = 0, end = 0; ///< segments [begin, end)
  int64_t option = 0;         ///< index into replicaOptions
  int32_t pool = 0;
  int64_t firstDevice = 0; ///< counted in its pool
  // Filled by evaluate(), as in StageChoice:
  Nanos time = 0, transfer = 0, allReduce = 0;
  Bytes memory = 0;
  int64_t inFlight = 0;
};

struct MixedPartition {
  std::vector<MixedStage> stages;
  Nanos time = 0;   ///< of a step
  int64_t rate = 0; ///< millionths an hour, of all devices used
  /// No assignment that keeps the limits takes less time or, if that is the
  /// objective, costs less than these devices for so long.
  Nanos bound = 0;
  std::string method; ///< "exact" or "heuristic (work limit)"
  int64_t work = 0;   ///< transitions looked at

  /// Of a step, in the currency.
  double price() const;
  double gap() const {
    return bound > 0 ? double(time - bound) / double(bound) : 0;
  }
};

/// A way out, and the pool that it is about; -1: none.
struct MixedWay {
  std::string text;
  int32_t pool = -1;
};

struct MixedInfeasible {
  std::string reason;
  std::vector<MixedWay> waysOut;
  int32_t segment = -1; ///< the one that the reason names; -1: none
  bool byLimit = false; ///< devices would do, a limit on time or price not
};

struct MixedResult {
  std::optional<MixedPartition> partition;
  MixedInfeasible infeasible; ///< set when there is no partition
  bool outOfWork = false;     ///< none was found, but none is ruled out
};

/// `nanos` of devices that cost `rate` millionths an hour, in the currency.
double priceOf(int64_t rate, Nanos nanos);

/// Fills the derived fields of every stage, time and rate. `pool` and
/// `firstDevice` are taken as they are.
void evaluate(const MixedProblem &problem, MixedPartition &partition);

/// Labels of suffixes of the chain that are already cut, without those that
/// another one or the best answer beats: exact within the work limit, else the
/// best found and a bound that is proven.
MixedResult solveMixed(const MixedProblem &problem,
                       int64_t workLimit = int64_t(1) << 30);

/// All assignments one by one, with every choice of idle devices in front of a
/// stage; for tests.
MixedResult bruteForceMixed(const MixedProblem &problem);

/// Independent check of an answer. First fault or nothing.
std::optional<std::string> verify(const MixedProblem &problem,
                                  const MixedPartition &partition);

/// Why nothing fits, and what would. At most about `workLimit` transitions.
MixedInfeasible explainMixed(const MixedProblem &problem, int64_t workLimit);

} // namespace takt
