//===- touch_builder.h - the table behind the touches -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Kinds of instructions are numbered: procedures, the load, channels, groups.
// For every kind a table over all stretches is filled kernel by kernel; then
// stretches with equal columns become one part.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "touches.h"

#include <map>
#include <tuple>
#include <utility>

namespace takt::rt::proof {

class TouchBuilder {
public:
  TouchBuilder(const Plan &plan, const Role &role, Touches &out)
      : plan(plan), role(role), out(out) {}
  void build();

private:
  /// One cell of the table: what a kind does to a stretch.
  struct Cell {
    bool reads = false, writes = false, adds = false;
    BufferId readAs = kAnyBuffer, wroteAs = kAnyBuffer;
    bool operator<(const Cell &o) const {
      return std::tie(reads, writes, adds, readAs, wroteAs) <
             std::tie(o.reads, o.writes, o.adds, o.readAs, o.wroteAs);
    }
    bool operator==(const Cell &o) const { return !(*this < o) && !(o < *this); }
  };
  using Row = std::map<uint32_t, Cell>; ///< by stretch; absent: not touched
  /// What each kind does to one stretch; absent: nothing.
  using Column = std::vector<std::pair<size_t, Cell>>;

  BufferId idOf(const BufferRef &ref);
  void cut();
  std::pair<uint32_t, uint32_t> rangeOf(const BufferRef &ref) const;
  void read(Row &row, const BufferRef &ref, BufferId id, bool adds);
  void write(Row &row, const BufferRef &ref, BufferId id);
  void procedure(size_t index, Row &row);
  void profiled(const Kernel &kernel, const Procedure &procedure, Row &row);
  void addUnnamed(const Procedure &procedure, bool updates, Row &row);
  bool overlaps(const Kernel &kernel) const;
  void merge();
  void setTurns();
  Turn meantBy(size_t reader, const std::vector<Turn> &writers) const;

  template <typename Visit>
  void eachBuffer(Visit visit) const {
    for (const Procedure &procedure : role.procedures)
      for (const Kernel &kernel : procedure.kernels)
        for (const BufferRef &operand : kernel.operands)
          visit(operand);
    for (const LoadField &load : role.loads)
      visit(load.buffer);
    for (const Endpoint &end : role.channels)
      visit(end.buffer);
    for (const Endpoint &end : role.groups)
      visit(end.buffer);
    for (const RoleParam &param : role.params) {
      visit(param.weight);
      for (const BufferRef &grad : param.grads)
        visit(grad);
      for (const BufferRef &state : param.state)
        visit(state);
    }
  }

  const Plan &plan;
  const Role &role;
  Touches &out;
  std::map<std::tuple<uint16_t, Bytes, Bytes>, BufferId> ids;
  std::vector<Row> table; ///< by kind of instruction
  std::vector<uint32_t> firstOf; ///< by pool: its first stretch
  /// Stretches of gradients that belong to no parameter with a buffer.
  std::vector<bool> unnamed;
};

} // namespace takt::rt::proof
