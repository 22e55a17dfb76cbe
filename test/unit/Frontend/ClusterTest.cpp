//===- ClusterTest.cpp - clusters and presets --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Presets equal the example files; one file a mistake.
//
//===----------------------------------------------------------------------===//
#include "Messages.h"

#include <gtest/gtest.h>

using namespace takt;
using namespace takt::test;

namespace {

ClusterSpec readPreset(const std::string &name) {
  Diagnostics diags;
  auto spec = readCluster(name, diags);
  EXPECT_TRUE(spec) << diags.text();
  return spec.value_or(ClusterSpec());
}

std::string presetError(const std::string &name) {
  Diagnostics diags;
  EXPECT_FALSE(readCluster(name, diags));
  return diags.all().front().message;
}

TEST(ClusterTest, PresetsAreTheExamples) {
  EXPECT_EQ(presetNames(), (std::vector<std::string>{"a100-8", "h100-8",
                                                     "h200-8", "host-2core"}));
  for (const std::string &name : presetNames()) {
    ClusterSpec preset = readPreset(name);
    EXPECT_EQ(preset.name, name);
    ClusterSpec file = readPreset(std::string(TAKT_SOURCE_DIR) +
                                  "/examples/clusters/" + name + ".yaml");
    EXPECT_EQ(file.name, name);
    EXPECT_EQ(file.numDevices(), preset.numDevices());
    EXPECT_EQ(file.devices[0].flops, preset.devices[0].flops);
  }
}

TEST(ClusterTest, Host) {
  ClusterSpec spec = readPreset("host-2core");
  EXPECT_EQ(spec.numDevices(), 2);
  ASSERT_EQ(spec.devices.size(), 1u);
  EXPECT_EQ(spec.devices[0].name, "core");
  EXPECT_DOUBLE_EQ(spec.devices[0].flops, 20e9);
  EXPECT_DOUBLE_EQ(spec.devices[0].memoryBandwidth, 8e9);
  EXPECT_EQ(spec.devices[0].memory, int64_t(2) << 30);
  ASSERT_EQ(spec.links.size(), 1u);
  EXPECT_EQ(spec.links[0].name, "shared-memory");
  EXPECT_EQ(spec.links[0].latency, 2000);
  EXPECT_DOUBLE_EQ(spec.links[0].bandwidth, 4e9);
  EXPECT_EQ(spec.nodes[0].cores, 2);
  EXPECT_EQ(spec.network, "");
}

TEST(ClusterTest, SeveralNodesOfAPreset) {
  ClusterSpec spec = readPreset("h100-8x4");
  EXPECT_EQ(spec.name, "h100-8x4");
  EXPECT_EQ(spec.nodes[0].count, 4);
  EXPECT_EQ(spec.numDevices(), 32);
  EXPECT_EQ(spec.network, "infiniband");
  EXPECT_EQ(readPreset("a100-8x128").numDevices(), 1024);
}

TEST(ClusterTest, PresetErrors) {
  EXPECT_EQ(presetError("h100-9"), "'h100-9' is neither a cluster file nor a "
                                   "preset; did you mean 'h100-8'?");
  EXPECT_EQ(presetError("none.yaml"),
            "'none.yaml' is neither a cluster file nor a preset; presets: "
            "a100-8, h100-8, h200-8, host-2core");
  EXPECT_EQ(presetError("host-2corex2"),
            "the preset 'host-2core' is a single machine without a network, so "
            "'host-2corex2' does not exist");
  EXPECT_EQ(presetError("h100-8x999999"),
            "'h100-8x999999' has more than 1048576 devices");
  for (const char *name :
       {"", "x", "h100-8x", "h100-8x0", "h100-8x-1", "h100-8x2x2",
        "h100-8x99999999999999999999", "h100-8x1e3"})
    presetError(name);
}

/// The good file of the reference, with one place changed.
Messages changed(const std::string &from, const std::string &to) {
  std::string text = "schema_version: 1\n"
                     "cluster:\n"
                     "  name: two\n"
                     "  devices:\n"
                     "    h100: {flops: 400 TFLOP/s, memory_bandwidth: 3.35 "
                     "TB/s, memory: 80 GiB, kernel_overhead: 4 us}\n"
                     "  nodes:\n"
                     "    - {count: 2, device: h100, devices: 8, cores: 96, "
                     "host_memory: 1 TiB, link: nvlink}\n"
                     "  links:\n"
                     "    nvlink: {latency: 3 us, bandwidth: 450 GB/s}\n"
                     "    infiniband: {latency: 5 us, bandwidth: 50 GB/s}\n"
                     "  network: infiniband\n";
  std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return clusterErrors(text.replace(at, from.size(), to));
}

TEST(ClusterTest, Errors) {
  EXPECT_EQ(changed("two", "two"), Messages());
  EXPECT_EQ(changed("80 GiB", "80"),
            Messages{"5:69: 'memory': '80' has no unit; write for example '80 "
                     "GiB' (units: B, KB, KiB, MB, MiB, GB, GiB, TB, TiB)"});
  EXPECT_EQ(changed("80 GiB", "0 GiB"),
            Messages{"5:69: 'memory' must be above 0"});
  EXPECT_EQ(
      changed("400 TFLOP/s", "400 TFLOPS"),
      Messages{"5:19: 'flops': unknown unit 'TFLOPS' in '400 TFLOPS'; did "
               "you mean 'TFLOP/s'?"});
  EXPECT_EQ(changed("400 TFLOP/s", "-1 TFLOP/s"),
            Messages{"5:19: 'flops': '-1 TFLOP/s' is negative"});
  EXPECT_EQ(changed("kernel_overhead", "overhead"),
            Messages{"5:77: unknown key 'overhead' in device 'h100'; known "
                     "keys: flops, memory_bandwidth, memory, "
                     "kernel_overhead, copy_engines, transfer_share, "
                     "price_per_hour"});
  EXPECT_EQ(changed("device: h100", "device: h10"),
            Messages{"7:26: 'device' names 'h10', which is not a device kind "
                     "of this cluster; did you mean 'h100'?"});
  EXPECT_EQ(changed("link: nvlink", "link: nvlnk"),
            Messages{"7:81: 'link' names 'nvlnk', which is not a link of this "
                     "cluster; did you mean 'nvlink'?"});
  EXPECT_EQ(changed(", link: nvlink", ""),
            Messages{"7:7: a node of 8 devices needs 'link', the link between "
                     "them"});
  EXPECT_EQ(changed("  network: infiniband\n", ""),
            Messages{"2:1: a cluster of 2 nodes needs 'network', the link "
                     "between them"});
  EXPECT_EQ(
      changed("network: infiniband", "network: ethernet"),
      Messages{"11:12: 'network' names 'ethernet', which is not a link of "
               "this cluster"});
  EXPECT_EQ(changed("count: 2", "count: 0"),
            Messages{"7:15: 'count' must be at least 1, not 0"});
  EXPECT_EQ(changed("count: 2", "count: 1000000"),
            Messages{"7:7: the cluster has more than 1048576 devices"});
  EXPECT_EQ(changed("3 us", "3 GB/s"),
            Messages{"9:23: 'latency': '3 GB/s' is a transfer rate; a time is "
                     "needed, such as '4 us'"});
  EXPECT_EQ(changed("450 GB/s", "0 GB/s"),
            Messages{"9:40: 'bandwidth' must be above 0"});
  EXPECT_EQ(changed("    nvlink:", "    nv link:").front(),
            "9:5: 'nv link' cannot be the name of a link; use letters, digits, "
            "'_' and '-', starting with a letter or '_', at most 64");
  EXPECT_EQ(clusterErrors("schema_version: 1\ncluster: {name: c}\n"),
            (Messages{"2:1: 'cluster' lacks 'devices'",
                      "2:1: 'cluster' lacks 'nodes'"}));
}

TEST(ClusterTest, WhatIsShared) {
  Diagnostics diags;
  auto spec = readClusterText(
      "c.yaml",
      "schema_version: 1\n"
      "cluster:\n"
      "  name: c\n"
      "  devices:\n"
      "    d: {flops: 1 FLOP/s, memory_bandwidth: 1 B/s, memory: 1 B,\n"
      "        copy_engines: 3, transfer_share: 12.5 %,\n"
      "        price_per_hour: 2.5}\n"
      "    e: {flops: 1 FLOP/s, memory_bandwidth: 1 B/s, memory: 1 B}\n"
      "  nodes:\n"
      "    - {device: d, devices: 1, cores: 4, network_ports: 2,\n"
      "       network_port_bandwidth: 200 Gbit/s}\n"
      "    - {device: e, devices: 1}\n"
      "  links:\n"
      "    l: {latency: 1 us, bandwidth: 1 GB/s}\n"
      "  network: l\n",
      diags);
  ASSERT_TRUE(spec) << diags.text();
  EXPECT_EQ(spec->devices[0].copyEngines, 3);
  EXPECT_EQ(spec->devices[0].transferSharePpm, 125000);
  EXPECT_EQ(spec->nodes[0].cores, 4);
  EXPECT_EQ(spec->nodes[0].networkPorts, 2);
  EXPECT_EQ(spec->nodes[0].networkPortBandwidth, 25e9);
  EXPECT_EQ(spec->devices[1].copyEngines, 0);
  EXPECT_EQ(spec->devices[0].price, 2500000);
  EXPECT_EQ(spec->devices[1].transferSharePpm, 0);
  EXPECT_EQ(spec->devices[1].price, 0);
  EXPECT_EQ(spec->nodes[1].cores, 0);
  EXPECT_EQ(spec->nodes[1].networkPorts, 0);
  EXPECT_EQ(spec->nodes[1].networkPortBandwidth, 0);

  const std::string overhead = "kernel_overhead: 4 us";
  EXPECT_EQ(changed(overhead, "transfer_share: 0.2"),
            Messages{"5:93: 'transfer_share' must be a share such as '15 %', "
                     "not '0.2'"});
  EXPECT_EQ(changed(overhead, "transfer_share: 101 %"),
            Messages{"5:93: 'transfer_share' must be above 0 and at most 100, "
                     "not 101"});
  EXPECT_EQ(changed(overhead, "price_per_hour: 0"),
            Messages{"5:93: 'price_per_hour' must be above 0 and at most "
                     "1000000, not 0"});
  EXPECT_EQ(changed(overhead, "price_per_hour: cheap"),
            Messages{"5:93: 'price_per_hour' must be a number, not 'cheap'"});
  EXPECT_EQ(changed(overhead, "copy_engines: 0"),
            Messages{"5:91: 'copy_engines' must be at least 1, not 0"});
  EXPECT_EQ(changed("cores: 96", "network_ports: 0"),
            Messages{"7:59: 'network_ports' must be at least 1, not 0"});
  EXPECT_EQ(changed("cores: 96", "network_port_bandwidth: 0 GB/s"),
            Messages{"7:68: 'network_port_bandwidth' must be above 0"});
}

TEST(ClusterTest, PlacesAreKept) {
  ClusterSpec spec = readPreset("h100-8");
  EXPECT_GT(spec.places.at("cluster.devices.h100.memory").line, 1);
  EXPECT_GT(spec.places.at("cluster.nodes.0.devices").column, 1);
  EXPECT_GT(spec.places.at("cluster.links.nvlink.bandwidth").line, 1);
}

} // namespace
