//===- SampleSizes.h - costs that depend on the sample's size - -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Sparse convolutions take a + b x (active sites of the sample); so do layers
// over tokens, atoms or histories (Zhai et al. 2020, SparsePipe, arXiv
// 2012.13846). On devices of unequal speeds a chain is cut so that no device is
// busier than another: with buffers between stages only the mean time of each
// counts, so the objective is the largest mean. Without buffers each sample
// waits for its slowest stage; that is reported beside it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt {

/// Work of a sample of size x is fixed + perUnit x.
struct SizedLayer {
  double fixed = 0, perUnit = 0;
};

struct SizedProblem {
  std::vector<SizedLayer> layers;
  std::vector<double> sizes{1};  ///< of typical samples
  std::vector<double> speeds{1}; ///< work per second of each device, at most 16
  bool freeOrder = true; ///< false: the devices follow each other as given

  std::optional<std::string> check() const;
};

struct SizedStage {
  int32_t begin = 0, end = 0; ///< layers [begin, end); may be empty
  int32_t device = 0;
};

struct SizedPlan {
  std::vector<SizedStage> stages; ///< every device once, in order of layers
  double period = 0;              ///< largest mean time of a device, seconds
  double lockstep = 0;            ///< mean over samples of the slowest device
  double bound = 0;               ///< all mean work over all speeds
};

/// The least period.
std::optional<SizedPlan> solveSized(const SizedProblem &problem);

/// All orders of devices and all cuts; for tests.
std::optional<SizedPlan> bruteForceSized(const SizedProblem &problem);

std::optional<std::string> verify(const SizedProblem &problem,
                                  const SizedPlan &plan);

} // namespace takt
