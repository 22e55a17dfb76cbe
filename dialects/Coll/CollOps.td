//===- CollOps.td - operations of the coll dialect ---------*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Channels, groups and ties of a program.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_COLL_OPS
#define TAKT_COLL_OPS

include "Coll/CollDialect.td"
include "Coll/CollEnums.td"
include "Pipe/PipeAttrs.td"
include "mlir/IR/SymbolInterfaces.td"

class Coll_ProgramOp<string mnemonic> :
    Coll_Op<mnemonic, [Symbol, HasParent<"::takt::pipe::ProgramOp">]>;

def Coll_ChannelOp : Coll_ProgramOp<"channel"> {
  let summary = "an ordered pipe between neighbouring stages of two roles";
  let description = [{
    Carries activations to the next stage or gradients to the previous one,
    `bytes` for each micro-batch before it is split over the replicas. Messages
    arrive in the order in which they are sent, so the lane that receives names
    the micro-batches in the order of the lane that sends. Between two stages of
    one role there is no channel: what passes stays in the memory of the rank.

    ```mlir
    coll.channel @act0 activation from 0 to 1 bytes 65536
      link <"nvlink", latency = 3000, bandwidth = 450000000000>
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    Coll_ChannelKind:$kind,
    Pipe_I32Attr:$from,
    Pipe_I32Attr:$to,
    Pipe_I64Attr:$bytes,
    Pipe_LinkAttr:$link
  );
  let assemblyFormat = [{
    $sym_name $kind `from` $from `to` $to `bytes` $bytes `link` $link attr-dict
  }];
  let hasVerifier = 1;
}

def Coll_GroupOp : Coll_ProgramOp<"group"> {
  let summary = "all replicas of a stage, which reduce its gradients";
  let description = [{
    ```mlir
    coll.group @dp0 stage 0
      link <"nvlink", latency = 3000, bandwidth = 450000000000>
    ```

    Where gradients are reduced in several buckets there is a group for each of
    them: bucket 0 holds the layers from `layer` to the last of the stage, bucket
    1 those before it from its own `layer`, and so on to the first.

    ```mlir
    coll.group @dp0_0 stage 0 bucket 0 from layer 6 link <...>
    coll.group @dp0_1 stage 0 bucket 1 from layer 0 link <...>
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    Pipe_I32Attr:$stage,
    OptionalAttr<Pipe_I32Attr>:$bucket,
    OptionalAttr<Pipe_I32Attr>:$layer,
    Pipe_LinkAttr:$link
  );
  let assemblyFormat = [{
    $sym_name `stage` $stage (`bucket` $bucket^ `from` `layer` $layer)?
    `link` $link attr-dict
  }];
  let hasVerifier = 1;
}

def Coll_TieOp : Coll_ProgramOp<"tie"> {
  let summary = "a parameter with several uses";
  let description = [{
    The gradients of its uses are summed along `stages`, in ascending order, and
    the sum is sent back to all of them. Where all uses lie on one role nothing
    is sent and there is no link. Actions name a tie by its position among the
    ties of the program.

    ```mlir
    coll.tie @tie0 param "tok.weight" stages [0, 3]
      link <"nvlink", latency = 3000, bandwidth = 450000000000>
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    StrAttr:$param,
    DenseI32ArrayAttr:$stages,
    OptionalAttr<Pipe_LinkAttr>:$link
  );
  let assemblyFormat = [{
    $sym_name `param` $param `stages` $stages (`link` $link^)? attr-dict
  }];
  let hasVerifier = 1;
}

#endif // TAKT_COLL_OPS
