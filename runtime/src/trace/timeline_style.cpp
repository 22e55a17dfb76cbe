//===- timeline_style.cpp - colours and words of pictures --------*- C++
//-*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Strong colours are for compute, pale ones of the same hue for what carries
// its data: forward and activations blue, backward and gradients orange.
//
//===----------------------------------------------------------------------===//
#include "timeline.h"

#include "takt-rt/core/units.h"

#include <fmt/format.h>

namespace takt::rt {

std::string xmlEscaped(const std::string &text) {
  std::string result;
  for (char c : text) {
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    case '\'':
      result += "&#39;";
      break;
    default:
      result += c;
    }
  }
  return result;
}

static constexpr const char *kStyle = R"(
svg.takt{font-family:Inter,"Segoe UI","Helvetica Neue",Arial,sans-serif;
background:#fff}
.takt text{fill:#1f2933;font-size:11px}
.takt .title{font-size:17px;font-weight:600}
.takt .head{font-size:13px;font-weight:600}
.takt .soft{fill:#6b7785}
.takt .tick{fill:#6b7785;font-size:10px;text-anchor:middle}
.takt .grid{stroke:#d9dee4;stroke-width:1}
.takt .end{stroke:#1f2933;stroke-width:1;stroke-dasharray:3 3}
.takt .bar{fill:#eef1f4}
.takt .b{stroke:#fff;stroke-width:.6}
.takt .t{stroke:none}
.takt .n{fill:#fff;font-size:10px;text-anchor:middle;pointer-events:none}
.takt .F{fill:#3a76b5}.takt .B{fill:#d9822b}.takt .I{fill:#e8a33d}
.takt .W{fill:#4c9a6a}.takt .U{fill:#7b5ea7}
.takt .act{fill:#7fb0de}.takt .grad{fill:#f0b878}
.takt .mem{fill:#c9d6e3}
.takt .sum{fill:#c8504b}.takt .load{fill:#9aa5b1}
)";

const char *pictureStyle() { return kStyle; }

const char *classOf(Phase phase) {
  switch (phase) {
  case Phase::Forward:
    return "F";
  case Phase::Backward:
    return "B";
  case Phase::InputGrad:
    return "I";
  case Phase::WeightGrad:
    return "W";
  case Phase::Update:
    return "U";
  }
  return "U";
}

const char *classOf(LaneKind kind) {
  switch (kind) {
  case LaneKind::RecvAct:
  case LaneKind::SendAct:
    return "act";
  case LaneKind::RecvGrad:
  case LaneKind::SendGrad:
    return "grad";
  case LaneKind::Reduce:
  case LaneKind::Tie:
    return "sum";
  case LaneKind::Load:
  case LaneKind::Compute:
    break;
  }
  return "load";
}

char styleOf(const Role &role, const Lane &lane, const Instr &instr) {
  return instr.kind == InstrKind::Call
             ? classOf(role.procedures[instr.target].phase)[0]
             : classOf(lane.kind)[0];
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

std::string pictureTitle(const Plan &plan) {
  return fmt::format("{}: {} on {}", plan.model, plan.schedule, plan.cluster);
}

std::string pictureShape(const Plan &plan) {
  return fmt::format("{} ranks, {} micro-batches of {} samples",
                     plan.numRanks(), plan.training.microBatches,
                     plan.training.microBatchSize());
}

std::string runHeading(const Plan &plan, const Runs &runs,
                       const std::vector<Record> &run) {
  bool isMeasured = &run == &runs.measured;
  std::string text = fmt::format(
      "{}: step {}, bubble {}", isMeasured ? "measured" : "predicted",
      formatNanos(stepTime(run)), formatShare(bubbleShare(plan, run)));
  Nanos predicted = stepTime(runs.predicted);
  if (isMeasured && predicted > 0)
    text +=
        fmt::format(", {:.2f} x predicted", static_cast<double>(stepTime(run)) /
                                                static_cast<double>(predicted));
  return text;
}

} // namespace takt::rt
