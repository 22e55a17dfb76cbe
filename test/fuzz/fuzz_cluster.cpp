//===- fuzz_cluster.cpp - cluster files ----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// YAML that may be a cluster file.
//
//===----------------------------------------------------------------------===//
#include "fuzz.h"
#include "yaml_checks.h"

#include "takt/Frontend/Read.h"

using namespace takt;

std::vector<std::string> fuzz::dictionary() { return yamlWords(clusterKeys()); }

int fuzz::fuzzOne(const uint8_t *bytes, size_t size) {
  std::string text = asText(bytes, size);
  Diagnostics diags;
  std::optional<ClusterSpec> spec = readClusterText("mutant", text, diags);
  if (!spec) {
    checkRefusal(diags, "mutant", text);
    return 0;
  }
  require(!diags.hasErrors(), "what is accepted has no faults");
  require(spec->numDevices() >= 1 && spec->numDevices() <= kMaxDevices,
          "a cluster has devices, and not too many");
  auto has = [](const auto &all, const std::string &name) {
    for (const auto &one : all)
      if (one.name == name)
        return true;
    return false;
  };
  for (const NodeGroupSpec &nodes : spec->nodes) {
    require(has(spec->devices, nodes.device), "a node's device is described");
    require(nodes.link.empty() || has(spec->links, nodes.link),
            "a node's link is described");
    require(nodes.count >= 1 && nodes.devices >= 1 && nodes.cores >= 0 &&
                nodes.hostMemory >= 0 && nodes.networkPorts >= 0 &&
                nodes.networkPortBandwidth >= 0,
            "counts of a node are positive");
  }
  require(spec->network.empty() || has(spec->links, spec->network),
          "the network's link is described");
  for (const LinkSpec &link : spec->links)
    require(link.latency >= 0 && link.bandwidth > 0, "links have rates");
  for (const DeviceKindSpec &device : spec->devices)
    require(device.flops > 0 && device.memoryBandwidth > 0 &&
                device.memory > 0 && device.kernelOverhead >= 0 &&
                device.copyEngines >= 0 && device.transferSharePpm >= 0 &&
                device.transferSharePpm <= 1000000,
            "devices have rates and memory");
  return 1;
}
