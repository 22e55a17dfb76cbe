//===- host_device.h - one rank on this machine's CPU -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The device table of one rank: an arena in main memory, kernels on the rank's
// own thread, messages through an `Exchange`, whatever carries them.
//
// A call is computed when the interpreter asks whether it is done, not when it
// is begun. Between the two the interpreter visits the other lanes, so that
// what the previous call produced is on its way before this one occupies the
// thread.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/checkpoint/safetensors.h"
#include "takt-rt/core/interpreter.h"
#include "takt-rt/data/source.h"
#include "takt-rt/host/kernels.h"
#include "takt-rt/host/profile.h"
#include "takt-rt/transport/exchange.h"
#include "takt-rt/transport/ring_all_reduce.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace takt::rt {

/// Throws `Error` (DoesNotFit) unless this machine can run the plan: a kernel
/// the host lacks (the message names the layer), arenas of `ranksHere` beyond
/// its memory, replicas without samples.
void checkFitsHost(const Plan &plan, const std::vector<int32_t> &ranksHere);

class HostDevice final : public Device {
public:
  /// Plan, exchange and source must outlive the device. The arena starts at
  /// zero. Throws `Error` (DoesNotFit) when there is no memory for it.
  HostDevice(const Plan &plan, int32_t rank, Exchange &exchange,
             const Source &source);
  ~HostDevice() override;

  void call(int lane, const Procedure &procedure, int32_t microBatch) override;
  void load(int lane, int32_t microBatch) override;
  void send(int lane, uint16_t channel, int32_t microBatch) override;
  void recv(int lane, uint16_t channel, int32_t microBatch) override;
  void allReduce(int lane, uint16_t group) override;
  bool done(int lane) override;

  /// Prepares step `step` (from 0), whose records count from `start`.
  void beginStep(int64_t step, std::chrono::steady_clock::time_point start);
  /// Closes the samples of the step.
  void endStep();

  /// The first element of a float buffer for a micro-batch (-1: the step).
  float *elements(const BufferRef &ref, int32_t microBatch = -1);

  /// What the step under way records.
  void setTracing(bool on) { tracing = on; }
  const std::vector<Record> &records() const { return recorded; }
  void setProfiling(bool on) { profiling = on; }
  /// Whether there are fewer cores than ranks: a profile then counts the time
  /// that a layer is at work, and not the time that it waits for a core.
  void setSharesCores(bool on) { sharesCores = on; }
  const LayerSamples &samples() const { return layerSamples; }

  /// From now on, and until called with null, puts the summed gradient of every
  /// parameter of this rank under its global name just before it is used.
  void setGradientSink(TensorMap *sink) { gradientSink = sink; }

  /// From now on, and until called with null, puts this rank's share of the
  /// plan's output there, micro-batch after micro-batch; a rank without has
  /// nothing to put. The sink has room for the outputs of a step.
  void setOutputSink(std::vector<float> *sink) { outputSink = sink; }

  /// What a lane's instruction waits for: "rank 1 to take 4096 bytes"; empty
  /// when it waits for nobody.
  std::string waitingFor(int lane) const;

  /// When to ask `done` again though no bell rings: a message is held up for an
  /// emulated link. The end of time: never.
  MoveTime wakeAt() const;

private:
  using Clock = std::chrono::steady_clock;

  /// The pieces of a channel this rank sends or receives.
  struct ChannelEnd {
    uint16_t channel = 0;
    BufferRef buffer;
    std::vector<Piece> pieces;
    std::vector<Mailbox *> boxes;
  };
  struct GroupEnd {
    uint16_t group = 0;
    BufferRef buffer;
    RingAllReduce ring;
    uint64_t begun = 0, finished = 0; ///< one at a time, in order
  };
  /// The instruction under way on a lane.
  struct Work {
    InstrKind kind = InstrKind::Call;
    const Procedure *procedure = nullptr;
    int32_t microBatch = -1;
    std::vector<Sending> sending;
    std::vector<Receiving> receiving;
    std::vector<bool> finished; ///< by piece
    const ChannelEnd *end = nullptr;
    GroupEnd *group = nullptr;
    uint64_t groupTurn = 0;
    bool groupStarted = false;
    uint32_t instr = 0; ///< instructions begun on the lane before this one
    Nanos begin = 0;
  };

  void connect(Exchange &exchange);
  Work &begin(int lane, InstrKind kind, int32_t microBatch);
  Nanos profileClock() const;
  void compute(const Procedure &procedure, int32_t microBatch);
  void run(const Kernel &kernel, const SlotView<float> &slots,
           const RunArgs &args) const;
  void capture(const Kernel &kernel);
  void keepOutput(int32_t microBatch);
  bool pollGroup(Work &work);
  const ChannelEnd &channelEnd(uint16_t channel) const;
  Nanos sinceStart() const;
  Nanos sinceStart(Clock::time_point time) const;
  /// When the first of the messages began to move; `none` without any.
  template <typename Messages>
  Nanos firstMove(const Messages &messages, Nanos none) const;

  struct FreeArena {
    void operator()(std::byte *arena) const;
  };

  const Plan &plan;
  const Role &role;
  const Source &source;
  int32_t rank;
  int32_t replica;
  std::unique_ptr<std::byte, FreeArena> arena;
  std::vector<ChannelEnd> channelEnds;
  std::vector<GroupEnd> groupEnds;
  std::vector<Work> works;
  int64_t step = 0;
  double learningRate = 0;
  Clock::time_point stepStart;
  bool tracing = false;
  bool profiling = false;
  bool sharesCores = false;
  std::vector<Record> recorded;
  LayerSamples layerSamples;
  TensorMap *gradientSink = nullptr;
  std::vector<float> *outputSink = nullptr;
};

} // namespace takt::rt
