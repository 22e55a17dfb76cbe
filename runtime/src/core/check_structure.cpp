//===- check_structure.cpp - structural check of a plan ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The checks across roles: names, training, ranks, channels, groups and total
// time. They run from the outside in and stop at the first level that has
// faults, so that each level may rely on the ones before it.
//
//===----------------------------------------------------------------------===//
#include "check.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/names.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace takt::rt {

bool isText(const std::string &text) {
  for (size_t i = 0; i < text.size();) {
    unsigned char c = text[i];
    if (c < 0x20 || c == 0x7f)
      return false;
    size_t length = c < 0x80             ? 1
                    : (c & 0xe0) == 0xc0 ? 2
                    : (c & 0xf0) == 0xe0 ? 3
                    : (c & 0xf8) == 0xf0 ? 4
                                         : 0;
    if (length == 0 || i + length > text.size())
      return false;
    uint32_t code = length == 1 ? c : c & (0x7f >> length);
    for (size_t k = 1; k < length; ++k) {
      if ((text[i + k] & 0xc0) != 0x80)
        return false;
      code = code << 6 | (text[i + k] & 0x3f);
    }
    // Shortest form only, no surrogates, nothing past the last code point; and
    // neither the second set of control characters, which terminals obey, nor
    // what is no character, which XML forbids.
    static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast[length] || code > 0x10ffff ||
        (code >= 0xd800 && code < 0xe000) || (code >= 0x80 && code < 0xa0) ||
        (code & 0xfffe) == 0xfffe)
      return false;
    i += length;
  }
  return true;
}

std::string quoted(const std::string &name) {
  std::string text = name.substr(0, 60);
  for (char &c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
        (!isText(name) && static_cast<unsigned char>(c) >= 0x80))
      c = '?';
  return "'" + text + (name.size() > 60 ? "...'" : "'");
}

namespace {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

void checkText(const std::string &text, const char *what, Faults &faults) {
  if (!isText(text))
    faults.add("", "{} {} is not plain text", what, quoted(text));
}

/// Names that stand for things elsewhere: present, plain, used once.
template <typename Things>
void checkNames(const Things &things, const char *what, Faults &faults) {
  std::set<std::string> seen;
  for (const auto &thing : things) {
    checkText(thing.name, what, faults);
    if (thing.name.empty())
      faults.add("", "a {} has no name", what);
    else if (!seen.insert(thing.name).second)
      faults.add("", "two {}s are named {}", what, quoted(thing.name));
  }
}

void checkAllNames(const Plan &plan, Faults &faults) {
  checkText(plan.model, "model name", faults);
  checkText(plan.cluster, "cluster name", faults);
  checkText(plan.compiler, "compiler version", faults);
  checkText(plan.inputHash, "input hash", faults);
  checkText(plan.schedule, "schedule name", faults);
  checkText(plan.costSource, "cost source", faults);
  for (const std::string &feature : plan.requiredFeatures)
    checkText(feature, "required feature", faults);
  checkNames(plan.inputs, "input", faults);
  checkNames(plan.params, "parameter", faults);
  checkNames(plan.channels, "channel", faults);
  checkNames(plan.groups, "group", faults);
  checkNames(plan.roles, "role", faults);
  for (const LayerInfo &layer : plan.layers) {
    checkText(layer.name, "layer name", faults);
    checkText(layer.kind, "layer kind", faults);
  }
}

//===----------------------------------------------------------------------===//
// Training and model
//===----------------------------------------------------------------------===//

void checkTraining(const Training &training, Faults &faults) {
  if (training.globalBatch < 1 || training.microBatches < 1)
    faults.add("", "global batch {} and micro-batches {} must be positive",
               training.globalBatch, training.microBatches);
  else if (training.globalBatch % training.microBatches != 0)
    faults.add("", "global batch {} does not divide into {} micro-batches",
               training.globalBatch, training.microBatches);
  for (double number : {training.learningRate, training.momentum,
                        training.beta1, training.beta2, training.epsilon,
                        training.weightDecay, training.minLearningRate})
    if (!std::isfinite(number))
      faults.add("", "a number of the training settings is not finite");
  if (training.warmupSteps < 0 || training.totalSteps < 0)
    faults.add("", "warm-up steps {} and total steps {} must not be negative",
               training.warmupSteps, training.totalSteps);
  if (!isKnown(training.optimizer) || !isKnown(training.schedule))
    faults.add("", "unknown optimizer or learning-rate schedule");
  if (!isKnown(training.mode))
    faults.add("", "unknown mode");
}

/// Elements of a shape, or -1 if a dim is not positive or the bytes overflow.
int64_t elementsOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    if (dim < 1 || __builtin_mul_overflow(count, dim, &count) ||
        count > kMostBytes / 4)
      return -1;
  return count;
}

