//===- names.cpp - the words of the plan's enumerations ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The tables, each in the order of its enumeration in plan.h; the last value of
// an enumeration fixes the length of its table.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/names.h"

namespace takt::rt {

#define TAKT_NAMES(ENUM, LAST, ...)                                            \
  template <>                                                                  \
  NameTable namesOf<ENUM>() {                                                  \
    static constexpr std::string_view kNames[] = {__VA_ARGS__};                \
    constexpr size_t size = sizeof(kNames) / sizeof(kNames[0]);                \
    static_assert(size == static_cast<size_t>(LAST) + 1,                       \
                  "one word for each value");                                  \
    return {kNames, size};                                                     \
  }

TAKT_NAMES(PoolKind, PoolKind::Workspace, "weights", "gradients",
           "optimizer_state", "batch", "saved", "input", "output",
           "output_grad", "input_grad", "loss", "workspace")

TAKT_NAMES(KernelKind, KernelKind::GluInputGrad, "embedding_forward",
           "embedding_weight_grad", "position_forward", "position_weight_grad",
           "linear_forward", "linear_input_grad", "linear_weight_grad",
           "layer_norm_forward", "layer_norm_input_grad",
           "layer_norm_weight_grad", "attention_forward",
           "attention_input_grad", "gelu_forward", "gelu_input_grad",
           "relu_forward", "relu_input_grad", "add_forward", "accumulate",
           "copy", "cross_entropy_forward", "cross_entropy_input_grad",
           "mse_forward", "mse_input_grad", "sgd_update", "momentum_update",
           "adamw_update", "zero", "profiled", "rms_norm_forward",
           "rms_norm_input_grad", "rms_norm_weight_grad", "rotary_forward",
           "rotary_input_grad", "gelu_tanh_forward", "gelu_tanh_input_grad",
           "glu_forward", "glu_input_grad")

TAKT_NAMES(Phase, Phase::Update, "forward", "input_grad", "weight_grad",
           "backward", "update")

TAKT_NAMES(LaneKind, LaneKind::Tie, "compute", "load", "recv_act", "send_act",
           "recv_grad", "send_grad", "reduce", "tie")

TAKT_NAMES(InstrKind, InstrKind::AllReduce, "call", "load", "send", "recv",
           "all_reduce")

TAKT_NAMES(ChannelKind, ChannelKind::Tie, "activation", "gradient", "tie")

TAKT_NAMES(DType, DType::Int32, "float32", "int32")

TAKT_NAMES(InitKind, InitKind::Uniform, "zeros", "ones", "normal", "uniform")

TAKT_NAMES(Mode, Mode::Inference, "training", "inference")

TAKT_NAMES(OptimizerKind, OptimizerKind::AdamW, "sgd", "momentum", "adamw")

TAKT_NAMES(LrSchedule, LrSchedule::Cosine, "constant", "linear", "cosine")

} // namespace takt::rt
