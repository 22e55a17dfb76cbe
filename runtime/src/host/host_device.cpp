//===- host_device.cpp - one rank on this machine's CPU -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Nothing here allocates once the first step has run: the works of the lanes
// keep their room.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/host/host_device.h"

#include "blas.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace takt::rt {

HostDevice::HostDevice(const Plan &plan, int32_t rank, Exchange &exchange,
                       const Source &source)
    : plan(plan), role(plan.roles[plan.roleOf(rank)]), source(source),
      rank(rank), replica(rank - role.firstRank), works(role.lanes.size()),
      layerSamples(plan.layers.size()) {
  host::useOneBlasThread();
  size_t bytes = std::max(alignUp(role.arenaBytes), kAlignment);
  arena.reset(static_cast<std::byte *>(std::aligned_alloc(kAlignment, bytes)));
  if (!arena)
    throw Error(
        fmt::format("no memory for the {} bytes of rank {}", bytes, rank),
        ExitCode::DoesNotFit);
  std::memset(arena.get(), 0, bytes);
  connect(exchange);
  size_t instructions = 0;
  for (const Lane &lane : role.lanes)
    instructions += lane.instrs.size();
  recorded.reserve(instructions);
}

HostDevice::~HostDevice() = default;

void HostDevice::FreeArena::operator()(std::byte *arena) const {
  std::free(arena);
}

void HostDevice::connect(Exchange &exchange) {
  size_t most = 0;
  for (const Endpoint &endpoint : role.channels) {
    const Channel &channel = plan.channels[endpoint.target];
    bool sends = &plan.roles[channel.srcRole] == &role;
    ChannelEnd end;
    end.channel = endpoint.target;
    end.buffer = endpoint.buffer;
    end.pieces = transferPieces(plan, channel, sends, replica);
    for (const Piece &piece : end.pieces)
      end.boxes.push_back(
          sends ? &exchange.channelBox(endpoint.target, rank, piece.peer)
                : &exchange.channelBox(endpoint.target, piece.peer, rank));
    most = std::max(most, end.pieces.size());
    channelEnds.push_back(std::move(end));
  }
  for (const Endpoint &endpoint : role.groups) {
    int32_t n = role.replicas;
    int32_t next = role.firstRank + (replica + 1) % n;
    int32_t previous = role.firstRank + (replica + n - 1) % n;
    Mailbox *to =
        n > 1 ? &exchange.groupBox(endpoint.target, rank, next) : nullptr;
    Mailbox *from =
        n > 1 ? &exchange.groupBox(endpoint.target, previous, rank) : nullptr;
    groupEnds.push_back({endpoint.target, endpoint.buffer,
                         RingAllReduce(replica, n, to, from)});
  }
  for (Work &work : works) {
    work.sending.reserve(most);
    work.receiving.reserve(most);
    work.finished.reserve(most);
  }
}

float *HostDevice::elements(const BufferRef &ref, int32_t microBatch) {
  return SlotView<float>(arena.get(), role.pools, microBatch).elements(ref);
}

Nanos HostDevice::sinceStart() const { return sinceStart(Clock::now()); }

Nanos HostDevice::sinceStart(Clock::time_point time) const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time - stepStart)
      .count();
}

void HostDevice::beginStep(int64_t newStep, Clock::time_point start) {
  step = newStep;
  stepStart = start;
  learningRate = learningRateAt(plan.training, step);
  recorded.clear();
  for (Work &work : works)
    work.instr = 0;
}

void HostDevice::endStep() {
  if (profiling)
    layerSamples.closeStep();
}

//===----------------------------------------------------------------------===//
// Beginning instructions
//===----------------------------------------------------------------------===//

HostDevice::Work &HostDevice::begin(int lane, InstrKind kind,
                                    int32_t microBatch) {
  Work &work = works[lane];
  work.kind = kind;
  work.microBatch = microBatch;
  if (tracing)
    work.begin = sinceStart();
  return work;
}

void HostDevice::call(int lane, const Procedure &procedure,
                      int32_t microBatch) {
  begin(lane, InstrKind::Call, microBatch).procedure = &procedure;
}

