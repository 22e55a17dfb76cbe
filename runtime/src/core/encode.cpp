//===- encode.cpp - plan to bytes -------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Equal strings, equal slot tables and equal buffers of a role are stored once;
// that and the pooled structs keep a plan of thousands of layers and actions
// below two megabytes. The order of writing depends on the plan alone.
//
//===----------------------------------------------------------------------===//
#include "checksum.h"

#include "takt-rt/core/file.h"

#include "plan_generated.h"

#include <map>
#include <tuple>

namespace takt::rt {

namespace {

using flatbuffers::Offset;
using flatbuffers::Vector;

class Encoder {
public:
  std::vector<uint8_t> encode(const Plan &plan);

private:
  using String = Offset<flatbuffers::String>;
  template <typename T>
  using Tables = Offset<Vector<Offset<T>>>;

  String text(const std::string &s) { return builder.CreateSharedString(s); }
  /// Encodes each thing by a member function and returns the vector of tables.
  template <typename Things, typename T>
  Tables<T>
  each(const Things &things,
       Offset<T> (Encoder::*one)(const typename Things::value_type &)) {
    std::vector<Offset<T>> offsets;
    offsets.reserve(things.size());
    for (const auto &thing : things)
      offsets.push_back((this->*one)(thing));
    return builder.CreateVector(offsets);
  }

  Offset<fb::Link> link(const Link &link);
  Offset<fb::Channel> channel(const Channel &channel);
  Offset<fb::Group> group(const Group &group);
  Offset<fb::NodeResources> nodeResources(const NodeResources &nodes);
  Offset<fb::Pool> pool(const Pool &pool);
  Offset<fb::Procedure> procedure(const Procedure &procedure);
  Offset<fb::Lane> lane(const Lane &lane);
  Offset<fb::LoadField> load(const LoadField &load);
  Offset<fb::RoleParam> roleParam(const RoleParam &use);
  Offset<fb::Role> role(const Role &role);
  Offset<fb::Param> param(const Param &param);
  Offset<fb::Layer> layer(const LayerInfo &layer);
  Offset<fb::Input> input(const InputInfo &input);
  Offset<fb::Training> training(const Training &training);

  uint32_t buffer(const BufferRef &ref);
  Offset<Vector<uint32_t>> bufferList(const std::vector<BufferRef> &refs);
  Offset<Vector<const fb::Endpoint *>>
  endpoints(const std::vector<Endpoint> &ends);

