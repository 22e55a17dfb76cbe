//===- PipeOps.td - operations of the pipe dialect ---------*- tablegen -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The cluster, and a program of stages and roles on it.
//
//===----------------------------------------------------------------------===//
#ifndef TAKT_PIPE_OPS
#define TAKT_PIPE_OPS

include "Pipe/PipeAttrs.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

//===----------------------------------------------------------------------===//
// Cluster
//===----------------------------------------------------------------------===//

def Pipe_DeviceArrayAttr : TypedArrayAttrBase<Pipe_DeviceAttr, "device kinds">;
def Pipe_NodesArrayAttr : TypedArrayAttrBase<Pipe_NodesAttr, "node groups">;
def Pipe_LinkArrayAttr : TypedArrayAttrBase<Pipe_LinkAttr, "link classes">;

def Pipe_ClusterOp : Pipe_Op<"cluster", [Symbol]> {
  let summary = "devices, nodes and links to plan for";
  let description = [{
    Device kinds, link classes and node groups refer to each other by name.
    Devices are numbered from 0, node by node in the order of the groups. The
    `network` is the link class between nodes; a single node needs none.

    ```mlir
    pipe.cluster @pair network "ib" {
      #pipe.device<"h100", flops = 49500000000000,
                   memory_bandwidth = 2700000000000, memory = 85899345920>
      #pipe.link<"nvlink", latency = 3000, bandwidth = 450000000000>
      #pipe.link<"ib", latency = 5000, bandwidth = 50000000000>
      #pipe.nodes<count = 2, device = "h100", devices = 8, link = "nvlink">
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    Pipe_DeviceArrayAttr:$devices,
    Pipe_LinkArrayAttr:$links,
    Pipe_NodesArrayAttr:$nodes,
    OptionalAttr<StrAttr>:$network
  );
  let assemblyFormat = [{
    $sym_name (`network` $network^)?
    custom<ClusterParts>($devices, $links, $nodes) attr-dict-with-keyword
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Devices of all nodes.
    int64_t getNumDevices();
    /// The device kind, or a null attribute.
    DeviceAttr lookupDevice(::llvm::StringRef name);
    /// The link class, or a null attribute.
    LinkAttr lookupLink(::llvm::StringRef name);
    /// The node of a device, counted over all groups, and its group.
    std::pair<int64_t, NodesAttr> getNodeOf(int32_t device);
    /// The slowest link between any of the devices: that of their node if they
    /// share one, else the network. Null for one device alone on its node.
    LinkAttr getLinkAmong(::llvm::ArrayRef<int32_t> devices);
  }];
}

//===----------------------------------------------------------------------===//
// Side constraints
//===----------------------------------------------------------------------===//

def Pipe_ConstraintOp : Pipe_Op<"constraint"> {
  let summary = "a demand that stage assignment keeps";
  let description = [{
    Stands beside graph and cluster. The kinds are `keep_together`, `keep_apart`,
    `no_cut_after`, `no_cut_before` and `pin`, which speak of `layers` (a block's
    name stands for all layers in it), and `stages`, `max_stages`,
    `headroom_bytes` and `headroom_ppm`. `number` is a stage, a count of stages,
    bytes or millionths of a device's memory. The location of the op is that of
    the line which a message about it has to name.

    ```mlir
    pipe.constraint "keep_apart" ["tok", "head"]
    pipe.constraint "pin" ["h.3"] number 1
    ```
  }];
  let arguments = (ins
    StrAttr:$kind,
    StrArrayAttr:$layers,
    DefaultValuedAttr<I64Attr, "0">:$number
  );
  let assemblyFormat = "$kind $layers (`number` $number^)? attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

def Pipe_ProgramOp : Pipe_Op<"program", [
    Symbol, SymbolTable, IsolatedFromAbove, NoTerminator, SingleBlock,
    NoRegionArguments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a model planned on a cluster";
  let description = [{
    Holds one `pipe.stage` for each stage, in order, then the `pipe.role`s that
    run them once there is a schedule, then the channels and groups of `coll`
    once there is communication. `schedule` names the schedule that the memory
    of the stages was computed for and, later, that the roles follow.

    `objective_ns` is the predicted time of a step by the objective of stage
    assignment, `bound_ns` a proven lower bound of it over all assignments,
    `method` says how the assignment was found.

    ```mlir
    pipe.program @job of @gpt on @pair schedule "1f1b"
        objective_ns 5200 bound_ns 5200 method "exact" {
      pipe.stage 0 layers [0, 2) "tok" to "fc" segments [0, 2)
        replicas 1 devices [0] memory_bytes 4096 in_flight 2
        forward_ns 100 backward_ns 200 transfer_ns 10 all_reduce_ns 20
      ...
    }
    ```

    Stages cover the layers of the model and its segments in order and without
    gap; their devices lie in the cluster, and two stages have the same devices or
    none in common. Every stage belongs to one role, and a role has all stages of
    its devices. No role holds more micro-batches at once than the
    memory of its stages was computed for.
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    FlatSymbolRefAttr:$model,
    FlatSymbolRefAttr:$cluster,
    StrAttr:$schedule,
    Pipe_I64Attr:$objective_ns,
    Pipe_I64Attr:$bound_ns,
    StrAttr:$method
  );
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `of` $model `on` $cluster `schedule` $schedule
    `objective_ns` $objective_ns `bound_ns` $bound_ns `method` $method
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Stages and roles in the order in which they stand.
    std::vector<StageOp> getStages();
    std::vector<RoleOp> getRoles();
  }];
}

def Pipe_StageOp : Pipe_Op<"stage", [HasParent<"ProgramOp">]> {
  let summary = "a stage: layers, devices, predicted times and memory";
  let description = [{
    `layers [b, e)` are the indices of its layers in the unrolled graph, with
    the names of the first and the last; `segments` the same range in the chain
    of segments that was cut. Each of the `replicas` devices takes its share of
    the samples of every micro-batch; `devices [0, 64)` is short for all from 0 to
    63.

    Times are those of one device: forward and backward of one micro-batch, both
    transfers over the boundary to the next stage, and what follows the last
    backward (all-reduce and update). `memory_bytes` is the peak of one device
    with `in_flight` micro-batches held; where several stages share the device,
    the part of this one.
  }];
  let arguments = (ins
    Pipe_I32Attr:$number,
    Pipe_I32Attr:$layer_begin, Pipe_I32Attr:$layer_end,
    StrAttr:$first_layer, StrAttr:$last_layer,
    Pipe_I32Attr:$segment_begin, Pipe_I32Attr:$segment_end,
    Pipe_I32Attr:$replicas,
    DenseI32ArrayAttr:$devices,
    Pipe_I64Attr:$forward_ns,
    Pipe_I64Attr:$backward_ns,
    Pipe_I64Attr:$transfer_ns,
    Pipe_I64Attr:$all_reduce_ns,
    Pipe_I64Attr:$memory_bytes,
    Pipe_I32Attr:$in_flight
  );
  let assemblyFormat = [{
    $number `layers` custom<Range>($layer_begin, $layer_end)
    $first_layer `to` $last_layer
    `segments` custom<Range>($segment_begin, $segment_end)
    `` custom<Placement>($replicas, $devices) `memory_bytes` $memory_bytes
    `in_flight` $in_flight
    `` custom<Times>($forward_ns, $backward_ns, $transfer_ns, $all_reduce_ns)
    attr-dict
  }];
  let hasVerifier = 1;
}

def Pipe_LaneArrayAttr : TypedArrayAttrBase<Pipe_LaneAttr, "lanes">;

def Pipe_RoleOp : Pipe_Op<"role", [HasParent<"ProgramOp">]> {
  let summary = "what every device of its stages does";
  let description = [{
    `actions` is the order of the compute actions. With communication inserted,
    `lanes` give the order of everything: the compute lane holds the same
    actions in the same order, with tied sums and the update after them.

    ```mlir
    pipe.role 1 stages [1] actions <"1F0 1B0 1F1 1B1">
      lane compute <"1F0 1B0 1F1 1B1 1UPDATE">
      lane recv_act <"1RECV_F0 1RECV_F1">
      lane send_grad <"1SEND_B0 1SEND_B1">
    ```

    A role may have several stages, in any placement, which share its devices:
    its actions are those of all of them, and the lanes of transfers are there
    once for each stage with a neighbour on another role.

    ```mlir
    pipe.role 0 stages [0, 3] actions <"0F0 3F0 3B0 0B0">
      lane compute <"0F0 3F0 3B0 0B0 3UPDATE 0UPDATE">
      lane load <"0LOAD0">
      lane send_act <"0SEND_F0">
      lane recv_grad <"0RECV_B0">
      lane recv_act <"3RECV_F0">
      lane send_grad <"3SEND_B0">
    ```

    Where gradients are reduced in buckets, the last action that makes them
    stands in pieces on the compute lane (`1B1.0 1B1.1`), and there may be two
    lanes `reduce`.
  }];
  let arguments = (ins
    Pipe_I32Attr:$number,
    DenseI32ArrayAttr:$stages,
    Pipe_ActionsAttr:$actions,
    OptionalAttr<Pipe_LaneArrayAttr>:$lanes
  );
  let assemblyFormat = [{
    $number `stages` $stages `actions` $actions
    `` custom<Lanes>($lanes) attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The lane of a kind of transfers of a stage, or a null attribute.
    LaneAttr getLane(LaneKind kind, int32_t stage);
  }];
}

#endif // TAKT_PIPE_OPS
