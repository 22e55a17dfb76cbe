//===- PipeAttrs.td - attributes of the pipe dialect -------*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The parts of a cluster (device kinds, node groups, link classes) and action
// lists.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_PIPE_ATTRS
#define TAKT_PIPE_ATTRS

include "Pipe/PipeDialect.td"
include "Pipe/PipeEnums.td"
include "mlir/IR/AttrTypeBase.td"

class Pipe_Attr<string name, string attrMnemonic>
    : AttrDef<Pipe_Dialect, name> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Numbers of operations
//===----------------------------------------------------------------------===//

// Like I32Attr and I64Attr, but read as signed numbers: a verifier can tell that
// one is negative.
class Pipe_SignedAttr<I type, string cppType> :
    TypedSignlessIntegerAttrBase<type, cppType, type.summary # " attribute"> {
  let returnType = cppType;
  let convertFromStorage = "static_cast<" # cppType # ">($_self.getInt())";
}
def Pipe_I32Attr : Pipe_SignedAttr<I32, "int32_t">;
def Pipe_I64Attr : Pipe_SignedAttr<I64, "int64_t">;

//===----------------------------------------------------------------------===//
// Parts of a cluster
//===----------------------------------------------------------------------===//

def Pipe_DeviceAttr : Pipe_Attr<"Device", "device"> {
  let summary = "a kind of device";
  let description = [{
    What a kernel can rely on: `flops` are the floating-point operations a
    second that kernels sustain, `memory_bandwidth` the bytes a second between
    a kernel and the device's memory, `memory` its capacity in bytes (0: not
    known), `kernel_overhead` the nanoseconds that starting a kernel costs.
    Of what calls and transfers share, `copy_engines` are those of a device and
    `transfer_share_ppm` the millionths of its SMs that a transfer takes (0:
    not stated). An hour of one costs `price` millionths of a currency (0: not
    stated).

    ```mlir
    #pipe.device<"h100", flops = 49500000000000,
                 memory_bandwidth = 2700000000000,
                 memory = 85899345920, kernel_overhead = 4000>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"name">:$name,
    "::takt::pipe::Rate":$flops,
    "::takt::pipe::Rate":$memory_bandwidth,
    DefaultValuedParameter<"int64_t", "0">:$memory,
    DefaultValuedParameter<"int64_t", "0">:$kernel_overhead,
    DefaultValuedParameter<"int64_t", "0">:$copy_engines,
    DefaultValuedParameter<"int64_t", "0">:$transfer_share_ppm,
    DefaultValuedParameter<"int64_t", "0">:$price
  );
  let assemblyFormat = [{
    `<` $name `,` struct($flops, $memory_bandwidth, $memory, $kernel_overhead,
    $copy_engines, $transfer_share_ppm, $price) `>`
  }];
  let genVerifyDecl = 1;
}

def Pipe_NodesAttr : Pipe_Attr<"Nodes", "nodes"> {
  let summary = "a number of equal nodes";
  let description = [{
    `count` nodes with `devices` devices of kind `device` each, joined by the
    link class `link` (none for one device). The `cores` of a node are shared by
    the ranks on it, as is its `host_memory` in bytes (0: not known or stated).
    Transfers to other nodes go through `network_ports` (0: one for each device)
    of `network_port_bandwidth` each (0: that of the cluster's network).

    ```mlir
    #pipe.nodes<count = 2, device = "h100", devices = 8, link = "nvlink">
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "1">:$count,
    StringRefParameter<"name of a device kind">:$device,
    DefaultValuedParameter<"int64_t", "1">:$devices,
    OptionalParameter<"::mlir::StringAttr">:$link,
    DefaultValuedParameter<"int64_t", "0">:$cores,
    DefaultValuedParameter<"int64_t", "0">:$host_memory,
    DefaultValuedParameter<"int64_t", "0">:$network_ports,
    DefaultValuedParameter<"::takt::pipe::Rate", "::takt::pipe::Rate{}">:
        $network_port_bandwidth
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Pipe_LinkAttr : Pipe_Attr<"Link", "link"> {
  let summary = "a class of links";
  let description = [{
    A transfer of n bytes takes `latency` nanoseconds and n / `bandwidth`
    seconds; the bandwidth is that of one device in one direction, 0 means that
    bytes are free.

    ```mlir
    #pipe.link<"nvlink", latency = 3000, bandwidth = 450000000000>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"name">:$name,
    "int64_t":$latency,
    "::takt::pipe::Rate":$bandwidth
  );
  let assemblyFormat = "`<` $name `,` struct($latency, $bandwidth) `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Action lists
//===----------------------------------------------------------------------===//

def Pipe_ActionsAttr : Pipe_Attr<"Actions", "actions"> {
  let summary = "an ordered list of actions";
  let description = [{
    The actions stand in one string, separated by blanks, and are stored in one
    array:

    | text | action |
    | --- | --- |
    | `2F0` | forward of micro-batch 0 on stage 2 |
    | `2I0`, `2W0`, `2B0` | its input gradient, weight gradient, or both |
    | `2B0.1` | piece 1 of `2B0`, which is cut where gradient buckets end |
    | `0LOAD3` | inputs of micro-batch 3 |
    | `0SEND_F3`, `1RECV_F3` | activation to, from the neighbouring stage |
    | `1SEND_B3`, `0RECV_B3` | gradient to, from the neighbouring stage |
    | `0REDUCE_GRAD` | all-reduce among the replicas of stage 0 |
    | `0REDUCE_GRAD1` | of its gradient bucket 1, where there are several |
    | `1WAIT_SEND_B3`, `1WAIT_REDUCE_GRAD0` | no action: the next one of the lane waits for that |
    | `0TIE_SUM0` | sum of stage 0's uses of tied parameter 0 |
    | `0TIE_SEND0_1`, `1TIE_RECV0_0` | its sum to stage 1, from stage 0 |
    | `0UPDATE` | optimizer step |

    ```mlir
    #pipe.actions<"0F0 0F1 0B0 0F2 0B1 0B2">
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::takt::CommAction">:$actions
  );
  let hasCustomAssemblyFormat = 1;
}

def Pipe_LaneAttr : Pipe_Attr<"Lane", "lane"> {
  let summary = "a lane of a role: what it does, in order";
  let description = [{
    Actions of one lane start in order and one at a time; lanes run side by
    side.

    ```mlir
    #pipe.lane<recv_act, <"1RECV_F0 1RECV_F1">>
    ```
  }];
  let parameters = (ins
    EnumParameter<Pipe_LaneKind>:$kind,
    "::takt::pipe::ActionsAttr":$actions
  );
  let assemblyFormat = "`<` $kind `,` $actions `>`";
}

#endif // TAKT_PIPE_ATTRS