  flatbuffers::FlatBufferBuilder builder{1 << 16};
  std::map<std::vector<uint16_t>, Offset<Vector<uint16_t>>> slotTables;
  /// Buffers of the role being encoded.
  std::map<std::tuple<uint16_t, Bytes, Bytes>, uint32_t> bufferIndex;
  std::vector<fb::BufferRef> buffers;
};

template <typename Enum>
uint8_t byteOf(Enum value) {
  return static_cast<uint8_t>(value);
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

uint32_t Encoder::buffer(const BufferRef &ref) {
  auto [entry, isNew] =
      bufferIndex.insert({std::make_tuple(ref.pool, ref.offset, ref.bytes),
                          static_cast<uint32_t>(buffers.size())});
  if (isNew)
    buffers.emplace_back(ref.offset, ref.bytes, ref.pool);
  return entry->second;
}

Offset<Vector<uint32_t>>
Encoder::bufferList(const std::vector<BufferRef> &refs) {
  std::vector<uint32_t> indices;
  for (const BufferRef &ref : refs)
    indices.push_back(buffer(ref));
  return builder.CreateVector(indices);
}

Offset<Vector<const fb::Endpoint *>>
Encoder::endpoints(const std::vector<Endpoint> &ends) {
  std::vector<fb::Endpoint> structs;
  for (const Endpoint &end : ends)
    structs.emplace_back(buffer(end.buffer), end.target);
  return builder.CreateVectorOfStructs(structs);
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

Offset<fb::Pool> Encoder::pool(const Pool &pool) {
  auto entry = slotTables.find(pool.slotOf);
  if (entry == slotTables.end())
    entry = slotTables.emplace(pool.slotOf, builder.CreateVector(pool.slotOf))
                .first;
  return fb::CreatePool(builder, text(pool.name), byteOf(pool.kind), pool.base,
                        pool.slotBytes, pool.count, entry->second);
}

Offset<fb::Procedure> Encoder::procedure(const Procedure &procedure) {
  std::vector<fb::Kernel> kernels;
  std::vector<uint32_t> operands;
  std::vector<int64_t> dims;
  std::vector<double> scalars;
  for (const Kernel &kernel : procedure.kernels) {
    kernels.emplace_back(kernel.layer, byteOf(kernel.kind),
                         byteOf(kernel.phase),
                         static_cast<uint8_t>(kernel.operands.size()),
                         static_cast<uint8_t>(kernel.dims.size()),
                         static_cast<uint8_t>(kernel.scalars.size()));
    for (const BufferRef &operand : kernel.operands)
      operands.push_back(buffer(operand));
    dims.insert(dims.end(), kernel.dims.begin(), kernel.dims.end());
    scalars.insert(scalars.end(), kernel.scalars.begin(), kernel.scalars.end());
  }
  auto name = text(procedure.name);
  auto kernelVector = builder.CreateVectorOfStructs(kernels);
  auto operandVector = builder.CreateVector(operands);
  auto dimVector = builder.CreateVector(dims);
  auto scalarVector = builder.CreateVector(scalars);
  return fb::CreateProcedure(builder, name, byteOf(procedure.phase),
                             procedure.stage, procedure.cost, kernelVector,
                             operandVector, dimVector, scalarVector);
}

Offset<fb::Lane> Encoder::lane(const Lane &lane) {
  std::vector<fb::Instr> instrs;
  std::vector<fb::Wait> waits;
  instrs.reserve(lane.instrs.size());
  for (const Instr &instr : lane.instrs) {
    instrs.emplace_back(instr.microBatch, instr.target, byteOf(instr.kind),
                        static_cast<uint8_t>(instr.waitEnd - instr.waitBegin));
    for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w)
      waits.emplace_back(lane.waits[w].count, lane.waits[w].lane);
  }
  auto name = text(lane.name);
  auto instrVector = builder.CreateVectorOfStructs(instrs);
  auto waitVector = builder.CreateVectorOfStructs(waits);
  // The places of a lane rise by little: most take a byte.
  std::vector<uint8_t> places;
  uint32_t last = ~uint32_t(0);
  for (uint32_t place : lane.order) {
    uint32_t rise = place - last;
    for (; rise >= 0x80; rise >>= 7)
      places.push_back(static_cast<uint8_t>(rise | 0x80));
    places.push_back(static_cast<uint8_t>(rise));
    last = place;
  }
  Offset<Vector<uint8_t>> order;
  if (!places.empty())
    order = builder.CreateVector(places);
  return fb::CreateLane(builder, name, byteOf(lane.kind), instrVector,
                        waitVector, order);
}

Offset<fb::LoadField> Encoder::load(const LoadField &load) {
  auto input = text(load.input);
  return fb::CreateLoadField(builder, input, buffer(load.buffer));
}

Offset<fb::RoleParam> Encoder::roleParam(const RoleParam &use) {
  uint32_t weight = buffer(use.weight);
  auto grads = bufferList(use.grads);
  auto state = bufferList(use.state);
  return fb::CreateRoleParam(builder, use.param, weight, grads, state);
}

Offset<fb::Role> Encoder::role(const Role &role) {
  bufferIndex.clear();
  buffers.clear();
  auto name = text(role.name);
  auto stages = builder.CreateVector(role.stages);
  auto devices = builder.CreateVector(role.devices);
  auto pools = each(role.pools, &Encoder::pool);
  auto procedures = each(role.procedures, &Encoder::procedure);
  auto lanes = each(role.lanes, &Encoder::lane);
  auto channels = endpoints(role.channels);
  auto groups = endpoints(role.groups);
  auto loads = each(role.loads, &Encoder::load);
  auto params = each(role.params, &Encoder::roleParam);
  // Left out of plans that train: they are as they always were.
  Offset<flatbuffers::Vector<uint32_t>> result;
  if (role.result.bytes > 0)
    result = bufferList({role.result});
  auto bufferVector = builder.CreateVectorOfStructs(buffers);
  return fb::CreateRole(builder, name, role.firstRank, role.replicas, stages,
                        devices, bufferVector, pools, procedures, lanes,
                        channels, groups, loads, params, role.hasLoss,
                        role.arenaBytes, role.livenessBytes, role.capacity,
                        role.peakInFlight, result);
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

Offset<fb::Link> Encoder::link(const Link &link) {
  return fb::CreateLink(builder, text(link.name), link.latency,
                        link.bytesPerSecond);
}

Offset<fb::Channel> Encoder::channel(const Channel &channel) {
  auto name = text(channel.name);
  return fb::CreateChannel(builder, name, byteOf(channel.kind), channel.srcRole,
                           channel.dstRole, channel.bytes, link(channel.link));
}

Offset<fb::Group> Encoder::group(const Group &group) {
  auto name = text(group.name);
  return fb::CreateGroup(builder, name, group.role, link(group.link));
}

Offset<fb::Param> Encoder::param(const Param &param) {
  auto name = text(param.name);
  auto shape = builder.CreateVector(param.shape);
  return fb::CreateParam(builder, name, shape, byteOf(param.init),
                         param.initScale, param.trainable);
}

Offset<fb::NodeResources> Encoder::nodeResources(const NodeResources &nodes) {
  auto kind = text(nodes.kind);
  return fb::CreateNodeResources(
      builder, nodes.nodes, nodes.devices, nodes.cores, nodes.copyEngines,
      nodes.transferShare, nodes.memoryBytesPerSecond, nodes.portBytesPerSecond,
      nodes.networkBytesPerSecond, nodes.networkPorts, kind, nodes.price);
}

Offset<fb::Layer> Encoder::layer(const LayerInfo &layer) {
  auto name = text(layer.name);
  return fb::CreateLayer(builder, name, text(layer.kind));
}

Offset<fb::Input> Encoder::input(const InputInfo &input) {
  auto name = text(input.name);
  auto shape = builder.CreateVector(input.shape);
  return fb::CreateInput(builder, name, byteOf(input.dtype), shape,
                         input.classes);
}

Offset<fb::Training> Encoder::training(const Training &t) {
  return fb::CreateTraining(builder, t.globalBatch, t.microBatches, t.seed,
                            byteOf(t.optimizer), t.learningRate, t.momentum,
                            t.beta1, t.beta2, t.epsilon, t.weightDecay,
                            byteOf(t.schedule), t.warmupSteps, t.totalSteps,
                            t.minLearningRate, byteOf(t.mode));
}

std::vector<uint8_t> Encoder::encode(const Plan &plan) {
  std::vector<String> featureTexts;
  for (const std::string &feature : plan.requiredFeatures)
    featureTexts.push_back(text(feature));
  auto features = builder.CreateVector(featureTexts);
  auto model = text(plan.model);
  auto cluster = text(plan.cluster);
  auto compiler = text(plan.compiler);
  auto inputHash = text(plan.inputHash);
  auto schedule = text(plan.schedule);
  auto costSource = text(plan.costSource);
  auto trainingTable = training(plan.training);
  auto inputs = each(plan.inputs, &Encoder::input);
  auto layers = each(plan.layers, &Encoder::layer);
  auto params = each(plan.params, &Encoder::param);
  auto channels = each(plan.channels, &Encoder::channel);
  auto groups = each(plan.groups, &Encoder::group);
  auto roles = each(plan.roles, &Encoder::role);
  // Left out where nothing is shared: such plans are as they always were.
  Offset<flatbuffers::Vector<Offset<fb::NodeResources>>> resources;
  if (!plan.resources.empty())
    resources = each(plan.resources, &Encoder::nodeResources);
  Offset<fb::Output> output;
  if (!plan.output.name.empty()) {
    auto name = text(plan.output.name);
    output = fb::CreateOutput(builder, name,
                              builder.CreateVector(plan.output.shape));
  }
  fb::FinishPlanBuffer(
      builder,
      fb::CreatePlan(builder, Plan::kFormatMajor, Plan::kFormatMinor, features,
                     model, cluster, compiler, inputHash, schedule, costSource,
                     trainingTable, inputs, layers, params, channels, groups,
                     roles, plan.predictedStep, plan.boundStep,
                     plan.objectiveStep, resources, /*checked=*/true, output,
                     plan.predictedPeriod, plan.predictedLatency));
  std::vector<uint8_t> bytes(builder.GetBufferPointer(),
                             builder.GetBufferPointer() + builder.GetSize());
  appendChecksum(bytes);
  return bytes;
}

} // namespace

std::vector<uint8_t> serialize(const Plan &plan) {
  return Encoder().encode(plan);
}

} // namespace takt::rt
