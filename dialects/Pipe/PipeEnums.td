//===- PipeEnums.td - enumerations of the pipe dialect -----*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The kinds of lanes, with the numbers of takt::rt::LaneKind.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_PIPE_ENUMS
#define TAKT_PIPE_ENUMS

include "mlir/IR/EnumAttr.td"

def Pipe_LaneKind : I32Enum<"LaneKind", "what a lane of a role does", [
    I32EnumCase<"Compute", 0, "compute">,
    I32EnumCase<"Load", 1, "load">,
    I32EnumCase<"RecvAct", 2, "recv_act">,
    I32EnumCase<"SendAct", 3, "send_act">,
    I32EnumCase<"RecvGrad", 4, "recv_grad">,
    I32EnumCase<"SendGrad", 5, "send_grad">,
    I32EnumCase<"Reduce", 6, "reduce">,
    I32EnumCase<"Tie", 7, "tie">
  ]> {
  let cppNamespace = "::takt::pipe";
}

#endif // TAKT_PIPE_ENUMS