void HostDevice::load(int lane, int32_t microBatch) {
  begin(lane, InstrKind::Load, microBatch);
  int64_t n = plan.training.microBatchSize();
  int64_t first = n * replica / role.replicas;
  int64_t end = n * (replica + 1) / role.replicas;
  int64_t base = step * plan.training.globalBatch + microBatch * n;
  for (const LoadField &field : role.loads) {
    auto input = std::find_if(
        plan.inputs.begin(), plan.inputs.end(),
        [&](const InputInfo &info) { return info.name == field.input; });
    source.fill(*input, base + first, end - first,
                elements(field.buffer, microBatch));
  }
}

const HostDevice::ChannelEnd &HostDevice::channelEnd(uint16_t channel) const {
  return *std::find_if(
      channelEnds.begin(), channelEnds.end(),
      [&](const ChannelEnd &end) { return end.channel == channel; });
}

void HostDevice::send(int lane, uint16_t channel, int32_t microBatch) {
  Work &work = begin(lane, InstrKind::Send, microBatch);
  work.end = &channelEnd(channel);
  const auto *data = reinterpret_cast<const std::byte *>(
      elements(work.end->buffer, microBatch));
  work.sending.clear();
  for (size_t i = 0; i < work.end->pieces.size(); ++i) {
    const Piece &piece = work.end->pieces[i];
    work.sending.emplace_back(*work.end->boxes[i], data + piece.offset,
                              piece.bytes);
  }
  work.finished.assign(work.sending.size(), false);
}

void HostDevice::recv(int lane, uint16_t channel, int32_t microBatch) {
  Work &work = begin(lane, InstrKind::Recv, microBatch);
  work.end = &channelEnd(channel);
  auto *data =
      reinterpret_cast<std::byte *>(elements(work.end->buffer, microBatch));
  work.receiving.clear();
  for (size_t i = 0; i < work.end->pieces.size(); ++i) {
    const Piece &piece = work.end->pieces[i];
    work.receiving.emplace_back(*work.end->boxes[i], data + piece.offset,
                                piece.bytes, Take::Copy);
  }
  work.finished.assign(work.receiving.size(), false);
}

void HostDevice::allReduce(int lane, uint16_t group) {
  Work &work = begin(lane, InstrKind::AllReduce, -1);
  work.group =
      &*std::find_if(groupEnds.begin(), groupEnds.end(),
                     [&](const GroupEnd &end) { return end.group == group; });
  work.groupTurn = work.group->begun++;
  work.groupStarted = false;
}

//===----------------------------------------------------------------------===//
// Making progress
//===----------------------------------------------------------------------===//

/// Polls every unfinished piece; true when all are finished.
template <typename Messages>
static bool pollAll(Messages &messages, std::vector<bool> &finished) {
  bool all = true;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!finished[i])
      finished[i] = messages[i].poll();
    all = all && finished[i];
  }
  return all;
}

template <typename Messages>
Nanos HostDevice::firstMove(const Messages &messages, Nanos none) const {
  Nanos first = messages.empty() ? none : INT64_MAX;
  for (const auto &message : messages)
    first = std::min(first, sinceStart(message.movedAt()));
  return first;
}

bool HostDevice::pollGroup(Work &work) {
  GroupEnd &group = *work.group;
  if (group.finished != work.groupTurn)
    return false;
  if (!work.groupStarted)
    group.ring.begin(elements(group.buffer),
                     group.buffer.bytes / Bytes(sizeof(float)));
  work.groupStarted = true;
  if (!group.ring.poll())
    return false;
  ++group.finished;
  return true;
}

bool HostDevice::done(int lane) {
  Work &work = works[lane];
  switch (work.kind) {
  case InstrKind::Call:
    if (tracing)
      work.begin = sinceStart();
    compute(*work.procedure, work.microBatch);
    break;
  case InstrKind::Load:
    break;
  case InstrKind::Send:
    if (!pollAll(work.sending, work.finished))
      return false;
    break;
  case InstrKind::Recv:
    if (!pollAll(work.receiving, work.finished))
      return false;
    break;
  case InstrKind::AllReduce:
    if (!pollGroup(work))
      return false;
    break;
  }
  // A record of a transfer begins when data begins to move, as under the
  // virtual clock, not when the instruction begins to wait for its peer.
  if (tracing && work.kind == InstrKind::Send)
    work.begin = firstMove(work.sending, work.begin);
  if (tracing && work.kind == InstrKind::Recv)
    work.begin = firstMove(work.receiving, work.begin);
  if (tracing && work.kind == InstrKind::AllReduce && role.replicas > 1)
    work.begin = sinceStart(work.group->ring.movedAt());
  if (tracing)
    recorded.push_back({rank, static_cast<uint16_t>(lane), work.instr,
                        work.begin, sinceStart()});
  ++work.instr;
  return true;
}

