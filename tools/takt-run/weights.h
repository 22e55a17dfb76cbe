//===- weights.h - the first weights of a run -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// From a file of tensors, or from a checkpoint without what its optimizer kept.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "checkpointing.h"
#include "run.h"

#include "takt-rt/checkpoint/safetensors.h"
#include "takt-rt/core/plan.h"

namespace takt::run {

/// What '--load-weights' names. Throws `rt::Error` (BadInput) unless it holds
/// every parameter of the plan with its shape.
rt::TensorMap loadWeights(const RunOptions &options, const rt::Plan &plan,
                          const Voice &voice);

} // namespace takt::run
