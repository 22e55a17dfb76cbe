//===- text_parser.cpp - text to plan ---------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Statements outside roles, and the references to roles that they make.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/proof.h"
#include "takt-rt/core/text.h"

#include "check.h"
#include "text_parser.h"

#include <map>

namespace takt::rt {

static constexpr std::string_view kMagic = "takt-plan";

bool TextParser::headerStatement() {
  auto text = [&](std::string_view word, std::string &field) {
    if (!in.acceptWord(word))
      return false;
    field = in.name("a string");
    return true;
  };
  auto nanos = [&](std::string_view word, Nanos &field) {
    if (!in.acceptWord(word))
      return false;
    field = in.integer<Nanos>();
    return true;
  };
  if (in.acceptWord("feature")) {
    size_t at = in.position();
    std::string feature = in.name("a string");
    in.failAt(at, fmt::format("needs the feature '{}', which this program does "
                              "not know",
                              feature));
  }
  return text("model", plan.model) || text("cluster", plan.cluster) ||
         text("compiler", plan.compiler) ||
         text("input_hash", plan.inputHash) ||
         text("schedule", plan.schedule) ||
         text("cost_source", plan.costSource) ||
         nanos("predicted_step", plan.predictedStep) ||
         nanos("bound_step", plan.boundStep) ||
         nanos("objective_step", plan.objectiveStep) ||
         nanos("predicted_period", plan.predictedPeriod) ||
         nanos("predicted_latency", plan.predictedLatency);
}

void TextParser::training() {
  Training &t = plan.training;
  std::map<std::string_view, double *> reals = {
      {"learning_rate", &t.learningRate},
      {"momentum", &t.momentum},
      {"beta1", &t.beta1},
      {"beta2", &t.beta2},
      {"epsilon", &t.epsilon},
      {"weight_decay", &t.weightDecay},
      {"min_learning_rate", &t.minLearningRate}};
  std::map<std::string_view, int64_t *> integers = {
      {"global_batch", &t.globalBatch},
      {"warmup_steps", &t.warmupSteps},
      {"total_steps", &t.totalSteps}};
  in.expect("{");
  while (!in.accept("}")) {
    size_t at = in.position();
    std::string_view word = in.word("a training setting or '}'");
    if (reals.count(word))
      *reals[word] = in.real();
    else if (integers.count(word))
      *integers[word] = in.integer<int64_t>();
    else if (word == "micro_batches")
      t.microBatches = in.integer<int32_t>();
    else if (word == "seed")
      t.seed = in.integer<uint64_t>();
    else if (word == "mode")
      t.mode = value<Mode>("mode");
    else if (word == "optimizer")
      t.optimizer = value<OptimizerKind>("optimizer");
    else if (word == "schedule")
      t.schedule = value<LrSchedule>("learning-rate schedule");
    else
      in.failAt(at, fmt::format("unknown training setting '{}'", word));
  }
}

void TextParser::modelStatement() {
  size_t at = in.position();
  if (in.acceptWord("input")) {
    InputInfo input;
    input.name = in.name("the input's name");
    input.dtype = value<DType>("element type");
    input.shape = integers<int64_t>();
    in.expectWord("classes");
    input.classes = in.integer<int64_t>();
    plan.inputs.push_back(std::move(input));
  } else if (in.acceptWord("layer")) {
    LayerInfo layer;
    layer.name = in.name("the layer's name");
    layer.kind = in.name("the layer's kind");
    plan.layers.push_back(std::move(layer));
  } else if (in.acceptWord("param")) {
    Param param;
    param.name = in.name("the parameter's name");
    add(params, param.name, at, "parameter");
    param.shape = integers<int64_t>();
    param.init = value<InitKind>("initialiser");
    param.initScale = in.real();
    param.trainable = !in.acceptWord("frozen");
    plan.params.push_back(std::move(param));
  } else if (in.acceptWord("output")) {
    plan.output.name = in.name("the layer's name");
    plan.output.shape = integers<int64_t>();
  } else if (in.acceptWord("channel")) {
    channel();
  } else if (in.acceptWord("group")) {
    group();
  } else if (in.acceptWord("nodes")) {
    nodes();
  } else {
    std::string_view word = in.peekWord();
    in.fail(word.empty() ? "expected a statement"
                         : fmt::format("unknown statement '{}'", word));
  }
}

Link TextParser::link() {
  Link link;
  in.expectWord("link");
  link.name = in.name("the link's name");
  in.expectWord("latency");
  link.latency = in.integer<Nanos>();
  in.expectWord("bandwidth");
  link.bytesPerSecond = in.real();
  return link;
}

void TextParser::channel() {
  Channel channel;
  size_t at = in.position();
  channel.name = in.name("the channel's name");
  add(channels, channel.name, at, "channel");
  channel.kind = value<ChannelKind>("kind of channel");
  Later source = later("role");
  in.expect("->");
  channelEnds.emplace_back(source, later("role"));
  in.expectWord("bytes");
  channel.bytes = in.integer<Bytes>();
  channel.link = link();
  plan.channels.push_back(std::move(channel));
}

void TextParser::group() {
  Group group;
  size_t at = in.position();
  group.name = in.name("the group's name");
  add(groups, group.name, at, "group");
  in.expectWord("of");
  groupRoles.push_back(later("role"));
  group.link = link();
  plan.groups.push_back(std::move(group));
}

void TextParser::nodes() {
  NodeResources nodes;
  nodes.nodes = in.integer<int32_t>();
  auto integer = [&](const char *word, int32_t &value) {
    in.expectWord(word);
    value = in.integer<int32_t>();
  };
  auto real = [&](const char *word, double &value) {
    in.expectWord(word);
    value = in.real();
  };
  integer("devices", nodes.devices);
  integer("cores", nodes.cores);
  integer("copy_engines", nodes.copyEngines);
  real("transfer_share", nodes.transferShare);
  real("memory_bandwidth", nodes.memoryBytesPerSecond);
  real("port", nodes.portBytesPerSecond);
  real("network", nodes.networkBytesPerSecond);
  integer("network_ports", nodes.networkPorts);
  if (in.acceptWord("kind"))
    nodes.kind = in.name("the kind of device");
  if (in.acceptWord("price"))
    nodes.price = in.integer<int64_t>();
  plan.resources.push_back(nodes);
}

void TextParser::resolveRoles() {
  auto indexOf = [&](const Later &role) {
    return static_cast<uint16_t>(find(roles, role.name, role.at, "role"));
  };
  if (plan.roles.size() > 0xffff)
    in.fail("more than 65535 roles");
  for (size_t i = 0; i < channelEnds.size(); ++i) {
    plan.channels[i].srcRole = indexOf(channelEnds[i].first);
    plan.channels[i].dstRole = indexOf(channelEnds[i].second);
  }
  for (size_t i = 0; i < groupRoles.size(); ++i)
    plan.groups[i].role = indexOf(groupRoles[i]);
}

Plan TextParser::parse() {
  in.expectWord(kMagic);
  size_t at = in.position();
  auto major = in.integer<int32_t>();
  in.expect(".");
  auto minor = in.integer<int32_t>();
  if (major != Plan::kFormatMajor)
    in.failAt(at, fmt::format("written in plan format {}.{}, this program "
                              "reads {}.x",
                              major, minor, Plan::kFormatMajor));
  while (!in.atEnd()) {
    if (in.acceptWord("training"))
      training();
    else if (in.acceptWord("role"))
      role();
    else if (!headerStatement())
      modelStatement();
  }
  resolveRoles();
  return std::move(plan);
}

bool looksLikePlanText(std::string_view text) {
  return text.substr(0, kMagic.size()) == kMagic;
}

Plan parsePlanText(std::string_view text, const std::string &name,
                   Reading reading) {
  Plan plan = TextParser(text, name).parse();
  if (reading == Reading::Form)
    return plan;
  requireSound(plan, name);
  if (hasCertificate(plan))
    requireProof(checkCertificate(plan), name);
  return plan;
}

} // namespace takt::rt
