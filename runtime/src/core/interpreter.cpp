//===- interpreter.cpp - the one place that decides what runs next --------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A lane's next instruction begins when the lane is free and all its waits
// hold. Nothing here allocates: `advance` is called in the runtime's inner loop
// and, by the simulator, once an event.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/interpreter.h"

namespace takt::rt {

Interpreter::Interpreter(const Plan &plan, int32_t rank, Device &device)
    : plan(plan), role(plan.roles[plan.roleOf(rank)]), device(device),
      lanes(role.lanes.size()) {
  reset();
}

void Interpreter::reset(int64_t step) {
  remaining = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    lanes[i] = LaneProgress();
    remaining += role.lanes[i].instrs.size();
  }
  if (observer)
    observer->stepBegan(step);
}

bool Interpreter::ready(int lane) const {
  const Lane &code = role.lanes[lane];
  if (lanes[lane].completed == code.instrs.size())
    return false;
  const Instr &instr = code.instrs[lanes[lane].completed];
  for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w)
    if (lanes[code.waits[w].lane].completed < code.waits[w].count)
      return false;
  return true;
}

void Interpreter::begin(int lane) {
  const Instr &instr = role.lanes[lane].instrs[lanes[lane].completed];
  lanes[lane].running = true;
  if (observer)
    observer->began(lane, lanes[lane].completed);
  switch (instr.kind) {
  case InstrKind::Call:
    return device.call(lane, role.procedures[instr.target], instr.microBatch);
  case InstrKind::Load:
    return device.load(lane, instr.microBatch);
  case InstrKind::Send:
    return device.send(lane, instr.target, instr.microBatch);
  case InstrKind::Recv:
    return device.recv(lane, instr.target, instr.microBatch);
  case InstrKind::AllReduce:
    return device.allReduce(lane, instr.target);
  }
}

/// Visits the lanes of one kind; true if an instruction began or ended.
bool Interpreter::visit(bool compute) {
  bool moved = false;
  for (int lane = 0; lane < static_cast<int>(lanes.size()); ++lane) {
    if ((role.lanes[lane].kind == LaneKind::Compute) != compute)
      continue;
    LaneProgress &state = lanes[lane];
    if (state.running && device.done(lane)) {
      state.running = false;
      if (observer)
        observer->completed(lane, state.completed);
      ++state.completed;
      --remaining;
      if (observer && remaining == 0)
        observer->stepEnded();
      moved = true;
    }
    if (!state.running && ready(lane)) {
      begin(lane);
      moved = true;
    }
  }
  return moved;
}

bool Interpreter::advance() {
  // Communication goes first, until none of it moves: a device may compute a
  // call when it is asked whether the call is done, and what the call before
  // made must be on its way by then.
  bool any = false;
  while (visit(false) || visit(true))
    any = true;
  return any;
}

} // namespace takt::rt
