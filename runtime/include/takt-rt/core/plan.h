//===- plan.h - the execution plan ------------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The plan is what `taktc` writes and `takt-run` executes: programs by role
// (one role per group of ranks that do the same), lanes of instructions with
// `(lane, count)` waits, one arena a rank cut into pools, and one procedure per
// stage and kind, so that a plan's size is layers + actions, not their product.
//
// Units everywhere: nanoseconds (`Nanos`) and bytes (`Bytes`), both int64.
//
// Addressing. A rank's memory is one arena. A *pool* is `count` equal slots of
// `slotBytes` bytes, slot k at `base + k * slotBytes` (all 64-byte aligned).
// A micro-batch m uses slot `slotOf[m]` of a pool (slot 0 when `slotOf` is
// empty: weights, gradients, workspace). A `BufferRef` is an offset in a slot;
// its address for micro-batch m is
//     arena + pool.base + pool.slot(m) * pool.slotBytes + ref.offset.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace takt::rt {

using Nanos = int64_t;
using Bytes = int64_t;

/// Everything in an arena starts at a multiple of this.
constexpr Bytes kAlignment = 64;

inline Bytes alignUp(Bytes n) {
  return (n + kAlignment - 1) / kAlignment * kAlignment;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// What a pool holds; reports group memory by it.
enum class PoolKind : uint8_t {
  Weights,        ///< persistent: parameters
  Gradients,      ///< persistent: one accumulator per parameter use
  OptimizerState, ///< persistent: momentum, Adam moments
  Batch,          ///< inputs and targets of a micro-batch, filled by Load
  Saved,          ///< forward tensors that a backward procedure reads
  Input,          ///< activations received from the previous stage
  Output,         ///< activations to send to the next stage
  OutputGrad,     ///< gradients received from the next stage
  InputGrad,      ///< gradients to send to the previous stage
  Loss,           ///< one float per micro-batch (persistent over a step)
  Workspace,      ///< temporaries of one call
};

struct Pool {
  PoolKind kind = PoolKind::Workspace;
  std::string name;
  Bytes base = 0;      ///< offset in the arena
  Bytes slotBytes = 0; ///< multiple of kAlignment
  int32_t count = 1;   ///< number of slots
  /// Slot of each micro-batch; empty: always slot 0.
  std::vector<uint16_t> slotOf;

  int32_t slot(int32_t microBatch) const {
    return slotOf.empty() || microBatch < 0 ? 0 : slotOf[microBatch];
  }
  Bytes bytes() const { return slotBytes * count; }
};

/// A range of bytes in a slot of a pool of the role.
struct BufferRef {
  uint16_t pool = 0;
  Bytes offset = 0;
  Bytes bytes = 0;
};

//===----------------------------------------------------------------------===//
// Procedures
//===----------------------------------------------------------------------===//

/// The kernels a device table must offer. Operands, in order, are named in
/// braces; `dims` and `scalars` in brackets. Tensors are row-major and
/// contiguous; `rows` = samples of this rank's share x positions. Element type
/// is float (or double in gradient checks); ids and class targets are int32.
/// Kernels marked += accumulate into their last operand(s), which the update
/// procedure leaves at zero.
enum class KernelKind : uint8_t {
  /// {ids, W, y} [rows, vocab, width]: y[i] = W[ids[i]]
  EmbeddingForward,
  /// {ids, dy, dW} [rows, vocab, width]: dW[ids[i]] += dy[i], i ascending
  EmbeddingWeightGrad,
  /// {x, P, y} [samples, positions, width]: y[s,t] = x[s,t] + P[t]
  PositionForward,
  /// {dy, dP} [samples, positions, width]: dP[t] += sum_s dy[s,t]
  PositionWeightGrad,
  /// {x, W, (b,) y} [rows, in, out, hasBias]: y = x W^T + b, W is [out, in]
  LinearForward,
  /// {dy, W, dx} [rows, in, out]: dx = dy W
  LinearInputGrad,
  /// {x, dy, dW(, db)} [rows, in, out, hasBias]: dW += dy^T x, db += sum dy
  LinearWeightGrad,
  /// {x, gain, bias, y, mean, rstd} [rows, width] [eps]
  LayerNormForward,
  /// {x, gain, mean, rstd, dy, dx} [rows, width]
  LayerNormInputGrad,
  /// {x, mean, rstd, dy, dgain, dbias} [rows, width]: += into both
  LayerNormWeightGrad,
  /// {qkv, out, lse, scratch} [samples, positions, heads, headDim]: causal
  /// softmax(q k^T / sqrt(headDim)) v; qkv rows are q|k|v, each heads*headDim;
  /// lse [samples, heads, positions] is log-sum-exp of the scaled scores;
  /// scratch holds positions^2 elements. With a fifth dim, kvHeads, k and v are
  /// kvHeads*headDim wide and head h reads those of h / (heads / kvHeads)
  AttentionForward,
  /// {qkv, out, lse, dout, dqkv, scratch} dims as above; scratch holds
  /// 2 * positions^2 elements
  AttentionInputGrad,
  /// {x, y} [n]: exact (erf) form
  GeluForward,
  /// {x, dy, dx} [n]
  GeluInputGrad,
  /// {x, y} [n]
  ReluForward,
  /// {y, dy, dx} [n]: dx = dy where y > 0
  ReluInputGrad,
  /// {a, b, y} [n]: y = a + b
  AddForward,
  /// {src, dst} [n]: dst += src
  Accumulate,
  /// {src, dst} [n]
  Copy,
  /// {logits, targets, lse, loss} [rows, classes] [scale]: lse[i] =
  /// log-sum-exp of row i; loss[0] = scale * sum_i (lse[i] - logits[i,target])
  CrossEntropyForward,
  /// {logits, targets, lse, dlogits} [rows, classes] [scale]
  CrossEntropyInputGrad,
  /// {x, target, loss} [n] [scale]: loss[0] = scale * sum (x - target)^2
  MseForward,
  /// {x, target, dx} [n] [scale]: dx = 2 scale (x - target)
  MseInputGrad,
  /// {w, g} [n] [weightDecay]: w -= lr (g + weightDecay w); then g = 0.
  /// Learning
  /// rate and step come from the run.
  SgdUpdate,
  /// {w, g, v} [n] [momentum, weightDecay]: v = momentum v + g + weightDecay w;
  /// w -= lr v; g = 0
  MomentumUpdate,
  /// {w, g, m, v} [n] [beta1, beta2, eps, weightDecay]: decoupled decay
  /// (Loshchilov and Hutter 2019, arXiv 1711.05101), bias-corrected; g = 0
  AdamWUpdate,
  /// {dst} [n]: dst = 0
  Zero,
  /// {...} a layer known by costs only: a device that computes refuses it. May
  /// name the buffers that the layer reads and writes.
  Profiled,
  // A plan file holds kinds by number: later ones come last.
  /// {x, gain, y, rstd} [rows, width] [eps]: y = gain x rstd
  RmsNormForward,
  /// {x, gain, rstd, dy, dx} [rows, width]
  RmsNormInputGrad,
  /// {x, rstd, dy, dgain} [rows, width]: +=
  RmsNormWeightGrad,
  /// {x, y} [samples, positions, heads, headDim, columns] [theta]: rows of
  /// `columns` elements, whose first heads*headDim are turned by position:
  /// elements j and j + headDim/2 of a head by the angle
  /// t theta^(-2 j / headDim); headDim is even. The others are copied
  RotaryForward,
  /// {dy, dx} dims and theta as above
  RotaryInputGrad,
  /// {x, y} [n]: x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
  GeluTanhForward,
  /// {x, dy, dx} [n]
  GeluTanhInputGrad,
  /// {x, y} [rows, width, activation]: rows of x are g|u, each `width`;
  /// y = a(g) u, a: 1 SiLU, 2 GELU, 3 GELU in its tanh form
  GluForward,
  /// {x, dy, dx} dims as above
  GluInputGrad,
};

/// Which part of a layer's work a kernel or procedure is.
enum class Phase : uint8_t { Forward, InputGrad, WeightGrad, Backward, Update };

struct Kernel {
  KernelKind kind = KernelKind::Copy;
  Phase phase = Phase::Forward; ///< Forward, InputGrad, WeightGrad or Update
  int32_t layer = -1;           ///< index into Plan::layers
  std::vector<BufferRef> operands;
  std::vector<int64_t> dims;
  std::vector<double> scalars;
};

/// A stage's work of one kind: straight-line kernels. An action calls it with a
/// micro-batch, which selects the slots.
struct Procedure {
  /// "F", "B", "I", "W", "U"; tie sums "T0"...; "B.0", "B.1"... are the pieces
  /// of one call of "B", so that its first gradients can be reduced early.
  std::string name;
  Phase phase = Phase::Forward; ///< Backward = input and weight gradients
  int32_t stage = 0;
  Nanos cost = 0; ///< predicted time of one call on one device of the role
  std::vector<Kernel> kernels;
};

/// Number of a piece by its procedure's name; -1: the whole of its kind.
int32_t pieceOf(const Procedure &procedure);

//===----------------------------------------------------------------------===//
// Lanes and instructions
//===----------------------------------------------------------------------===//

enum class LaneKind : uint8_t {
  Compute,
  Load,     ///< inputs and targets into Batch slots
  RecvAct,  ///< activations from the previous stage
  SendAct,  ///< activations to the next stage
  RecvGrad, ///< gradients from the next stage
  SendGrad, ///< gradients to the previous stage
  Reduce,   ///< data-parallel all-reduce
  Tie,      ///< exchange of gradients of tied weights between stages
};

/// "Do not start before `lane` has completed `count` instructions this step".
struct Wait {
  uint16_t lane = 0;
  uint32_t count = 0;
};

enum class InstrKind : uint8_t {
  Call,      ///< target: procedure of the role
  Load,      ///< target unused: all loads of the role for the micro-batch
  Send,      ///< target: channel of the plan
  Recv,      ///< target: channel of the plan
  AllReduce, ///< target: group of the plan; float sum, in place
};

struct Instr {
  InstrKind kind = InstrKind::Call;
  uint16_t target = 0;
  int32_t microBatch = -1; ///< -1: whole step (update, reduce, tie)
  uint32_t waitBegin = 0;  ///< half-open range in Lane::waits
  uint32_t waitEnd = 0;
};

/// Instructions of one lane start in order and one at a time. A lane's count
/// is the number of its completed instructions in the current step.
struct Lane {
  LaneKind kind = LaneKind::Compute;
  std::string name;
  std::vector<Instr> instrs;
  std::vector<Wait> waits;
  /// The proof's certificate: the place of each instruction in one total order
  /// of the whole plan (see proof.h); empty: the plan carries none.
  std::vector<uint32_t> order = {};
};

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

/// alpha-beta cost of one transfer: latency + bytes / bandwidth.
struct Link {
  std::string name;
  Nanos latency = 0;
  double bytesPerSecond = 0; ///< 0: free (unit-cost studies)

  Nanos time(Bytes bytes) const {
    double wire = bytesPerSecond > 0 ? bytes * 1e9 / bytesPerSecond : 0.0;
    return latency + static_cast<Nanos>(wire + 0.5);
  }
};

enum class ChannelKind : uint8_t {
  Activation, ///< split by sample over the replicas of both ends
  Gradient,   ///< likewise, backwards
  Tie,        ///< whole buffer; destination replica j receives from source
              ///< replica j mod (source replicas)
};

/// An ordered, typed pipe between two roles. Messages on one (sender, receiver)
/// pair of a channel arrive in the order they are sent; a send completes when
/// its receiver has taken the data (rendezvous).
struct Channel {
  std::string name;
  ChannelKind kind = ChannelKind::Activation;
  uint16_t srcRole = 0;
  uint16_t dstRole = 0;
  Bytes bytes = 0; ///< of the whole micro-batch, before splitting
  Link link;       ///< slowest link any of its pieces crosses
};

/// All replicas of a role. A reduction leaves the same bits on every member.
/// The host sums every element in the order of ranks, so that buckets do not
/// matter; a ring that starts its chunks at different ranks does the same for
/// two ranks, where there is one order, and not for more.
struct Group {
  std::string name;
  uint16_t role = 0;
  Link link;
};

/// Where a role keeps the data of a channel or group it takes part in.
struct Endpoint {
  uint16_t target = 0; ///< channel or group of the plan
  BufferRef buffer;
};

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

enum class DType : uint8_t { Float32, Int32 };

/// One input of the model that a Load brings in for a micro-batch.
struct LoadField {
  std::string input; ///< name in Plan::inputs
  BufferRef buffer;  ///< in the Batch pool; this rank's share of samples
};

/// One use of a parameter by the stages of a role.
struct RoleParam {
  int32_t param = 0; ///< index into Plan::params
  BufferRef weight;  ///< several uses on one role share the weight
  /// Accumulators; empty if frozen. When the update procedure begins, grads[0]
  /// holds the sum over all uses, replicas and stages; the others are those of
  /// further uses on this role, which the update procedure zeroes.
  std::vector<BufferRef> grads;
  /// Optimizer state tensors (0 for SGD, 1 momentum, 2 Adam: m, v).
  std::vector<BufferRef> state;
};

/// Ranks `firstRank .. firstRank + replicas - 1` run this program; replica i
/// works on samples [i n / replicas, (i + 1) n / replicas) of each micro-batch
/// of n samples.
struct Role {
  std::string name;
  int32_t firstRank = 0;
  int32_t replicas = 1;
  std::vector<int32_t> stages;  ///< usually one
  std::vector<int32_t> devices; ///< device of each replica in the cluster
  std::vector<Pool> pools;
  std::vector<Procedure> procedures;
  std::vector<Lane> lanes;
  std::vector<Endpoint> channels; ///< sorted by target
  std::vector<Endpoint> groups;
  std::vector<LoadField> loads;
  std::vector<RoleParam> params;
  bool hasLoss = false; ///< the Loss pool holds one float per micro-batch
  /// Where the plan's output lies when a forward call of the last stage has
  /// ended, for this rank's share of the samples; without bytes: elsewhere.
  BufferRef result;
  Bytes arenaBytes = 0; ///< end of the last pool
  /// Most bytes live at one moment of this program, tensor by tensor, buffers
  /// of transfers counted from when the transfer may begin.
  Bytes livenessBytes = 0;
  Bytes capacity = 0;       ///< memory of the device; 0 = not known
  int32_t peakInFlight = 0; ///< most micro-batches whose activations are held
};

//===----------------------------------------------------------------------===//
// The model as the run needs it
//===----------------------------------------------------------------------===//

enum class InitKind : uint8_t { Zeros, Ones, Normal, Uniform };

/// A parameter by its global name, independent of stage and rank.
struct Param {
  std::string name;
  std::vector<int64_t> shape;
  InitKind init = InitKind::Zeros;
  double initScale = 0; ///< standard deviation, or half width of the range
  bool trainable = true;
};

struct LayerInfo {
  std::string name;
  std::string kind; ///< "linear", "attention", ...
};

/// A model input; shape of one sample.
struct InputInfo {
  std::string name;
  DType dtype = DType::Float32;
  std::vector<int64_t> shape;
  int64_t classes = 0; ///< upper bound of int32 values; 0 = unknown
};

/// What a plan is for. Inference goes forward alone: every parameter is frozen,
/// and nothing is reduced or updated.
enum class Mode : uint8_t { Training, Inference };

/// What inference gives for each sample: the output of a layer, float32.
struct OutputInfo {
  std::string name;           ///< of the layer; empty: there is none
  std::vector<int64_t> shape; ///< of one sample
};

enum class OptimizerKind : uint8_t { Sgd, Momentum, AdamW };
enum class LrSchedule : uint8_t { Constant, Linear, Cosine };

/// Settings of a run. In inference those of the optimizer mean nothing.
struct Training {
  Mode mode = Mode::Training;
  int64_t globalBatch = 1;  ///< samples a step
  int32_t microBatches = 1; ///< globalBatch is a multiple of it
  uint64_t seed = 0;
  OptimizerKind optimizer = OptimizerKind::Sgd;
  double learningRate = 1e-3;
  double momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weightDecay = 0;
  LrSchedule schedule = LrSchedule::Constant;
  int64_t warmupSteps = 0;
  int64_t totalSteps = 0; ///< of the decay; 0 with Constant
  double minLearningRate = 0;

  int64_t microBatchSize() const { return globalBatch / microBatches; }
};

/// Learning rate of a step, counted from 0: linear warm-up from lr/warmup to lr
/// over `warmupSteps`, then constant, linear or cosine decay to the minimum at
/// `totalSteps`.
double learningRateAt(const Training &training, int64_t step);

//===----------------------------------------------------------------------===//
// What the devices share
//===----------------------------------------------------------------------===//

/// Equal nodes in a row, and what calls and transfers of their devices share.
/// Devices are numbered through all nodes in the order of `Plan::resources`;
/// 0 means that something is not shared or not known, and slows nobody.
struct NodeResources {
  int32_t nodes = 1;
  int32_t devices = 1; ///< of each node
  int32_t cores = 0;   ///< of each node; a call keeps one busy
  int32_t copyEngines =
      0; ///< of a device; a transfer keeps one busy at each end
  double transferShare =
      0; ///< of a device's SMs, taken by a transfer at each end
  double memoryBytesPerSecond = 0; ///< of a device, read and written
  double portBytesPerSecond =
      0; ///< of a device inside the node, each direction
  double networkBytesPerSecond = 0; ///< of a network port, each direction
  int32_t networkPorts = 0; ///< of a node; 0: one for each device
  std::string kind;         ///< of the devices; empty: not stated
  int64_t price = 0; ///< millionths of a currency for an hour of a device
};

struct Plan {
  static constexpr int32_t kFormatMajor = 1;
  static constexpr int32_t kFormatMinor = 2;

  std::string model;      ///< name of the model
  std::string cluster;    ///< name of the cluster
  std::string compiler;   ///< version of the writer
  std::string inputHash;  ///< of model, cluster, profile and options
  std::string schedule;   ///< "1f1b", "gpipe", ...
  std::string costSource; ///< "roofline", "profile FILE"
  /// Features a reader must know; an unknown one is refused.
  std::vector<std::string> requiredFeatures;

  Training training;
  std::vector<InputInfo> inputs;
  std::vector<LayerInfo> layers;
  std::vector<Param> params;
  std::vector<Channel> channels;
  std::vector<Group> groups;
  std::vector<Role> roles;
  OutputInfo output; ///< of inference
  /// Covers the devices of all roles, or is empty: then nothing is shared.
  std::vector<NodeResources> resources;

  Nanos predictedStep = 0; ///< makespan under the virtual clock
  Nanos boundStep = 0;     ///< proven lower bound of the assignment's objective
  Nanos objectiveStep = 0; ///< value of that objective for this plan
  // Of inference, where the objective is the period:
  Nanos predictedPeriod = 0;  ///< between two micro-batches that leave
  Nanos predictedLatency = 0; ///< of the first micro-batch of a step

  int32_t numRanks() const {
    return roles.empty() ? 0 : roles.back().firstRank + roles.back().replicas;
  }
  /// Role of a rank; the rank must be in range.
  int32_t roleOf(int32_t rank) const;
};

//===----------------------------------------------------------------------===//
// Questions asked of a plan
//===----------------------------------------------------------------------===//

/// One contiguous part of a transfer that goes between two ranks.
struct Piece {
  int32_t peer = 0; ///< rank at the other end
  Bytes offset = 0; ///< from the start of this rank's endpoint buffer
  Bytes bytes = 0;
};

/// The pieces that `replica` of the sending (or receiving) role exchanges on a
/// channel for one micro-batch, by ascending peer.
std::vector<Piece> transferPieces(const Plan &plan, const Channel &channel,
                                  bool sending, int32_t replica);

/// The role's endpoint of a channel or group in `role.channels` or
/// `role.groups`; null if it has none.
const Endpoint *findEndpoint(const std::vector<Endpoint> &ends,
                             uint16_t target);

/// Predicted time of a transfer on a channel: the largest sum of pieces any
/// rank of it sends or receives.
Nanos transferTime(const Plan &plan, const Channel &channel);

/// Predicted time of a ring all-reduce of `bytes` over `n` ranks:
/// 2 (n - 1) (latency + bytes / n / bandwidth).
Nanos allReduceTime(const Link &link, int32_t n, Bytes bytes);

/// Text of an instruction in the action alphabet: "0F3", "1B0",
/// "0SEND_F3", "1RECV_B2", "0LOAD3", "0REDUCE_GRAD", "1UPDATE";
/// "1B7.0" is a piece of "1B7", "0REDUCE_GRAD1" the second bucket of several.
std::string actionText(const Plan &plan, const Role &role, const Instr &instr);

/// Structural check: indices, ranges, alignment, overlap of pools, waits that
/// point forward, sizes of endpoints against pieces. Returns one sentence per
/// fault, naming role, lane and instruction; empty when the plan is sound.
/// (The proof of ordering is part of `proof`, not of this.)
std::vector<std::string> checkStructure(const Plan &plan);

} // namespace takt::rt
