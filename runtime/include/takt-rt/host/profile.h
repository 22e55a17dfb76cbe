//===- profile.h - times of layers, measured --------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What `takt-run --profile` measures: the nanoseconds each layer takes a phase,
// on the rank that owns it and while all other ranks run, so that what ranks
// take from each other is in the figures. The file is what `taktc --profile`
// reads.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <string>
#include <vector>

namespace takt::rt {

/// Samples of one rank. Times of kernels are added up by (layer, phase);
/// closing a call turns every sum into one sample.
class LayerSamples {
public:
  explicit LayerSamples(size_t layers);
  /// Kernels of no layer (index -1) are left out.
  void add(const Kernel &kernel, Nanos time);
  /// Ends a call for a micro-batch: samples of all phases but Update, whose sum
  /// goes on until the step ends.
  void closeCall();
  void closeStep();
  const std::vector<Nanos> &of(int32_t layer, Phase phase) const;
  /// All closed samples, for another process of the same plan; `fromBytes`
  /// throws `Error` (Communication) for anything else.
  std::string toBytes() const;
  static LayerSamples fromBytes(size_t layers, const std::string &bytes);

private:
  static constexpr size_t kPhases = 5;
  static size_t index(int32_t layer, Phase phase) {
    return size_t(layer) * kPhases + size_t(phase);
  }
  void close(bool update);

  struct Sum {
    Nanos time = 0;
    bool isOpen = false;
  };
  std::vector<Sum> sums;
  std::vector<size_t> open; ///< indices of the open sums
  std::vector<std::vector<Nanos>> samples;
};

struct LayerTimes {
  Nanos forward = 0, inputGrad = 0, weightGrad = 0, update = 0;
};

struct Profile {
  int64_t samples = 0;            ///< of a micro-batch, that the times are for
  std::vector<LayerTimes> layers; ///< by Plan::layers
};

/// Medians over the samples of all ranks, `ranks[r]` belonging to rank r. Where
/// roles work on different shares of a micro-batch, times are scaled to the
/// largest share; a layer met by several roles gets the mean of theirs.
Profile combineSamples(const Plan &plan,
                       const std::vector<const LayerSamples *> &ranks);

/// The profile as YAML.
std::string formatProfile(const Plan &plan, const Profile &profile);

} // namespace takt::rt
