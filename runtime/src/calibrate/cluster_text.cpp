//===- cluster_text.cpp - figures as a cluster file -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Four significant digits: more than any measurement here is good for.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/calibrate/cluster_text.h"

#include <fmt/format.h>

#include <cmath>

namespace takt::rt {

static std::string formatScaled(double value,
                                std::initializer_list<const char *> units) {
  const char *const *unit = units.begin();
  while (value >= 1000 && unit + 1 != units.end()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, *unit);
}

std::string formatFlops(double perSecond) {
  return formatScaled(perSecond * 1e-6,
                      {"MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"});
}

std::string formatRate(double bytesPerSecond) {
  return formatScaled(bytesPerSecond, {"B/s", "KB/s", "MB/s", "GB/s", "TB/s"});
}

static std::string formatNodes(const ClusterFigures &figures,
                               const ClusterNodes &nodes) {
  std::string text = "{";
  if (nodes.count > 1)
    text += fmt::format("count: {}, ", nodes.count);
  text += fmt::format("device: {}, devices: {}", figures.device, nodes.devices);
  if (nodes.cores > 0)
    text += fmt::format(", cores: {}", nodes.cores);
  if (nodes.hostMemory > 0)
    text += fmt::format(", host_memory: {} MiB", nodes.hostMemory >> 20);
  if (nodes.devices > 1)
    text += ", link: " + figures.link;
  return text + "}";
}

std::string formatCluster(const ClusterFigures &figures) {
  std::string text = "# Written by takt-run calibrate.\n";
  for (const std::string &remark : figures.remarks)
    text += "# " + remark + "\n";
  text += fmt::format("schema_version: 1\n"
                      "cluster:\n"
                      "  name: {}\n"
                      "  devices:\n"
                      "    {}:\n"
                      "      flops: {}\n"
                      "      memory_bandwidth: {}\n"
                      "      memory: {}\n"
                      "  nodes:\n",
                      figures.name, figures.device, figures.flops,
                      figures.memoryBandwidth, figures.memory);
  for (const ClusterNodes &nodes : figures.nodes)
    text += "    - " + formatNodes(figures, nodes) + "\n";
  if (!figures.links.empty())
    text += "  links:\n";
  for (const auto &[name, fit] : figures.links)
    text += fmt::format("    {}: {{latency: {} ns, bandwidth: {}}}\n", name,
                        std::llround(fit.latencyNanos),
                        formatRate(fit.bytesPerSecond));
  if (!figures.network.empty())
    text += fmt::format("  network: {}\n", figures.network);
  return text;
}

} // namespace takt::rt