/// The time of this rank's work alone: where ranks share cores, what others do
/// in between is for the plan to predict, and not a cost of the layer.
Nanos HostDevice::profileClock() const {
  if (!sharesCores)
    return Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return Nanos(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void HostDevice::compute(const Procedure &procedure, int32_t microBatch) {
  SlotView<float> slots(arena.get(), role.pools, microBatch);
  RunArgs args{learningRate, step};
  Nanos last = profiling ? profileClock() : 0;
  for (const Kernel &kernel : procedure.kernels) {
    if (gradientSink && isOptimizerKernel(kernel.kind))
      capture(kernel);
    run(kernel, slots, args);
    if (profiling) {
      Nanos now = profileClock();
      layerSamples.add(kernel, now - last);
      last = now;
    }
  }
  if (profiling)
    layerSamples.closeCall();
  if (outputSink && procedure.phase == Phase::Forward &&
      procedure.stage == role.stages.back())
    keepOutput(microBatch);
}

/// The buffer may be of the workspace: the next call writes over it.
void HostDevice::keepOutput(int32_t microBatch) {
  const int64_t count = role.result.bytes / Bytes(sizeof(float));
  const float *first = elements(role.result, microBatch);
  std::copy(first, first + count, outputSink->begin() + microBatch * count);
}

void HostDevice::run(const Kernel &kernel, const SlotView<float> &slots,
                     const RunArgs &args) const {
  try {
    runKernel(kernel, slots, args);
  } catch (const Error &error) {
    if (kernel.layer < 0)
      throw;
    throw Error(fmt::format("layer '{}': {}", plan.layers[kernel.layer].name,
                            error.what()),
                error.code());
  }
}

void HostDevice::capture(const Kernel &kernel) {
  // An update may cover several parameters that lie one after the other.
  const BufferRef &weight = kernel.operands[0];
  const float *grad = elements(kernel.operands[1]);
  Bytes covered = kernel.dims[0] * Bytes(sizeof(float));
  for (const RoleParam &use : role.params) {
    Bytes offset = use.weight.offset - weight.offset;
    if (use.weight.pool != weight.pool || offset < 0 ||
        offset + use.weight.bytes > covered)
      continue;
    const Param &param = plan.params[use.param];
    const float *first = grad + offset / Bytes(sizeof(float));
    int64_t count = 1;
    for (int64_t extent : param.shape)
      count *= extent;
    (*gradientSink)[param.name] = {param.shape,
                                   std::vector<float>(first, first + count)};
  }
}

std::string HostDevice::waitingFor(int lane) const {
  const Work &work = works[lane];
  bool sends = work.kind == InstrKind::Send;
  if (work.kind == InstrKind::AllReduce)
    return fmt::format("the {} members of group '{}'", role.replicas,
                       plan.groups[work.group->group].name);
  if (!sends && work.kind != InstrKind::Recv)
    return "";
  for (size_t i = 0; i < work.finished.size(); ++i)
    if (!work.finished[i])
      return fmt::format("rank {} to {} {} bytes", work.end->pieces[i].peer,
                         sends ? "take" : "send", work.end->pieces[i].bytes);
  return "";
}

MoveTime HostDevice::wakeAt() const {
  MoveTime first = MoveTime::max();
  for (const Work &work : works) {
    if (work.kind == InstrKind::Recv)
      for (const Receiving &message : work.receiving)
        first = std::min(first, message.wakeAt());
    if (work.kind == InstrKind::AllReduce && work.groupStarted)
      first = std::min(first, work.group->ring.wakeAt());
  }
  return first;
}

} // namespace takt::rt
