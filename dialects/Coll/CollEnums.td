//===- CollEnums.td - enumerations of the coll dialect -----*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What a channel carries.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_COLL_ENUMS
#define TAKT_COLL_ENUMS

include "mlir/IR/EnumAttr.td"

def Coll_ChannelKind : I32EnumAttr<"ChannelKind", "what a channel carries", [
    I32EnumAttrCase<"Activation", 0, "activation">,
    I32EnumAttrCase<"Gradient", 1, "gradient">
  ]> {
  let cppNamespace = "::takt::coll";
}

#endif // TAKT_COLL_ENUMS
