//===- PipeDialect.td - the pipe dialect -------------------*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Names the dialect and the base classes of its attributes and operations.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_PIPE_DIALECT
#define TAKT_PIPE_DIALECT

include "mlir/IR/OpBase.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::takt::pipe";
  let summary = "Clusters, pipeline stages and their action lists";
  let description = [{
    Says on what a model is trained and in what order. A `pipe.cluster` states
    device kinds, nodes and links, each by kind and count, never one by one. A
    `pipe.program` holds the answer of planning for one model on one cluster:
    its `pipe.stage` ops say which layers run on which devices and what that
    costs, its `pipe.role` ops say what every device of a stage does, as lists
    of actions.

    An action list is one attribute. Its text is a superset of the notation of
    PyTorch's pipelining schedules: `2F0` is the forward of micro-batch 0 on
    stage 2, `0B3` the backward of micro-batch 3 on stage 0.

    All times are whole nanoseconds, all sizes whole bytes; rates are a second.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class Pipe_Op<string mnemonic, list<Trait> traits = []> :
    Op<Pipe_Dialect, mnemonic, traits>;

#endif // TAKT_PIPE_DIALECT
