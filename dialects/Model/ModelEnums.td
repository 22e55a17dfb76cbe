//===- ModelEnums.td - enumerations of the model dialect ---*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The textual names of the runtime's enumerations, in the same order: the
// bridge converts by value and asserts that both agree.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_MODEL_ENUMS
#define TAKT_MODEL_ENUMS

include "mlir/IR/EnumAttr.td"

class Model_Enum<string name, string summary, list<EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::takt::model";
}

def Model_InitKind : Model_Enum<"InitKind", "first values of a parameter", [
  I32EnumCase<"Zeros", 0, "zeros">,
  I32EnumCase<"Ones", 1, "ones">,
  I32EnumCase<"Normal", 2, "normal">,
  I32EnumCase<"Uniform", 3, "uniform">
]>;

def Model_Mode : Model_Enum<"Mode", "what a model is planned for", [
  I32EnumCase<"Training", 0, "training">,
  I32EnumCase<"Inference", 1, "inference">
]>;

def Model_Optimizer : Model_Enum<"Optimizer", "rule that updates parameters", [
  I32EnumCase<"Sgd", 0, "sgd">,
  I32EnumCase<"Momentum", 1, "momentum">,
  I32EnumCase<"AdamW", 2, "adamw">
]>;

def Model_LrSchedule : Model_Enum<"LrSchedule", "decay of the learning rate", [
  I32EnumCase<"Constant", 0, "constant">,
  I32EnumCase<"Linear", 1, "linear">,
  I32EnumCase<"Cosine", 2, "cosine">
]>;

def Model_DataSource : Model_Enum<"DataSource", "where the samples come from", [
  I32EnumCase<"Text", 0, "text">,
  I32EnumCase<"Synthetic", 1, "synthetic">
]>;

def Model_Gate : Model_Enum<"Gate", "what gates a linear unit", [
  I32EnumCase<"Silu", 0, "silu">,
  I32EnumCase<"Gelu", 1, "gelu">,
  I32EnumCase<"GeluTanh", 2, "gelu_tanh">
]>;

#endif // TAKT_MODEL_ENUMS
