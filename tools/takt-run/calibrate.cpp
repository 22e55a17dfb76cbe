//===- calibrate.cpp - a cluster file from measurements -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Links between threads, between the processes of a run, or as nccl-tests found
// them; the rates of a device by this machine's kernels, unless they are given.
//
//===----------------------------------------------------------------------===//

#include "calibrate.h"

#include "log.h"
#include "member.h"

#include "takt-rt/calibrate/cluster_text.h"
#include "takt-rt/calibrate/measure.h"
#include "takt-rt/calibrate/nccl_tests.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <regex>

namespace takt::run {

using rt::Error;
using rt::ExitCode;

std::string quantityFault(const std::string &text, const std::string &units) {
  static const std::string number =
      R"(^[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)? *)";
  if (std::regex_match(text, std::regex(number + "(" + units + ")$")))
    return "";
  return fmt::format("'{}' is not a number and a unit, such as '2.5 GB'", text);
}

namespace {

/// Collects figures and says what was found.
class Calibration {
public:
  Calibration(const RunOptions &options, const CalibrateOptions &what)
      : options(options), what(what) {}
  void run();

private:
  void ofThreads();
  void ofProcesses(const rt::Identity &identity);
  void measureWith(Member &member, const rt::Identity &identity);
  void ofNcclTests();
  void addTable(const std::string &path);
  void addLink(const std::string &name, const rt::LinkFit &fit,
               const std::string &source);
  void setNodes(const std::vector<std::string> &nodeOfRank);
  void device(int32_t devicesHere);
  void write() const;

