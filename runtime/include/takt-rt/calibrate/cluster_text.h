//===- cluster_text.h - figures as a cluster file ---------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The YAML that taktc reads (docs/reference/yaml.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/calibrate/fit.h"

#include <map>
#include <string>
#include <vector>

namespace takt::rt {

struct ClusterNodes {
  int32_t count = 1;
  int32_t devices = 1;  ///< each
  int32_t cores = 0;    ///< each; 0: left out
  Bytes hostMemory = 0; ///< each; 0: left out
};

struct ClusterFigures {
  std::string name, device;
  std::vector<std::string> remarks; ///< lines for the head of the file
  // With units.
  std::string flops, memoryBandwidth, memory;
  std::vector<ClusterNodes> nodes;
  std::map<std::string, LinkFit> links;
  std::string link;    ///< of a node of several devices
  std::string network; ///< empty with one node
};

std::string formatFlops(double perSecond);
std::string formatRate(double bytesPerSecond);

std::string formatCluster(const ClusterFigures &figures);

} // namespace takt::rt
