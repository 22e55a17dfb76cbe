//===- decode.cpp - bytes to plan -------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The FlatBuffers verifier makes sure that reading stays inside the file. What
// it does not see is caught here: indices into the pooled vectors, and files
// whose parts point at the same data over and over so that a small file would
// unfold into all memory.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/proof.h"

#include "check.h"
#include "checksum.h"
#include "plan_generated.h"

#include <fmt/format.h>

#include <cstddef>

namespace takt::rt {

namespace {

class Decoder {
public:
  explicit Decoder(const std::string &name) : file(name) {}
  Plan decode(const uint8_t *bytes, size_t size);

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(fmt::format("{}: {}", file, what));
  }
  /// Counts what is unfolded; honest plans stay far below.
  void spend(size_t bytes) {
    if (bytes > budget)
      fail("unfolds into more than 1 GiB: not a sound plan");
    budget -= bytes;
  }

  std::string text(const flatbuffers::String *s) {
    spend(s ? s->size() : 0);
    return s ? s->str() : std::string();
  }
  /// The verifier aligns a vector's length, not its elements, which may need
  /// more.
  template <typename T, typename V>
  void requireAligned(const V *from) {
    if (from && from->size() > 0 &&
        reinterpret_cast<uintptr_t>(from->Data()) % alignof(T) != 0)
      fail("damaged: a vector is not aligned");
  }
  template <typename T>
  std::vector<T> numbers(const flatbuffers::Vector<T> *from) {
    requireAligned<T>(from);
    spend(from ? from->size() * sizeof(T) : 0);
    return from ? std::vector<T>(from->begin(), from->end()) : std::vector<T>();
  }
  /// Decodes each table of a vector by a member function.
  template <typename To, typename From>
  std::vector<To>
  each(const flatbuffers::Vector<flatbuffers::Offset<From>> *all,
       To (Decoder::*one)(const From &)) {
    std::vector<To> result;
    if (!all)
      return result;
    spend(all->size() * sizeof(To));
    result.reserve(all->size());
    for (const From *from : *all)
      result.push_back((this->*one)(*from));
    return result;
  }

  BufferRef buffer(uint32_t index) {
    if (!buffers || index >= buffers->size())
      fail(fmt::format("no buffer {}", index));
    const fb::BufferRef *ref = buffers->Get(index);
    return {ref->pool(), ref->offset(), ref->bytes()};
  }
  std::vector<BufferRef> bufferList(const flatbuffers::Vector<uint32_t> *all);
  std::vector<Endpoint>
  endpoints(const flatbuffers::Vector<const fb::Endpoint *> *all);

  Link link(const fb::Link *from);
  Channel channel(const fb::Channel &from);
  Group group(const fb::Group &from);
  NodeResources nodeResources(const fb::NodeResources &from);
  Pool pool(const fb::Pool &from);
  Procedure procedure(const fb::Procedure &from);
  Lane lane(const fb::Lane &from);
  std::vector<uint32_t> places(const flatbuffers::Vector<uint8_t> &from,
                               size_t count);
  LoadField load(const fb::LoadField &from);
  RoleParam roleParam(const fb::RoleParam &from);
  Role role(const fb::Role &from);
  Param param(const fb::Param &from);
  LayerInfo layer(const fb::Layer &from);
  InputInfo input(const fb::Input &from);
  Training training(const fb::Training &from);
  void checkVersion(const fb::Plan &from);

