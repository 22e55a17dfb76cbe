//===- channel_stage.h - which stage a channel ends at ----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Plans store channels by role. A role of several stages knows the stage from
// the boundary in the channel's name: "act3" goes from stage 3 to 4, "grad3"
// back.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

namespace takt::rt {

/// The role's stage at its end of a channel; the first where nothing says more.
/// A role of several stages knows it from the channel's name: "act3" goes from
/// stage 3 to 4, "grad3" back, "tie0_2_5" from stage 2 to 5. "act3_1" carries
/// value 1 of several that go from stage 3 to 4.
int32_t stageAtEnd(const Role &role, const Channel &channel, bool sending);

} // namespace takt::rt
