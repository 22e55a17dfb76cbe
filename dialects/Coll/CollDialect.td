//===- CollDialect.td - the coll dialect -------------------*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Names the dialect and the base class of its operations.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_COLL_DIALECT
#define TAKT_COLL_DIALECT

include "mlir/IR/OpBase.td"

def Coll_Dialect : Dialect {
  let name = "coll";
  let cppNamespace = "::takt::coll";
  let summary = "Channels and groups of ranks";
  let description = [{
    Declares, inside a `pipe.program`, over what its roles communicate: ordered
    channels between two roles, the group of a role's replicas, and parameters
    whose gradients are summed over several stages. Each states the slowest link
    that it crosses. When something is sent or reduced is not said here but by
    the actions on the lanes of the roles.
  }];
  let dependentDialects = ["::takt::pipe::PipeDialect"];
}

class Coll_Op<string mnemonic, list<Trait> traits = []> :
    Op<Coll_Dialect, mnemonic, traits>;

#endif // TAKT_COLL_DIALECT
