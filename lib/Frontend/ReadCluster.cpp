//===- ReadCluster.cpp - the cluster file ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Device kinds and links first, then the nodes that refer to them.
//
//===----------------------------------------------------------------------===//
#include "takt/Frontend/Read.h"
#include "takt/Frontend/Reader.h"
#include "takt/Support/NearestName.h"
#include "takt/Support/TextFile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

using namespace takt;

int64_t ClusterSpec::numDevices() const {
  int64_t total = 0;
  for (const NodeGroupSpec &group : nodes)
    total += group.count * group.devices;
  return total;
}

namespace {

class ClusterReader {
public:
  ClusterReader(Reader &reader, ClusterSpec &spec)
      : reader(reader), spec(spec) {}

  void read(const YamlNode &node, SourceLoc place) {
    Section section(reader, node, keyTable(clusterKeys(), "cluster"),
                    "'cluster'", std::move(place), &spec.places, "cluster");
    if (!section.isMap())
      return;
    if (section.require("name"))
      section.name("name", spec.name);
    if (const YamlNode *devices = section.require("devices"))
      if (const auto *entries = reader.map(*devices, "devices"))
        for (const YamlNode::Entry &entry : *entries)
          readDevice(entry);
    if (const YamlNode *links = section.find("links"))
      if (const auto *entries = reader.map(*links, "links"))
        for (const YamlNode::Entry &entry : *entries)
          readLink(entry);
    if (const YamlNode *nodes = section.require("nodes"))
      if (const auto *items = reader.list(*nodes, "nodes", false))
        for (std::size_t i = 0; i < items->size(); ++i)
          readNodes(*(*items)[i], i);
    if (const YamlNode *network = section.find("network"))
      reference(*network, "network", linkNames, "link", spec.network);
    checkWhole(section);
  }

private:
  void readDevice(const YamlNode::Entry &entry) {
    DeviceKindSpec device;
    device.name = entry.key;
    device.loc = reader.loc(entry);
    deviceNames.push_back(entry.key);
    Section section(reader, *entry.value, keyTable(clusterKeys(), "device"),
                    fmt::format("device '{}'", quotable(entry.key)), device.loc,
                    &spec.places, "cluster.devices." + entry.key);
    if (!reader.checkName(device.loc, entry.key, "the name of a device kind") ||
        !section.isMap())
      return;
    if (section.require("flops"))
      section.flops("flops", device.flops);
    if (section.require("memory_bandwidth"))
      section.rate("memory_bandwidth", device.memoryBandwidth);
    if (section.require("memory") && section.bytes("memory", device.memory) &&
        device.memory == 0)
      reader.error(*section.find("memory"), "'memory' must be above 0");
    section.time("kernel_overhead", device.kernelOverhead);
    section.integer("copy_engines", device.copyEngines, 1, kMaxDevices);
    if (const YamlNode *share = section.find("transfer_share"))
      if (auto ppm = reader.percent(*share, "transfer_share", {0, 100, true}))
        device.transferSharePpm = *ppm;
    if (double price = 0; section.real("price_per_hour", price, {0, 1e6, true}))
      device.price = std::max<int64_t>(1, std::llround(price * 1e6));
    spec.devices.push_back(std::move(device));
  }

  void readLink(const YamlNode::Entry &entry) {
    LinkSpec link;
    link.name = entry.key;
    link.loc = reader.loc(entry);
    linkNames.push_back(entry.key);
    Section section(reader, *entry.value, keyTable(clusterKeys(), "link"),
                    fmt::format("link '{}'", quotable(entry.key)), link.loc,
                    &spec.places, "cluster.links." + entry.key);
    if (!reader.checkName(link.loc, entry.key, "the name of a link") ||
        !section.isMap())
      return;
    if (section.require("latency"))
      section.time("latency", link.latency);
    if (section.require("bandwidth"))
      section.rate("bandwidth", link.bandwidth);
    spec.links.push_back(std::move(link));
  }

  void readNodes(const YamlNode &node, std::size_t index) {
    NodeGroupSpec group;
    group.loc = reader.loc(node);
    Section section(reader, node, keyTable(clusterKeys(), "node"),
                    "an entry of 'nodes'", group.loc, &spec.places,
                    fmt::format("cluster.nodes.{}", index));
    if (!section.isMap())
      return;
    section.integer("count", group.count, 1, kMaxDevices);
    if (const YamlNode *device = section.require("device"))
      reference(*device, "device", deviceNames, "device kind", group.device);
    if (section.require("devices"))
      section.integer("devices", group.devices, 1, kMaxDevices);
    section.integer("cores", group.cores, 1, kMaxDevices);
    section.bytes("host_memory", group.hostMemory);
    section.integer("network_ports", group.networkPorts, 1, kMaxDevices);
    section.rate("network_port_bandwidth", group.networkPortBandwidth);
    if (const YamlNode *link = section.find("link"))
      reference(*link, "link", linkNames, "link", group.link);
    else if (group.devices > 1)
      reader.error(group.loc, fmt::format("a node of {} devices needs 'link', "
                                          "the link between them",
                                          group.devices));
    spec.nodes.push_back(std::move(group));
  }