  const RunOptions &options;
  const CalibrateOptions &what;
  rt::ClusterFigures figures;
};

void Calibration::addLink(const std::string &name, const rt::LinkFit &fit,
                          const std::string &source) {
  figures.links[name] = fit;
  figures.remarks.push_back(
      fmt::format("Link '{}': {}; median error of the fit {}.", name, source,
                  rt::formatShare(fit.error)));
}

/// Rates that are not given are measured; memory is shared out.
void Calibration::device(int32_t devicesHere) {
  bool measure = what.flops.empty() || what.memoryBandwidth.empty();
  rt::DeviceRates rates;
  if (measure)
    rates = rt::measureDevice();
  auto orMeasured = [](const std::string &given, const std::string &measured) {
    return given.empty() ? measured : given;
  };
  figures.flops = orMeasured(what.flops, rt::formatFlops(rates.flops));
  figures.memoryBandwidth =
      orMeasured(what.memoryBandwidth, rt::formatRate(rates.bytesPerSecond));
  figures.memory =
      orMeasured(what.memory,
                 fmt::format("{} MiB", (rt::memoryHere() / devicesHere) >> 20));
  if (measure || what.memory.empty())
    figures.remarks.push_back(
        "Device: rates of one thread and memory of this machine, where not "
        "given.");
}

//===----------------------------------------------------------------------===//
// Links of this machine
//===----------------------------------------------------------------------===//

void Calibration::ofThreads() {
  int32_t cores = rt::coresHere();
  rt::ClusterNodes node;
  node.devices = std::max(2, cores);
  node.cores = cores;
  node.hostMemory = rt::memoryHere();
  figures.nodes = {node};
  figures.link = "threads";
  addLink("threads", rt::fitLink(rt::exchangeBetweenThreads()),
          "messages between two threads");
  device(node.devices);
}

/// `nodeOfRank`: a word for each rank, equal on ranks of one node.
void Calibration::setNodes(const std::vector<std::string> &nodeOfRank) {
  std::vector<std::string> seen;
  std::vector<int32_t> counts;
  for (const std::string &node : nodeOfRank) {
    auto at = std::find(seen.begin(), seen.end(), node);
    if (at == seen.end()) {
      seen.push_back(node);
      counts.push_back(0);
      at = seen.end() - 1;
    }
    ++counts[at - seen.begin()];
  }
  for (int32_t devices : counts) {
    if (!figures.nodes.empty() && figures.nodes.back().devices == devices) {
      ++figures.nodes.back().count;
      continue;
    }
    rt::ClusterNodes node;
    node.devices = devices;
    node.cores = rt::coresHere();
    node.hostMemory = rt::memoryHere();
    figures.nodes.push_back(node);
  }
}

void Calibration::measureWith(Member &member, const rt::Identity &identity) {
  const rt::Seats &seats = member.seats();
  std::string node = std::to_string(seats.nodeRanks.front());
  std::vector<std::string> nodeOfRank = seats.team->gather(node);
  // Rank 0 says with whom it exchanges messages: one of its node and one of
  // another.
  std::string partners;
  if (identity.rank == 0) {
    int32_t near = 0, far = 0;
    for (int32_t r = identity.world - 1; r > 0; --r)
      (nodeOfRank[r] == nodeOfRank[0] ? near : far) = r;
    partners = fmt::format("{} {}", near, far);
  }
  partners = seats.team->broadcast(partners);
  int32_t near = std::stoi(partners);
  int32_t far = std::stoi(partners.substr(partners.find(' ') + 1));
  auto exchange = [&](int32_t peer, const std::string &name,
                      const std::string &source) {
    if (peer == 0 || (identity.rank != 0 && identity.rank != peer))
      return;
    std::vector<rt::TransferTime> times = rt::exchangeMessages(
        *seats.exchange, identity.rank, peer,
        name == "network" ? 1 : int32_t(seats.nodeRanks.size()),
        *seats.interrupt);
    if (identity.rank == 0)
      addLink(name, rt::fitLink(times), source);
  };
  bool byMpi = member.transport() == "MPI";
  bool byMemory = member.transport().rfind("shared memory", 0) == 0;
  figures.link = byMpi ? "mpi" : byMemory ? "shared-memory" : "loopback";
  exchange(near, figures.link,
           fmt::format("messages between processes of a node by {}",
                       byMpi      ? "MPI"
                       : byMemory ? "shared memory"
                                  : "TCP"));
  exchange(far, "network",
           fmt::format("messages between processes of two nodes by {}",
                       byMpi ? "MPI" : "TCP"));
  if (identity.rank == 0) {
    if (far > 0)
      figures.network = "network";
    setNodes(nodeOfRank);
    device(figures.nodes.front().devices);
  }
  // Nobody computes while links are measured, nor leaves before.
  seats.team->broadcast("");
}

void Calibration::ofProcesses(const rt::Identity &identity) {
  rt::Plan plan = rt::messagePlan(identity.world);
  Member member(options, plan, identity, 0);
  try {
    member.connect(plan, 0);
    measureWith(member, identity);
    member.leave();
  } catch (const Error &error) {
    member.fail(error);
  } catch (const std::bad_alloc &) {
    member.fail(Error("out of memory", ExitCode::DoesNotFit));
  }
}

//===----------------------------------------------------------------------===//
// Links by nccl-tests
//===----------------------------------------------------------------------===//

/// A table of one host is its inner link, one of several hosts the network.
void Calibration::addTable(const std::string &path) {
  rt::NcclTable table = rt::parseNcclTests(rt::readFile(path), path);
  int32_t hosts = table.hosts > 0  ? table.hosts
                  : what.nodes > 0 ? what.nodes
                                   : 1;
  if (table.ranks % hosts != 0)
    throw Error(fmt::format("{}: {} ranks on {} nodes are not equally many on "
                            "each",
                            path, table.ranks, hosts));
  std::string name = hosts > 1 ? "network" : "local";
  if (figures.links.count(name) > 0)
    throw Error(fmt::format("{}: a second table of {}", path,
                            hosts > 1 ? "several nodes" : "one node"));
  addLink(name, rt::fitNcclTests(table),
          fmt::format("{} of {} ranks by nccl-tests",
                      table.allReduce ? "all-reduce" : "sendrecv",
                      table.ranks));
  rt::ClusterNodes node;
  node.count = hosts;
  node.devices = table.ranks / hosts;
  if (figures.nodes.empty() || hosts > 1)
    figures.nodes = {node};
}

void Calibration::ofNcclTests() {
  figures.device = "gpu";
  for (const std::string &path : what.ncclTests)
    addTable(path);
  bool hasLocal = figures.links.count("local") > 0;
  figures.link = hasLocal ? "local" : "network";
  if (figures.links.count("network") > 0)
    figures.network = "network";
  if (!hasLocal && figures.nodes.front().devices > 1)
    figures.remarks.push_back("Within a node the network's figures stand for "
                              "what was not measured.");
  device(figures.nodes.front().devices);
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

void Calibration::write() const {
  rt::writeFile(what.output, rt::formatCluster(figures));
  for (const std::string &remark : figures.remarks)
    log().add(rt::LogLevel::Info, rt::LogTopic::Run, remark);
}

void Calibration::run() {
  figures.name = "calibrated";
  figures.device = "host";
  if (!what.ncclTests.empty()) {
    ofNcclTests();
    return write();
  }
  std::optional<rt::Identity> identity =
      identityAmong(options, options.processes.value_or(1));
  if (identity && identity->world > 1)
    ofProcesses(*identity);
  else
    ofThreads();
  if (!identity || identity->rank == 0)
    write();
}
} // namespace

void calibrate(const RunOptions &options, const CalibrateOptions &what) {
  Calibration(options, what).run();
}

} // namespace takt::run
