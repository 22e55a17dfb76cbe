//===- InterpreterTest.cpp - what the interpreter asks of devices -*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The order in which a device that computes when it is asked sees its lanes.
//
//===----------------------------------------------------------------------===//
#include "PlanBuilder.h"

#include "takt-rt/core/interpreter.h"

#include <gtest/gtest.h>

using namespace takt::rt;
using namespace takt::rt::test;

namespace {
/// Computes a call when asked whether it is done, as the host does. A transfer
/// is on its way once it has been asked about, and done the next time.
class LateDevice final : public Device {
public:
  explicit LateDevice(size_t lanes) : asked(lanes, kIdle) {}

  void call(int lane, const Procedure &, int32_t) override { start(lane); }
  void load(int lane, int32_t) override { start(lane); }
  void send(int lane, uint16_t, int32_t) override { start(lane); }
  void recv(int lane, uint16_t, int32_t) override { start(lane); }
  void allReduce(int lane, uint16_t) override { start(lane); }

  bool done(int lane) override {
    if (lane == compute) {
      ++calls;
      for (size_t other = 0; other < asked.size(); ++other)
        late += int(other) != compute && asked[other] == 0;
      return true;
    }
    return ++asked[lane] > 1;
  }

  int compute = -1; ///< lane
  int calls = 0;
  int late = 0; ///< transfers begun, but not on their way when a call computed

private:
  static constexpr int kIdle = 1;
  void start(int lane) { asked[lane] = lane == compute ? kIdle : 0; }

  std::vector<int> asked;
};
} // namespace

// The gradient that a backward made leaves before the next forward computes, not
// after it: the stage before is waiting for it.
TEST(Interpreter, TransfersLeaveBeforeTheNextCall) {
  PipelineShape shape;
  shape.stages = 3;
  shape.microBatches = 6;
  Plan plan = makePipeline(shape);
  for (int32_t rank = 0; rank < plan.numRanks(); ++rank) {
    const Role &role = plan.roles[plan.roleOf(rank)];
    LateDevice device(role.lanes.size());
    device.compute = int(laneOf(role, LaneKind::Compute));
    Interpreter interpreter(plan, rank, device);
    while (!interpreter.finished())
      ASSERT_TRUE(interpreter.advance());
    EXPECT_EQ(device.calls,
              int(role.lanes[size_t(device.compute)].instrs.size()));
    EXPECT_EQ(device.late, 0) << "rank " << rank;
  }
}