  void reference(const YamlNode &node, std::string_view key,
                 const std::vector<std::string> &known, const char *what,
                 std::string &out) {
    auto name = reader.text(node, key);
    if (!name)
      return;
    for (const std::string &candidate : known)
      if (candidate == *name) {
        out = *name;
        return;
      }
    reader.error(node, fmt::format("'{}' names '{}', which is not a {} of this "
                                   "cluster{}",
                                   key, quotable(*name), what,
                                   nearestHint(*name, known)));
  }

  void checkWhole(Section &section) {
    int64_t devices = 0, nodes = 0;
    for (const NodeGroupSpec &group : spec.nodes) {
      nodes += group.count; // both at most 2^20: the product fits
      devices += group.count * group.devices;
      if (devices > kMaxDevices) {
        reader.error(group.loc, fmt::format("the cluster has more than {} "
                                            "devices",
                                            kMaxDevices));
        return;
      }
    }
    if (nodes > 1 && !section.find("network"))
      reader.error(section.loc(), fmt::format("a cluster of {} nodes needs "
                                              "'network', the link between "
                                              "them",
                                              nodes));
  }

  Reader &reader;
  ClusterSpec &spec;
  std::vector<std::string> deviceNames, linkNames;
};

/// A preset's name with the number of nodes split off ("h100-8x4"), or nothing.
struct PresetName {
  std::string base;
  int64_t nodes = 1;
};
std::optional<PresetName> splitPreset(const std::string &name) {
  if (!presetText(name).empty())
    return PresetName{name, 1};
  std::size_t cross = name.rfind('x');
  if (cross == std::string::npos || cross + 1 == name.size() ||
      name.size() - cross > 7)
    return std::nullopt;
  PresetName result{name.substr(0, cross), 0};
  for (char c : name.substr(cross + 1)) {
    if (c < '0' || c > '9')
      return std::nullopt;
    result.nodes = result.nodes * 10 + (c - '0');
  }
  if (result.nodes < 1 || presetText(result.base).empty())
    return std::nullopt;
  return result;
}

} // namespace

std::optional<ClusterSpec> takt::readClusterText(const std::string &file,
                                                 std::string text,
                                                 Diagnostics &diags) {
  std::size_t before = diags.errorCount();
  Reader reader(file, diags);
  ClusterSpec spec;
  spec.file = file;
  OpenedFile opened = openYaml(reader, std::move(text),
                               keyTable(clusterKeys(), "file"), spec.places);
  if (!opened.top)
    return std::nullopt;
  if (const YamlNode *cluster = opened.top->require("cluster"))
    ClusterReader(reader, spec).read(*cluster, opened.top->keyLoc("cluster"));
  if (diags.errorCount() != before)
    return std::nullopt;
  return spec;
}

std::optional<ClusterSpec> takt::readCluster(const std::string &pathOrPreset,
                                             Diagnostics &diags) {
  std::error_code ignored;
  bool isFile = std::filesystem::exists(pathOrPreset, ignored);
  if (pathOrPreset == "-" || isFile) {
    std::optional<std::string> text = readTextFile(pathOrPreset, diags);
    if (!text)
      return std::nullopt;
    return readClusterText(pathOrPreset == "-" ? "<stdin>" : pathOrPreset,
                           std::move(*text), diags);
  }
  std::optional<PresetName> preset = splitPreset(pathOrPreset);
  if (!preset) {
    std::vector<std::string> names = presetNames();
    std::string hint = nearestHint(pathOrPreset, names);
    std::string list;
    for (const std::string &name : names)
      list += (list.empty() ? "" : ", ") + name;
    diags.error({}, fmt::format("'{}' is neither a cluster file nor a preset{}",
                                quotable(pathOrPreset),
                                hint.empty() ? "; presets: " + list : hint));
    return std::nullopt;
  }
  std::string file = "<preset " + preset->base + ">";
  auto spec =
      readClusterText(file, std::string(presetText(preset->base)), diags);
  if (!spec || preset->nodes == 1)
    return spec;
  NodeGroupSpec &nodes = spec->nodes.front();
  if (spec->network.empty()) {
    diags.error({}, fmt::format("the preset '{}' is a single machine without a "
                                "network, so '{}' does not exist",
                                preset->base, pathOrPreset));
    return std::nullopt;
  }
  nodes.count = preset->nodes;
  if (spec->numDevices() > kMaxDevices) {
    diags.error({}, fmt::format("'{}' has more than {} devices", pathOrPreset,
                                kMaxDevices));
    return std::nullopt;
  }
  spec->name = pathOrPreset;
  return spec;
}