/// Inference trains nothing, and one role has its output.
void checkOutput(const Plan &plan, Faults &faults) {
  const bool infers = plan.training.mode == Mode::Inference;
  for (const Param &param : plan.params)
    if (infers && param.trainable)
      faults.add("parameter " + quoted(param.name) + ": ",
                 "is trained in a plan for inference");
  int64_t givers = 0;
  for (const Role &role : plan.roles)
    givers += role.result.bytes != 0;
  const bool gives = !plan.output.name.empty();
  if (gives && !infers)
    faults.add("", "a plan that trains has an output");
  if (gives && !isText(plan.output.name))
    faults.add("", "bad name {} of the output", quoted(plan.output.name));
  if (gives && elementsOf(plan.output.shape) < 0)
    faults.add("", "the output has a bad shape");
  if (givers != gives)
    faults.add("", "{} roles have the result of {} output", givers,
               gives ? "one" : "no");
}

void checkModel(const Plan &plan, Faults &faults) {
  for (const InputInfo &input : plan.inputs) {
    std::string where = "input " + quoted(input.name) + ": ";
    if (!isKnown(input.dtype))
      faults.add(where, "unknown element type");
    if (elementsOf(input.shape) < 0)
      faults.add(where, "bad shape");
    if (input.classes < 0)
      faults.add(where, "{} classes", input.classes);
  }
  for (const Param &param : plan.params) {
    std::string where = "parameter " + quoted(param.name) + ": ";
    if (!isKnown(param.init) || !std::isfinite(param.initScale))
      faults.add(where, "bad initialiser");
    if (elementsOf(param.shape) < 0)
      faults.add(where, "bad shape");
  }
  if (plan.predictedStep < 0 || plan.boundStep < 0 || plan.objectiveStep < 0 ||
      plan.predictedPeriod < 0 || plan.predictedLatency < 0)
    faults.add("", "a predicted time is negative");
  checkOutput(plan, faults);
}

//===----------------------------------------------------------------------===//
// Ranks, channels, groups
//===----------------------------------------------------------------------===//

void checkRanks(const Plan &plan, Faults &faults) {
  if (plan.roles.empty())
    faults.add("", "the plan has no roles");
  // Targets and waits are 16-bit indices.
  if (plan.roles.size() > 0xffff || plan.channels.size() > 0xffff ||
      plan.groups.size() > 0xffff)
    faults.add("", "more than 65535 roles, channels or groups");
  int64_t next = 0;
  for (const Role &role : plan.roles) {
    std::string where = "role " + quoted(role.name) + ": ";
    if (role.firstRank != next)
      faults.add(where, "first rank is {}, expected {}", role.firstRank, next);
    if (role.replicas < 1)
      return faults.add(where, "{} replicas", role.replicas);
    next += role.replicas;
    if (next > (1 << 24))
      return faults.add("", "more than {} ranks", 1 << 24);
    if (role.devices.size() != static_cast<size_t>(role.replicas))
      faults.add(where, "{} devices for {} replicas", role.devices.size(),
                 role.replicas);
    if (plan.training.microBatchSize() % role.replicas != 0)
      faults.add(where,
                 "a micro-batch of {} samples does not divide over {} "
                 "replicas",
                 plan.training.microBatchSize(), role.replicas);
  }
}

