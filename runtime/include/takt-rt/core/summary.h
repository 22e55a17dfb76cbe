//===- summary.h - what a plan decided, in one table ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The report that `taktc` prints after compiling and `takt-plan show` prints
// from a file. Everything in it is read off the plan.
//
// Keys of the JSON form; they stay as they are, and new ones are appended:
//
//   model, cluster, schedule, compiler, input_hash    strings
//   source_of_costs    "roofline", "profile FILE", ...
//   ranks, micro_batches, micro_batch_samples, global_batch, parameters
//   step_time_ns       predicted time of a step
//   bound_ns           proven lower bound of the assignment's objective
//   objective_ns       value of that objective for this plan
//   gap                objective_ns / bound_ns - 1, null without a bound
//   bubble             idle share of all ranks' compute time in a step, null
//                      without a predicted step
//   peak_bytes[]       arena of a rank of each entry of stages[]
//   stages[]           one a role:
//     role             name of the role
//     stages[]         stage numbers, usually one
//     layers[]         names of its layers in model order
//     replicas, first_rank, devices[]
//     forward_ns, backward_ns   one micro-batch on one device
//     update_ns        once a step: tie sums and optimizer
//     peak_bytes[]     arena of each device, in the order of devices[]
//     liveness_bytes   least that any plan of this order could do with
//     capacity_bytes   of a device; 0: not known
//     memory_bytes     object: bytes by kind of pool
//     in_flight        most micro-batches whose activations are held
//     kind             of its devices; empty: not stated
//   resources[]        nodes in a row, with what their devices share; a number
//                      that is not shared or not known is 0. Empty: nothing is
//     nodes, devices, cores, copy_engines, transfer_share
//     memory_bytes_per_s, port_bytes_per_s, network_bytes_per_s, network_ports
//     kind, price_per_hour   of a device; empty and 0: not stated
//   price_per_hour     of all devices used, price_per_step for the step time;
//   null
//                      where a device's price is not known
//   proof              "proved: N actions, M messages, K ranks" as the plan's
//                      certificate has it, null for a plan without one
//   mode               "training" or "inference"
//   period_ns          of inference: predicted time between two micro-batches
//                      that leave; objective_ns and bound_ns are of it. Null in
//                      training, as the next two
//   latency_ns         predicted time in which the first micro-batch passes
//   samples_per_s      micro_batch_samples / period_ns
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace takt::rt {

struct StageSummary {
  std::string role;
  std::vector<int32_t> stages;
  std::vector<std::string> layers; ///< names, in model order
  int32_t firstRank = 0;
  int32_t replicas = 1;
  std::vector<int32_t> devices;
  std::string kind;   ///< of the devices; empty: not stated
  Nanos forward = 0;  ///< of one micro-batch on one device
  Nanos backward = 0; ///< likewise, input and weight gradients
  Nanos update = 0;   ///< once a step
  Bytes peakBytes = 0;
  Bytes livenessBytes = 0;
  Bytes capacity = 0; ///< 0: not known
  std::map<PoolKind, Bytes> memory;
  int32_t inFlight = 0;
};

struct Summary {
  std::string model, cluster, schedule, compiler, inputHash, costSource;
  int32_t ranks = 0;
  int32_t microBatches = 0;
  int64_t globalBatch = 0;
  int64_t parameters = 0; ///< elements of all parameters
  Mode mode = Mode::Training;
  Nanos step = 0, bound = 0, objective = 0;
  Nanos period = 0, latency = 0; ///< of inference
  std::optional<double> gap;     ///< objective / bound - 1
  std::optional<double> bubble;  ///< idle share of the ranks' compute lanes
  std::optional<double> pricePerHour; ///< of all devices used
  std::vector<StageSummary> stages;
  std::vector<NodeResources> resources;
  std::string proof; ///< empty: the plan carries no certificate
};

/// Kind of a role's devices where the plan's nodes are of several kinds, else
/// empty.
std::string kindAmongSeveral(const Plan &plan, const Role &role);

/// The plan must pass `checkStructure`.
Summary summarize(const Plan &plan);

/// A few lines and two tables.
std::string printText(const Summary &summary);

/// One JSON object with the keys above, indented, with a line end.
std::string toJson(const Summary &summary);

} // namespace takt::rt
