//===- touches.h - which bytes an instruction reads and writes --*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A role's slots are cut at every end of a buffer, and the parts that all
// procedures, loads, transfers and reductions treat alike are made one *part*:
// a stage of hundreds of tensors has a handful of them a pool. What a kind of
// instruction does to each part is worked out once; the check of a plan then
// takes time in instructions, not in kernels.
//
// The identity of data is the buffer it was written as and the work that wrote
// it: a read must name the offset and size of the write it sees, and that write
// must be the last that comes before the reader in the way of a micro-batch
// through the stages of the role. Kernels of layers known by costs only
// have no operands; they are taken to read what any layer in their place would
// read, and to write every temporary.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt::rt::proof {

/// A buffer by its place in the role's list; any: written or read by a kernel
/// that does not say as what.
using BufferId = int32_t;
constexpr BufferId kAnyBuffer = -1;

/// When work on a micro-batch has its turn: it arrives at a stage, passes it
/// forward and leaves, and so back. Of the step's work only the update has one:
/// the last.
struct Turn {
  int32_t work = -1;
  int32_t piece = -1; ///< of a call that is cut in pieces
  bool isNone() const { return work < 0; }
  bool isUpdate() const { return work == kUpdate; }
  static constexpr int32_t kUpdate = 0x7fffffff;
  bool operator<(const Turn &o) const {
    return work != o.work ? work < o.work : piece < o.piece;
  }
  bool operator==(const Turn &o) const {
    return work == o.work && piece == o.piece;
  }
};

/// What one instruction does to one part of a slot.
struct Touch {
  uint16_t pool = 0;
  uint16_t part = 0;
  bool reads = false; ///< bytes that were there before the instruction
  bool writes = false;
  bool adds = false; ///< reads and writes: a gradient accumulates
  BufferId readAs = kAnyBuffer;
  BufferId wroteAs = kAnyBuffer; ///< the last write
  Turn meant = {}; ///< of the writer that a read means; none: whichever
  bool operator==(const Touch &o) const {
    return pool == o.pool && part == o.part && reads == o.reads &&
           writes == o.writes && adds == o.adds && readAs == o.readAs &&
           wroteAs == o.wroteAs && meant == o.meant;
  }
};

/// A procedure whose kernels disturb one another.
struct KernelFault {
  size_t procedure = 0;
  std::string text;
};

class Touches {
public:
  Touches(const Plan &plan, const Role &role);

  const std::vector<Touch> &of(const Instr &instr) const {
    return touches[kindOf(instr)];
  }
  const Turn &turn(const Instr &instr) const { return turns[kindOf(instr)]; }
  /// Kinds of instructions, for tables of one's own.
  size_t kinds() const { return touches.size(); }
  size_t kindOf(const Instr &instr) const;
  const std::vector<Touch> &ofKind(size_t kind) const { return touches[kind]; }
  bool isMeant(size_t writerKind, size_t readerKind, const Touch &read) const;
  /// True if what the writer leaves is what a read of the reader's means.
  bool isMeant(const Instr &writer, const Instr &reader,
               const Touch &read) const {
    return isMeant(kindOf(writer), kindOf(reader), read);
  }
  /// True if `reader` takes, in some part, what `writer` leaves there.
  bool feeds(const Instr &writer, const Instr &reader) const;
  size_t parts(uint16_t pool) const { return partCount[pool]; }
  /// The part in which a buffer of the role begins; nothing for a buffer of no
  /// bytes.
  std::optional<uint16_t> partOf(const BufferRef &ref) const;
  const std::optional<KernelFault> &fault() const { return firstFault; }
  /// Data of a micro-batch or of one call, as against weights and sums.
  static bool isPassing(PoolKind kind) {
    return kind != PoolKind::Weights && kind != PoolKind::Gradients &&
           kind != PoolKind::OptimizerState;
  }

private:
  /// A stretch of a slot between two neighbouring ends of buffers.
  struct Stretch {
    uint16_t pool = 0;
    Bytes begin = 0, end = 0;
    uint16_t part = 0;
  };
  friend class TouchBuilder;

  const Role &role;
  size_t channelCount = 0;                 ///< of the plan
  std::vector<std::vector<Touch>> touches; ///< by kind of instruction
  std::vector<Turn> turns;                 ///< by kind of instruction
  std::vector<size_t> partCount;           ///< by pool
  std::vector<Stretch> stretches;          ///< by pool and place
  std::optional<KernelFault> firstFault;
};

/// Whether a layer known by costs only says how it uses its operands.
inline bool namesUses(const Kernel &kernel) { return !kernel.dims.empty(); }

/// How a kernel of the role uses each operand, one letter an operand: r reads,
/// w writes, a adds to. Empty for a layer known by costs only that does not say.
std::string operandUses(const Role &role, const Kernel &kernel);

} // namespace takt::rt::proof
