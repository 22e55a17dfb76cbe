//===- Spec.h - what the YAML files say -------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Plain structs for a model file and a cluster file, every value checked and
// with its place in the file. Repeat blocks are kept as one (`RepeatSpec`);
// `takt/Transforms/Import.h` turns a ModelSpec into `model` IR.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt/Layer/Graph.h"
#include "takt/Partition/Constraints.h"
#include "takt/Support/SourceLoc.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace takt {

/// A parameter of a layer. Inside a repeat, `name` holds a `*` in place of the
/// iteration index ("h.*.attn.qkv.weight") and stands for one parameter a
/// repetition.
struct ParamSpec {
  std::string name;
  std::vector<int64_t> shape;
  rt::InitKind init = rt::InitKind::Zeros;
  double initScale = 0;
  bool trainable = true;
  bool tied = false; ///< a further use of a parameter declared elsewhere
  SourceLoc loc;
};

/// A layer after expansion of the composite YAML layers: `attention` becomes
/// linear (".qkv"), rotary (".rotary") if it has one, attention (".core") and
/// linear (".proj"); `gated_mlp` becomes linear (".in"), glu (".gate") and
/// linear (".out"); `residual` becomes its body and an add. Value references
/// are by name: a model input, or the `name` of an earlier layer in the same or
/// an enclosing scope.
struct LayerSpec {
  LayerKind kind = LayerKind::Linear;
  std::string name; ///< with `*` for the index inside a repeat
  std::vector<std::string> inputs;
  TensorType type; ///< of the output, one sample
  std::vector<ParamSpec> params;
  bool hasBias = false;
  int64_t heads = 0;
  int64_t kvHeads = 0; ///< these as in Layer
  int64_t headDim = 0;
  double theta = 1e4;
  GateKind gate = GateKind::Silu;
  double epsilon = 1e-5;
  ProfiledCost profiled;
  SourceLoc loc;
};

/// `count` equal blocks in a row. The body's first input is named
/// `name + ".in"`; the body's last layer gives the next block its input.
/// Outside, the block's result is known as `name`. Repeats do not nest.
struct RepeatSpec {
  std::string name;
  int64_t count = 1;
  std::string input; ///< value that enters the first block
  std::vector<LayerSpec> body;
  SourceLoc loc;
};

/// One entry of `layers:`: a layer, or a repeat when `repeat` is set.
struct ItemSpec {
  LayerSpec layer;
  std::shared_ptr<RepeatSpec> repeat;
};

enum class DataKind : uint8_t {
  Text, ///< bytes of a text file: inputs `tokens`, `targets` shifted by one
  Synthetic, ///< seeded normal values (float) or uniform ids (int)
};

/// An entry of `placement.constraints`: `names` are layers or blocks that the
/// model has, `number` as in SideConstraint.
struct ConstraintSpec {
  ConstraintKind kind = ConstraintKind::KeepTogether;
  std::vector<std::string> names;
  int64_t number = 0;
  SourceLoc loc;
};

struct ModelSpec {
  std::string file;
  std::string name;
  std::vector<rt::InputInfo> inputs;
  std::vector<ItemSpec> items;
  rt::Training training;
  DataKind data = DataKind::Text;
  std::vector<ConstraintSpec> constraints;
  SourceLoc loc;                           ///< of `model:`
  std::map<std::string, SourceLoc> places; ///< dotted key -> where it stands
};

/// Unrolls repeats and resolves names; the spec must have passed the reader.
Graph buildGraph(const ModelSpec &spec);

//===----------------------------------------------------------------------===//
// Cluster
//===----------------------------------------------------------------------===//

struct DeviceKindSpec {
  std::string name;
  double flops = 0;             ///< FLOP/s the kernels sustain, fp32 data
  double memoryBandwidth = 0;   ///< bytes/s
  Bytes memory = 0;             ///< capacity
  Nanos kernelOverhead = 0;     ///< launch cost of one kernel
  int64_t copyEngines = 0;      ///< 0: not stated
  int64_t transferSharePpm = 0; ///< of its SMs, taken by a transfer
  int64_t price = 0;            ///< millionths an hour; 0: not stated
  SourceLoc loc;
};

/// `count` equal nodes of `devices` devices each.
struct NodeGroupSpec {
  int64_t count = 1;
  std::string device; ///< name of a device kind
  int64_t devices = 1;
  int64_t cores = 0; ///< host cores, shared by the node's ranks; 0: not stated
  Bytes hostMemory = 0;
  std::string link;                ///< link class inside the node
  int64_t networkPorts = 0;        ///< 0: one a device
  double networkPortBandwidth = 0; ///< bytes/s, one direction; 0: of `network`
  SourceLoc loc;
};

struct LinkSpec {
  std::string name;
  Nanos latency = 0;
  double bandwidth = 0; ///< bytes/s a device, one direction
  SourceLoc loc;
};

/// Devices are numbered node by node in the order of the file.
struct ClusterSpec {
  std::string file;
  std::string name;
  std::vector<DeviceKindSpec> devices;
  std::vector<NodeGroupSpec> nodes;
  std::vector<LinkSpec> links;
  std::string network; ///< link class between nodes; may be empty for one node
  std::map<std::string, SourceLoc> places;

  int64_t numDevices() const;
};

//===----------------------------------------------------------------------===//
// Profile (measured costs)
//===----------------------------------------------------------------------===//

struct ProfileEntry {
  Nanos forward = 0, inputGrad = 0, weightGrad = 0, update = 0;
};

/// `takt-run --profile` writes it, `taktc --profile` reads it: per layer, for
/// `samples` samples on one device.
struct ProfileSpec {
  std::string file;
  std::string device; ///< device kind or host name it was measured on
  int64_t samples = 1;
  std::map<std::string, ProfileEntry> layers;
  std::map<std::string, SourceLoc> places;
};

} // namespace takt
