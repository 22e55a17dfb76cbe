//===- text_writer.cpp - plan to text ---------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Things are referred to by name, buffers as `pool+offset:bytes`. Doubles are
// printed in their shortest form that reads back to the same value.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/names.h"
#include "takt-rt/core/text.h"

#include "text_scanner.h"

#include <fmt/format.h>

#include <iterator>

namespace takt::rt {

namespace {

std::string inQuotes(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + '"';
}

std::string named(const std::string &name) {
  return isBareWord(name) ? name : inQuotes(name);
}

template <typename T>
std::string list(const std::vector<T> &numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

class Writer {
public:
  explicit Writer(const Plan &plan) : plan(plan) {}
  std::string write();

private:
  template <typename... Args>
  void line(int indent, fmt::format_string<Args...> format, Args &&...args) {
    text.append(2 * indent, ' ');
    fmt::format_to(std::back_inserter(text), format,
                   std::forward<Args>(args)...);
    text += '\n';
  }

  std::string buffer(const Role &role, const BufferRef &ref) {
    return fmt::format("{}+{}:{}", named(role.pools[ref.pool].name), ref.offset,
                       ref.bytes);
  }
  std::string buffers(const Role &role, const std::vector<BufferRef> &refs) {
    std::string result;
    for (const BufferRef &ref : refs)
      result += (result.empty() ? "" : ", ") + buffer(role, ref);
    return result;
  }
  std::string link(const Link &link) {
    return fmt::format("link {} latency {} bandwidth {}", inQuotes(link.name),
                       link.latency, link.bytesPerSecond);
  }

  void header();
  void training();
  void model();
  void communication();
  void role(const Role &role);
  void memory(const Role &role);
  void procedure(const Role &role, const Procedure &procedure);
  void lane(const Role &role, const Lane &lane);

  const Plan &plan;
  std::string text;
};

void Writer::header() {
  line(0, "takt-plan {}.{}", Plan::kFormatMajor, Plan::kFormatMinor);
  line(0, "model {}", inQuotes(plan.model));
  line(0, "cluster {}", inQuotes(plan.cluster));
  line(0, "compiler {}", inQuotes(plan.compiler));
  line(0, "input_hash {}", inQuotes(plan.inputHash));
  line(0, "schedule {}", inQuotes(plan.schedule));
  line(0, "cost_source {}", inQuotes(plan.costSource));
  for (const std::string &feature : plan.requiredFeatures)
    line(0, "feature {}", inQuotes(feature));
  line(0, "predicted_step {}", plan.predictedStep);
  line(0, "bound_step {}", plan.boundStep);
  line(0, "objective_step {}", plan.objectiveStep);
  if (plan.training.mode == Mode::Training)
    return;
  line(0, "predicted_period {}", plan.predictedPeriod);
  line(0, "predicted_latency {}", plan.predictedLatency);
}

void Writer::training() {
  const Training &t = plan.training;
  line(0, "\ntraining {{");
  if (t.mode != Mode::Training)
    line(1, "mode {}", nameOf(t.mode));
  line(1, "global_batch {}", t.globalBatch);
  line(1, "micro_batches {}", t.microBatches);
  line(1, "seed {}", t.seed);
  line(1, "optimizer {}", nameOf(t.optimizer));
  line(1, "learning_rate {}", t.learningRate);
  line(1, "momentum {}", t.momentum);
  line(1, "beta1 {}", t.beta1);
  line(1, "beta2 {}", t.beta2);
  line(1, "epsilon {}", t.epsilon);
  line(1, "weight_decay {}", t.weightDecay);
  line(1, "schedule {}", nameOf(t.schedule));
  line(1, "warmup_steps {}", t.warmupSteps);
  line(1, "total_steps {}", t.totalSteps);
  line(1, "min_learning_rate {}", t.minLearningRate);
  line(0, "}}\n");
}

void Writer::model() {
  for (const InputInfo &input : plan.inputs)
    line(0, "input {} {} {} classes {}", named(input.name), nameOf(input.dtype),
         list(input.shape), input.classes);
  for (const LayerInfo &layer : plan.layers)
    line(0, "layer {} {}", named(layer.name), named(layer.kind));
  for (const Param &param : plan.params)
    line(0, "param {} {} {} {}{}", named(param.name), list(param.shape),
         nameOf(param.init), param.initScale, param.trainable ? "" : " frozen");
  if (!plan.output.name.empty())
    line(0, "output {} {}", named(plan.output.name), list(plan.output.shape));
}

void Writer::communication() {
  for (const Channel &channel : plan.channels)
    line(0, "channel {} {} {} -> {} bytes {} {}", named(channel.name),
         nameOf(channel.kind), named(plan.roles[channel.srcRole].name),
         named(plan.roles[channel.dstRole].name), channel.bytes,
         link(channel.link));
  for (const NodeResources &nodes : plan.resources)
    line(0,
         "nodes {} devices {} cores {} copy_engines {} transfer_share {} "
         "memory_bandwidth {} port {} network {} network_ports {}{}{}",
         nodes.nodes, nodes.devices, nodes.cores, nodes.copyEngines,
         nodes.transferShare, nodes.memoryBytesPerSecond,
         nodes.portBytesPerSecond, nodes.networkBytesPerSecond,
         nodes.networkPorts,
         nodes.kind.empty() ? "" : " kind " + named(nodes.kind),
         nodes.price == 0 ? "" : fmt::format(" price {}", nodes.price));
  for (const Group &group : plan.groups)
    line(0, "group {} of {} {}", named(group.name),
         named(plan.roles[group.role].name), link(group.link));
}

void Writer::memory(const Role &role) {
  line(1, "arena {} liveness {} capacity {} in_flight {}", role.arenaBytes,
       role.livenessBytes, role.capacity, role.peakInFlight);
  for (const Pool &pool : role.pools)
    line(1, "pool {} {} base {} slots {} x {}{}", named(pool.name),
         nameOf(pool.kind), pool.base, pool.count, pool.slotBytes,
         pool.slotOf.empty() ? "" : " of " + list(pool.slotOf));
  if (role.result.bytes > 0)
    line(1, "result at {}", buffer(role, role.result));
  for (const LoadField &load : role.loads)
    line(1, "load {} at {}", named(load.input), buffer(role, load.buffer));
  for (const RoleParam &use : role.params)
    line(1, "param {} at {} grads [{}] state [{}]",
         named(plan.params[use.param].name), buffer(role, use.weight),
         buffers(role, use.grads), buffers(role, use.state));
  for (const Endpoint &end : role.channels)
    line(1, "channel {} at {}", named(plan.channels[end.target].name),
         buffer(role, end.buffer));
  for (const Endpoint &end : role.groups)
    line(1, "group {} at {}", named(plan.groups[end.target].name),
         buffer(role, end.buffer));
}

void Writer::procedure(const Role &role, const Procedure &procedure) {
  line(1, "procedure {} stage {} {} cost {} {{", named(procedure.name),
       procedure.stage, nameOf(procedure.phase), procedure.cost);
  for (const Kernel &kernel : procedure.kernels) {
    std::string layer, scalars, comment;
    if (kernel.layer >= 0) {
      layer = fmt::format(" layer {}", kernel.layer);
      comment = "  # " + plan.layers[kernel.layer].name;
    }
    if (!kernel.scalars.empty())
      scalars = fmt::format(" {{{}}}", fmt::join(kernel.scalars, ", "));
    line(2, "{} {}{} ({}) {}{}{}", nameOf(kernel.kind), nameOf(kernel.phase),
         layer, buffers(role, kernel.operands), list(kernel.dims), scalars,
         comment);
  }
  line(1, "}}");
}

void Writer::lane(const Role &role, const Lane &lane) {
  line(1, "lane {} {} {{", named(lane.name), nameOf(lane.kind));
  for (size_t i = 0; i < lane.instrs.size(); ++i) {
    const Instr &instr = lane.instrs[i];
    std::string code(nameOf(instr.kind));
    if (instr.kind == InstrKind::Call) {
      const Procedure &procedure = role.procedures[instr.target];
      code += fmt::format(" {}.{}", procedure.stage, named(procedure.name));
    } else if (instr.kind == InstrKind::AllReduce) {
      code += " " + named(plan.groups[instr.target].name);
    } else if (instr.kind != InstrKind::Load) {
      code += " " + named(plan.channels[instr.target].name);
    }
    if (instr.microBatch >= 0)
      code += fmt::format(" {}", instr.microBatch);
    for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w)
      code += fmt::format("{} {}:{}", w == instr.waitBegin ? " after" : ",",
                          named(role.lanes[lane.waits[w].lane].name),
                          lane.waits[w].count);
    if (i < lane.order.size())
      code += fmt::format(" at {}", lane.order[i]);
    line(2, "{:<44} # {}", code, actionText(plan, role, instr));
  }
  line(1, "}}");
}

void Writer::role(const Role &role) {
  line(0, "\nrole {} {{", named(role.name));
  line(1, "ranks {} + {}", role.firstRank, role.replicas);
  line(1, "stages {}", list(role.stages));
  line(1, "devices {}", list(role.devices));
  if (role.hasLoss)
    line(1, "loss");
  memory(role);
  for (const Procedure &one : role.procedures)
    procedure(role, one);
  for (const Lane &one : role.lanes)
    lane(role, one);
  line(0, "}}");
}

std::string Writer::write() {
  header();
  training();
  model();
  communication();
  for (const Role &one : plan.roles)
    role(one);
  return std::move(text);
}

} // namespace

std::string toText(const Plan &plan) { return Writer(plan).write(); }

} // namespace takt::rt