  const std::string &file;
  size_t budget = size_t(1) << 30;
  /// Of the role being decoded.
  const flatbuffers::Vector<const fb::BufferRef *> *buffers = nullptr;
};

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

std::vector<BufferRef>
Decoder::bufferList(const flatbuffers::Vector<uint32_t> *all) {
  std::vector<BufferRef> result;
  if (!all)
    return result;
  spend(all->size() * sizeof(BufferRef));
  for (uint32_t index : *all)
    result.push_back(buffer(index));
  return result;
}

std::vector<Endpoint>
Decoder::endpoints(const flatbuffers::Vector<const fb::Endpoint *> *all) {
  std::vector<Endpoint> result;
  if (!all)
    return result;
  spend(all->size() * sizeof(Endpoint));
  for (const fb::Endpoint *end : *all)
    result.push_back({end->target(), buffer(end->buffer())});
  return result;
}

Pool Decoder::pool(const fb::Pool &from) {
  Pool pool;
  pool.kind = static_cast<PoolKind>(from.kind());
  pool.name = text(from.name());
  pool.base = from.base();
  pool.slotBytes = from.slot_bytes();
  pool.count = from.count();
  pool.slotOf = numbers(from.slot_of());
  return pool;
}

/// Takes runs of a pooled vector in order.
template <typename T>
class Taker {
public:
  explicit Taker(std::vector<T> all) : all(std::move(all)) {}
  bool take(size_t count, std::vector<T> &to) {
    if (count > all.size() - next)
      return false;
    to.assign(all.begin() + next, all.begin() + next + count);
    next += count;
    return true;
  }

private:
  std::vector<T> all;
  size_t next = 0;
};

Procedure Decoder::procedure(const fb::Procedure &from) {
  Procedure procedure;
  procedure.name = text(from.name());
  procedure.phase = static_cast<Phase>(from.phase());
  procedure.stage = from.stage();
  procedure.cost = from.cost();
  Taker<BufferRef> operands(bufferList(from.operands()));
  Taker<int64_t> dims(numbers(from.dims()));
  Taker<double> scalars(numbers(from.scalars()));
  if (!from.kernels())
    return procedure;
  spend(from.kernels()->size() * sizeof(Kernel));
  for (const fb::Kernel *packed : *from.kernels()) {
    Kernel kernel;
    kernel.kind = static_cast<KernelKind>(packed->kind());
    kernel.phase = static_cast<Phase>(packed->phase());
    kernel.layer = packed->layer();
    if (!operands.take(packed->operands(), kernel.operands) ||
        !dims.take(packed->dims(), kernel.dims) ||
        !scalars.take(packed->scalars(), kernel.scalars))
      fail("a procedure has fewer operands than its kernels take");
    procedure.kernels.push_back(std::move(kernel));
  }
  return procedure;
}

Lane Decoder::lane(const fb::Lane &from) {
  Lane lane;
  lane.name = text(from.name());
  lane.kind = static_cast<LaneKind>(from.kind());
  if (from.waits()) {
    spend(from.waits()->size() * sizeof(Wait));
    for (const fb::Wait *wait : *from.waits())
      lane.waits.push_back({wait->lane(), wait->count()});
  }
  if (!from.instrs())
    return lane;
  spend(from.instrs()->size() * sizeof(Instr));
  uint32_t waitBegin = 0;
  for (const fb::Instr *packed : *from.instrs()) {
    Instr instr;
    instr.kind = static_cast<InstrKind>(packed->kind());
    instr.target = packed->target();
    instr.microBatch = packed->micro_batch();
    instr.waitBegin = waitBegin;
    instr.waitEnd = waitBegin + packed->waits();
    if (instr.waitEnd > lane.waits.size())
      fail("a lane has fewer waits than its instructions take");
    waitBegin = instr.waitEnd;
    lane.instrs.push_back(instr);
  }
  if (from.order())
    lane.order = places(*from.order(), lane.instrs.size());
  return lane;
}

/// The certificate's places of a lane of `count` instructions.
std::vector<uint32_t> Decoder::places(const flatbuffers::Vector<uint8_t> &from,
                                      size_t count) {
  std::vector<uint32_t> places;
  uint32_t last = ~uint32_t(0);
  uint64_t rise = 0;
  int shift = 0;
  for (uint8_t byte : from) {
    rise |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
    if ((byte & 0x80) != 0 && shift < 35)
      continue;
    if ((byte & 0x80) != 0 || rise >> 32 != 0 || places.size() == count)
      fail("a lane's certificate is damaged");
    places.push_back(last += static_cast<uint32_t>(rise));
    rise = 0;
    shift = 0;
  }
  if (shift != 0 || places.size() != count)
    fail("a lane's certificate is damaged");
  return places;
}

LoadField Decoder::load(const fb::LoadField &from) {
  return {text(from.input()), buffer(from.buffer())};
}

RoleParam Decoder::roleParam(const fb::RoleParam &from) {
  return {from.param(), buffer(from.weight()), bufferList(from.grads()),
          bufferList(from.state())};
}

Role Decoder::role(const fb::Role &from) {
  buffers = from.buffers();
  requireAligned<fb::BufferRef>(buffers);
  Role role;
  role.name = text(from.name());
  role.firstRank = from.first_rank();
  role.replicas = from.replicas();
  role.stages = numbers(from.stages());
  role.devices = numbers(from.devices());
  role.pools = each(from.pools(), &Decoder::pool);
  role.procedures = each(from.procedures(), &Decoder::procedure);
  role.lanes = each(from.lanes(), &Decoder::lane);
  role.channels = endpoints(from.channels());
  role.groups = endpoints(from.groups());
  role.loads = each(from.loads(), &Decoder::load);
  role.params = each(from.params(), &Decoder::roleParam);
  role.hasLoss = from.has_loss();
  role.arenaBytes = from.arena_bytes();
  role.livenessBytes = from.liveness_bytes();
  role.capacity = from.capacity();
  role.peakInFlight = from.peak_in_flight();
  std::vector<BufferRef> results = bufferList(from.result());
  if (results.size() > 1)
    fail("a role has several results");
  if (!results.empty())
    role.result = results.front();
  return role;
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

Link Decoder::link(const fb::Link *from) {
  if (!from)
    return {};
  return {text(from->name()), from->latency(), from->bytes_per_second()};
}

Channel Decoder::channel(const fb::Channel &from) {
  return {text(from.name()), static_cast<ChannelKind>(from.kind()),
          from.src_role(),   from.dst_role(),
          from.bytes(),      link(from.link())};
}

NodeResources Decoder::nodeResources(const fb::NodeResources &from) {
  NodeResources nodes;
  nodes.nodes = from.nodes();
  nodes.devices = from.devices();
  nodes.cores = from.cores();
  nodes.copyEngines = from.copy_engines();
  nodes.transferShare = from.transfer_share();
  nodes.memoryBytesPerSecond = from.memory_bytes_per_second();
  nodes.portBytesPerSecond = from.port_bytes_per_second();
  nodes.networkBytesPerSecond = from.network_bytes_per_second();
  nodes.networkPorts = from.network_ports();
  nodes.kind = text(from.kind());
  nodes.price = from.price();
  return nodes;
}

Group Decoder::group(const fb::Group &from) {
  return {text(from.name()), from.role(), link(from.link())};
}

Param Decoder::param(const fb::Param &from) {
  return {text(from.name()), numbers(from.shape()),
          static_cast<InitKind>(from.init()), from.init_scale(),
          from.trainable()};
}

LayerInfo Decoder::layer(const fb::Layer &from) {
  return {text(from.name()), text(from.kind())};
}

InputInfo Decoder::input(const fb::Input &from) {
  return {text(from.name()), static_cast<DType>(from.dtype()),
          numbers(from.shape()), from.classes()};
}

Training Decoder::training(const fb::Training &from) {
  Training t;
  t.globalBatch = from.global_batch();
  t.microBatches = from.micro_batches();
  t.seed = from.seed();
  t.optimizer = static_cast<OptimizerKind>(from.optimizer());
  t.learningRate = from.learning_rate();
  t.momentum = from.momentum();
  t.beta1 = from.beta1();
  t.beta2 = from.beta2();
  t.epsilon = from.epsilon();
  t.weightDecay = from.weight_decay();
  t.schedule = static_cast<LrSchedule>(from.schedule());
  t.warmupSteps = from.warmup_steps();
  t.totalSteps = from.total_steps();
  t.minLearningRate = from.min_learning_rate();
  t.mode = static_cast<Mode>(from.mode());
  return t;
}

void Decoder::checkVersion(const fb::Plan &from) {
  if (from.format_major() != Plan::kFormatMajor)
    fail(fmt::format("written in plan format {}.{}, this program reads {}.x",
                     from.format_major(), from.format_minor(),
                     Plan::kFormatMajor));
  // No feature beyond the base format exists yet, so any name is unknown.
  if (from.required_features() && from.required_features()->size() > 0)
    fail(fmt::format("needs the feature '{}', which this program does not know",
                     text(from.required_features()->Get(0))));
}

Plan Decoder::decode(const uint8_t *bytes, size_t size) {
  if (size < 8)
    fail("too short to be a plan");
  if (!fb::PlanBufferHasIdentifier(bytes))
    fail("not a plan file (no 'TAKT' at byte 4)");
  if (size >= FLATBUFFERS_MAX_BUFFER_SIZE)
    fail("larger than 2 GiB");
  const size_t fileBytes = size;
  const bool isChecked = takeChecksum(bytes, size, file);
  flatbuffers::Verifier verifier(bytes, size, /*max_depth=*/16,
                                 /*max_tables=*/8'000'000);
  if (!fb::VerifyPlanBuffer(verifier))
    fail("damaged: offsets leave the file");
  const fb::Plan &from = *fb::GetPlan(bytes);
  checkVersion(from);
  if (from.checked() && !isChecked)
    fail(fmt::format("damaged: no checksum ends it at byte {}: it is cut short "
                     "or something follows it",
                     fileBytes));
  if (!from.training())
    fail("has no training settings");

  Plan plan;
  plan.model = text(from.model());
  plan.cluster = text(from.cluster());
  plan.compiler = text(from.compiler());
  plan.inputHash = text(from.input_hash());
  plan.schedule = text(from.schedule());
  plan.costSource = text(from.cost_source());
  plan.training = training(*from.training());
  plan.inputs = each(from.inputs(), &Decoder::input);
  plan.layers = each(from.layers(), &Decoder::layer);
  plan.params = each(from.params(), &Decoder::param);
  plan.channels = each(from.channels(), &Decoder::channel);
  plan.groups = each(from.groups(), &Decoder::group);
  plan.roles = each(from.roles(), &Decoder::role);
  plan.resources = each(from.resources(), &Decoder::nodeResources);
  if (from.output())
    plan.output = {text(from.output()->name()),
                   numbers(from.output()->shape())};
  plan.predictedPeriod = from.predicted_period();
  plan.predictedLatency = from.predicted_latency();
  plan.predictedStep = from.predicted_step();
  plan.boundStep = from.bound_step();
  plan.objectiveStep = from.objective_step();
  return plan;
}

} // namespace

bool isPlanFile(const uint8_t *bytes, size_t size) {
  return size >= 8 && fb::PlanBufferHasIdentifier(bytes);
}

Plan deserialize(const uint8_t *bytes, size_t size, const std::string &name,
                 Reading reading) {
  // Alignment in the file means something only from an aligned start.
  if (reinterpret_cast<uintptr_t>(bytes) % alignof(std::max_align_t) != 0) {
    std::vector<uint8_t> copy(bytes, bytes + size);
    return deserialize(copy.data(), size, name, reading);
  }
  Plan plan = Decoder(name).decode(bytes, size);
  if (reading == Reading::Form)
    return plan;
  requireSound(plan, name);
  if (hasCertificate(plan))
    requireProof(checkCertificate(plan), name);
  return plan;
}

} // namespace takt::rt
