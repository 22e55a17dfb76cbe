//===- hosts.cpp - a list of hosts that ranks run on ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Nothing is started over ssh from here: keys, agents and wrappers are people's
// own, and a script can be read before it is run.
//
//===----------------------------------------------------------------------===//

#include "hosts.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <sstream>

namespace takt::run {

using rt::Error;
using rt::ExitCode;

/// Where rank 0 listens unless it is said.
static constexpr int kPort = 29600;
static constexpr int32_t kMostRanks = 1 << 20;

[[noreturn]] static void refuse(const std::string &entry,
                                const std::string &why) {
  throw Error(fmt::format("'--hosts': '{}' {}", entry, why), ExitCode::Usage);
}

/// A name or an address: what ssh takes, and no option of it.
static bool isHostName(const std::string &name, bool isV6) {
  auto allowed = [isV6](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_' ||
           (isV6 && c == ':');
  };
  return !name.empty() && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), allowed);
}

static Host parseHost(const std::string &entry) {
  Host host;
  std::string count;
  bool isV6 = !entry.empty() && entry[0] == '[';
  size_t end = isV6 ? entry.find(']') : entry.find(':');
  if (isV6 && end == std::string::npos)
    refuse(entry, "has a '[' without ']'");
  host.name = isV6 ? entry.substr(1, end - 1) : entry.substr(0, end);
  size_t colon = isV6 ? end + 1 : end;
  if (colon < entry.size()) {
    if (entry[colon] != ':')
      refuse(entry, "is not HOST:RANKS");
    const char *first = entry.data() + colon + 1;
    const char *last = entry.data() + entry.size();
    auto [at, error] = std::from_chars(first, last, host.ranks);
    if (error != std::errc() || at != last || host.ranks < 1 ||
        host.ranks > kMostRanks)
      refuse(entry,
             fmt::format("does not end in a number of ranks from 1 to {}",
                         kMostRanks));
  }
  if (!isHostName(host.name, isV6))
    refuse(entry, "does not begin with the name of a host");
  return host;
}

std::vector<Host> parseHosts(const std::string &list) {
  std::vector<Host> hosts;
  int64_t ranks = 0;
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    Host host = parseHost(entry);
    for (const Host &other : hosts)
      if (other.name == host.name)
        refuse(entry, "names a host for the second time");
    ranks += host.ranks;
    hosts.push_back(std::move(host));
  }
  if (list.back() == ',')
    refuse(list, "ends in a comma");
  if (ranks > kMostRanks)
    refuse(list, fmt::format("has more than {} ranks", kMostRanks));
  return hosts;
}

LocalRanks ranksOfHost(const std::vector<Host> &hosts, int32_t node,
                       const std::string &rendezvous) {
  if (size_t(node) >= hosts.size())
    throw Error(fmt::format("'--node={}': there are {} hosts, from 0 on", node,
                            hosts.size()),
                ExitCode::Usage);
  LocalRanks local;
  for (const Host &host : hosts)
    local.world += host.ranks;
  for (int32_t i = 0; i < node; ++i)
    local.first += hosts[i].ranks;
  local.count = hosts[node].ranks;
  local.node = node;
  const std::string &name = hosts[0].name;
  bool isV6 = name.find(':') != std::string::npos;
  local.rendezvous = !rendezvous.empty() ? rendezvous
                     : isV6              ? fmt::format("[{}]:{}", name, kPort)
                                         : fmt::format("{}:{}", name, kPort);
  return local;
}

//===----------------------------------------------------------------------===//
// The script
//===----------------------------------------------------------------------===//

/// As one word of a shell.
static std::string quoted(const std::string &word) {
  auto plain = [](unsigned char c) {
    return std::isalnum(c) ||
           std::string("%+,-./:=@_").find(char(c)) != std::string::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain))
    return word;
  std::string text = "'";
  for (char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string startScript(const std::vector<Host> &hosts, char **arguments) {
  std::string command =
      "cd " + quoted(std::filesystem::current_path().string()) + " &&";
  for (char **word = arguments; *word; ++word)
    command += " " + quoted(*word);
  std::string script =
      "# every host: this program, the plan and one TAKT_TOKEN (a secret)\n";
  std::string ends;
  for (size_t i = 0; i < hosts.size(); ++i) {
    script += fmt::format("ssh -n {} {} & host{}=$!\n", hosts[i].name,
                          quoted(fmt::format("{} --node {}", command, i)), i);
    ends += fmt::format("{}wait $host{}", i > 0 ? " && " : "", i);
  }
  return script + ends + "\n";
}

//===----------------------------------------------------------------------===//
// Hosts and the plan's nodes
//===----------------------------------------------------------------------===//

/// Node of a device in the plan's cluster; -1: the plan does not say.
static int32_t nodeOfDevice(const rt::Plan &plan, int32_t device) {
  int32_t node = 0;
  for (const rt::NodeResources &group : plan.resources) {
    int64_t devices = int64_t(group.nodes) * group.devices;
    if (device < devices)
      return node + device / group.devices;
    device -= int32_t(devices);
    node += group.nodes;
  }
  return -1;
}

std::string layoutWarning(const std::vector<Host> &hosts,
                          const rt::Plan &plan) {
  std::vector<int32_t> nodeOfRank(plan.numRanks(), -1);
  for (const rt::Role &role : plan.roles)
    for (size_t i = 0; i < role.devices.size(); ++i)
      nodeOfRank[role.firstRank + i] = nodeOfDevice(plan, role.devices[i]);
  int32_t rank = 0;
  for (const Host &host : hosts)
    for (int32_t i = 0; i < host.ranks; ++i, ++rank) {
      int32_t node = nodeOfRank[rank];
      int32_t first = nodeOfRank[rank - i];
      bool split = i > 0 && node != first;
      bool joined = i == 0 && rank > 0 && node == nodeOfRank[rank - 1];
      if (node >= 0 && (split || joined))
        return fmt::format(
            "host '{}' has rank {}, which the plan puts on {} node as rank {}: "
            "what it predicts is not for these hosts",
            host.name, rank, split ? "another" : "the same",
            split ? rank - i : rank - 1);
    }
  return "";
}

} // namespace takt::run