/// A device has one rank: a communicator holds a device once (the second rank
/// would hang it), and a rank's arena has the device's memory for itself.
void checkDevices(const Plan &plan, Faults &faults) {
  std::vector<std::pair<int32_t, size_t>> owners;
  for (size_t r = 0; r < plan.roles.size(); ++r)
    for (int32_t device : plan.roles[r].devices)
      owners.push_back({device, r});
  std::sort(owners.begin(), owners.end());
  auto nameOfRole = [&](size_t i) {
    return quoted(plan.roles[owners[i].second].name);
  };
  for (size_t i = 0; i < owners.size(); ++i)
    if (owners[i].first < 0)
      faults.add("role " + nameOfRole(i) + ": ", "device {}", owners[i].first);
    else if (i > 0 && owners[i - 1].first == owners[i].first)
      faults.add("role " + nameOfRole(i) + ": ",
                 "device {} has a rank of role {} already, and takes one",
                 owners[i].first, nameOfRole(i - 1));
}

void checkLink(const Link &link, const std::string &where, Faults &faults) {
  if (!isText(link.name))
    faults.add(where, "the link's name is not plain text");
  if (link.latency < 0)
    faults.add(where, "latency of {} ns", link.latency);
  if (!std::isfinite(link.bytesPerSecond) || link.bytesPerSecond < 0)
    faults.add(where, "bad bandwidth");
}

void checkChannels(const Plan &plan, Faults &faults) {
  for (const Channel &channel : plan.channels) {
    std::string where = "channel " + quoted(channel.name) + ": ";
    checkLink(channel.link, where, faults);
    if (!isKnown(channel.kind))
      faults.add(where, "unknown kind");
    if (channel.srcRole >= plan.roles.size() ||
        channel.dstRole >= plan.roles.size()) {
      faults.add(where, "no such role");
      continue;
    }
    if (channel.srcRole == channel.dstRole)
      faults.add(where, "both ends are the same role");
    if (channel.bytes < 1 || channel.bytes > kMostBytes) {
      faults.add(where, "{} bytes", channel.bytes);
      continue;
    }
    if (channel.kind == ChannelKind::Tie)
      continue;
    for (uint16_t end : {channel.srcRole, channel.dstRole})
      if (channel.bytes % plan.roles[end].replicas != 0)
        faults.add(where, "{} bytes do not divide over {} replicas",
                   channel.bytes, plan.roles[end].replicas);
  }
  for (const Group &group : plan.groups) {
    std::string where = "group " + quoted(group.name) + ": ";
    checkLink(group.link, where, faults);
    if (group.role >= plan.roles.size())
      faults.add(where, "no such role");
  }
}

//===----------------------------------------------------------------------===//
// Resources
//===----------------------------------------------------------------------===//

/// As in a cluster file: sums over all devices stay countable.
constexpr int64_t kMostPrice = int64_t(1000000) * 1000000;

void checkResources(const Plan &plan, Faults &faults) {
  int64_t devices = 0;
  for (size_t i = 0; i < plan.resources.size(); ++i) {
    const NodeResources &nodes = plan.resources[i];
    std::string where = fmt::format("nodes {}: ", i);
    if (nodes.nodes < 1 || nodes.devices < 1)
      return faults.add(where, "{} nodes of {} devices", nodes.nodes,
                        nodes.devices);
    devices += int64_t(nodes.nodes) * nodes.devices;
    if (devices > (1 << 24))
      return faults.add(where, "more than {} devices", 1 << 24);
    if (nodes.cores < 0 || nodes.copyEngines < 0 || nodes.networkPorts < 0)
      faults.add(where, "a count is negative");
    for (double rate : {nodes.memoryBytesPerSecond, nodes.portBytesPerSecond,
                        nodes.networkBytesPerSecond})
      if (!std::isfinite(rate) || rate < 0)
        faults.add(where, "bad bandwidth");
    if (nodes.price < 0 || nodes.price > kMostPrice)
      faults.add(where, "a price of {} millionths an hour", nodes.price);
    if (!(nodes.transferShare >= 0 && nodes.transferShare <= 1))
      faults.add(where, "a share of {} is not between 0 and 1",
                 nodes.transferShare);
  }
  if (plan.resources.empty() || !faults.list.empty())
    return;
  for (const Role &role : plan.roles)
    for (int32_t device : role.devices)
      if (device >= devices)
        return faults.add("role " + quoted(role.name) + ": ",
                          "device {} is not one of the {} of the nodes", device,
                          devices);
}

//===----------------------------------------------------------------------===//
// Total time
//===----------------------------------------------------------------------===//

/// Seconds of wire in doubles: the integer forms in plan.h are only safe once
/// this has bounded them.
double wireNanos(const Link &link, double bytes) {
  double wire = link.bytesPerSecond > 0 ? bytes * 1e9 / link.bytesPerSecond : 0;
  return static_cast<double>(link.latency) + wire;
}

double instrNanos(const Plan &plan, const Role &role, const Instr &instr) {
  switch (instr.kind) {
  case InstrKind::Call:
    return static_cast<double>(role.procedures[instr.target].cost);
  case InstrKind::Load:
    return 0;
  case InstrKind::Send:
  case InstrKind::Recv: {
    const Channel &channel = plan.channels[instr.target];
    double copies = channel.kind == ChannelKind::Tie
                        ? plan.roles[channel.dstRole].replicas
                        : 1;
    return wireNanos(channel.link, copies * static_cast<double>(channel.bytes));
  }
  case InstrKind::AllReduce:
    if (const Endpoint *end = findEndpoint(role.groups, instr.target))
      return 2.0 * role.replicas *
             wireNanos(plan.groups[instr.target].link,
                       static_cast<double>(end->buffer.bytes));
  }
  return 0;
}

/// No run of the plan can take longer than all its instructions one by one:
/// that sum must fit nanoseconds, so that no later addition overflows.
void checkTotalTime(const Plan &plan, Faults &faults) {
  double total = 0;
  for (const Role &role : plan.roles) {
    for (const Procedure &procedure : role.procedures) // even if never called
      total += static_cast<double>(procedure.cost);
    for (const Lane &lane : role.lanes)
      for (const Instr &instr : lane.instrs)
        total += role.replicas * instrNanos(plan, role, instr);
  }
  if (!(total < 4e18))
    faults.add("", "the plan's times add up to {} ns, more than can be counted",
               total);
}

} // namespace

Faults findFaults(const Plan &plan) {
  Faults faults;
  checkAllNames(plan, faults);
  checkTraining(plan.training, faults);
  checkModel(plan, faults);
  if (faults.list.empty())
    checkRanks(plan, faults);
  if (faults.list.empty())
    checkDevices(plan, faults);
  if (faults.list.empty())
    checkChannels(plan, faults);
  if (faults.list.empty())
    checkResources(plan, faults);
  if (faults.list.empty())
    for (size_t i = 0; i < plan.roles.size(); ++i)
      checkRole(plan, i, faults);
  if (faults.list.empty())
    checkTotalTime(plan, faults);
  return faults;
}

std::vector<std::string> checkStructure(const Plan &plan) {
  return findFaults(plan).list;
}

void requireSound(const Plan &plan, const std::string &name) {
  std::vector<std::string> faults = checkStructure(plan);
  if (faults.empty())
    return;
  std::string more =
      faults.size() > 1 ? fmt::format(" (and {} more)", faults.size() - 1) : "";
  throw Error(fmt::format("{}: {}{}", name, faults.front(), more));
}

} // namespace takt::rt
