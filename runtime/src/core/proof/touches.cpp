//===- touches.cpp - which bytes an instruction reads and writes *- C++ -*-===//
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
#include "touches.h"

#include "takt-rt/core/names.h"

#include "../check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

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

BufferId TouchBuilder::idOf(const BufferRef &ref) {
  return ids
      .insert({std::make_tuple(ref.pool, ref.offset, ref.bytes),
               static_cast<BufferId>(ids.size())})
      .first->second;
}

void TouchBuilder::cut() {
  std::vector<std::vector<Bytes>> ends(role.pools.size());
  for (size_t p = 0; p < role.pools.size(); ++p)
    ends[p] = {0, role.pools[p].slotBytes};
  eachBuffer([&](const BufferRef &ref) {
    ends[ref.pool].push_back(ref.offset);
    ends[ref.pool].push_back(ref.offset + ref.bytes);
  });
  for (size_t p = 0; p < ends.size(); ++p) {
    std::sort(ends[p].begin(), ends[p].end());
    ends[p].erase(std::unique(ends[p].begin(), ends[p].end()), ends[p].end());
    firstOf.push_back(static_cast<uint32_t>(out.stretches.size()));
    for (size_t i = 0; i + 1 < ends[p].size(); ++i)
      out.stretches.push_back(
          {static_cast<uint16_t>(p), ends[p][i], ends[p][i + 1], 0});
  }
  firstOf.push_back(static_cast<uint32_t>(out.stretches.size()));
  unnamed.assign(out.stretches.size(), true);
  for (const RoleParam &param : role.params)
    for (const std::vector<BufferRef> &list :
         {std::vector<BufferRef>{param.weight}, param.grads, param.state})
      for (const BufferRef &ref : list) {
        auto [begin, end] = rangeOf(ref);
        std::fill(unnamed.begin() + begin, unnamed.begin() + end, false);
      }
}

std::pair<uint32_t, uint32_t>
TouchBuilder::rangeOf(const BufferRef &ref) const {
  auto first = out.stretches.begin() + firstOf[ref.pool];
  auto last = out.stretches.begin() + firstOf[ref.pool + 1];
  auto at = [&](Bytes place) {
    return static_cast<uint32_t>(
        std::lower_bound(
            first, last, place,
            [](const Touches::Stretch &s, Bytes p) { return s.begin < p; }) -
        out.stretches.begin());
  };
  return {at(ref.offset), at(ref.offset + ref.bytes)};
}

void TouchBuilder::read(Row &row, const BufferRef &ref, BufferId id,
                        bool adds) {
  auto [begin, end] = rangeOf(ref);
  bool passing = Touches::isPassing(role.pools[ref.pool].kind);
  for (uint32_t s = begin; s < end; ++s) {
    Cell &cell = row[s];
    cell.adds |= adds;
    // A part that the procedure itself wrote is checked here and now.
    BufferId held = cell.writes  ? cell.wroteAs
                    : cell.reads ? cell.readAs
                                 : id;
    if (passing && held != id && held != kAnyBuffer && id != kAnyBuffer &&
        !out.firstFault)
      out.firstFault = KernelFault{
          0, fmt::format("reads {} bytes at {} of pool {} that were last {} "
                         "as another buffer",
                         ref.bytes, ref.offset, quoted(role.pools[ref.pool].name),
                         cell.writes ? "written" : "read")};
    if (cell.writes)
      continue;
    cell.reads = true;
    if (cell.readAs == kAnyBuffer)
      cell.readAs = id;
  }
}

void TouchBuilder::write(Row &row, const BufferRef &ref, BufferId id) {
  auto [begin, end] = rangeOf(ref);
  for (uint32_t s = begin; s < end; ++s) {
    Cell &cell = row[s];
    cell.writes = true;
    cell.wroteAs = id;
  }
}

/// No operand may lie over one that the kernel writes.
bool TouchBuilder::overlaps(const Kernel &kernel) const {
  const char *uses = operandUses(kernel);
  for (size_t i = 0; i < kernel.operands.size(); ++i)
    for (size_t j = 0; j < kernel.operands.size(); ++j) {
      const BufferRef &a = kernel.operands[i], &b = kernel.operands[j];
      if (i != j && uses[i] != 'r' && a.pool == b.pool &&
          a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
        return true;
    }
  return false;
}

/// A kernel without operands, by its place among the stage's layers.
void TouchBuilder::profiled(const Kernel &kernel, const Procedure &procedure,
                            Row &row) {
  int32_t first = kernel.layer, last = kernel.layer;
  for (const Procedure &other : role.procedures)
    if (other.stage == procedure.stage && other.phase == Phase::Forward)
      for (const Kernel &k : other.kernels) {
        first = std::min(first, k.layer);
        last = std::max(last, k.layer);
      }
  auto wholePools = [&](PoolKind kind, auto act) {
    for (size_t p = 0; p < role.pools.size(); ++p)
      if (role.pools[p].kind == kind)
        act(BufferRef{static_cast<uint16_t>(p), 0, role.pools[p].slotBytes});
  };
  auto reads = [&](PoolKind kind) {
    wholePools(kind,
               [&](const BufferRef &r) { read(row, r, kAnyBuffer, false); });
  };
  // What came in fills its buffer, not the rest of an aligned slot.
  auto readsArrived = [&](PoolKind kind) {
    auto readIn = [&](const BufferRef &r) {
      if (role.pools[r.pool].kind == kind)
        read(row, r, kAnyBuffer, false);
    };
    for (const Endpoint &end : role.channels)
      readIn(end.buffer);
    for (const LoadField &load : role.loads)
      readIn(load.buffer);
  };
  auto writes = [&](PoolKind kind) {
    wholePools(kind, [&](const BufferRef &r) { write(row, r, kAnyBuffer); });
  };
  switch (kernel.phase) {
  case Phase::Forward:
    if (kernel.layer == first) {
      readsArrived(PoolKind::Input);
      readsArrived(PoolKind::Batch);
    }
    reads(PoolKind::Weights);
    writes(PoolKind::Saved);
    writes(PoolKind::Workspace);
    if (kernel.layer == last)
      writes(PoolKind::Output);
    return;
  case Phase::InputGrad:
    reads(PoolKind::Saved);
    if (kernel.layer == last)
      readsArrived(PoolKind::OutputGrad);
    reads(PoolKind::Weights);
    writes(PoolKind::Saved);
    writes(PoolKind::Workspace);
    if (kernel.layer == first)
      writes(PoolKind::InputGrad);
    return;
  case Phase::WeightGrad:
  case Phase::Backward:
    reads(PoolKind::Saved);
    if (kernel.layer == first)
      readsArrived(PoolKind::Input);
    if (kernel.layer == last)
      readsArrived(PoolKind::OutputGrad);
    break;
  case Phase::Update:
    break;
  }
  addUnnamed(procedure, kernel.phase == Phase::Update, row);
}

/// Gradients without a parameter's buffer are added to by the kernels without
/// operands: by a piece of a procedure those of its bucket.
void TouchBuilder::addUnnamed(const Procedure &procedure, bool updates,
                              Row &row) {
  int32_t piece = pieceOf(procedure);
  std::pair<uint32_t, uint32_t> bucket{0, out.stretches.size()};
  if (piece >= 0 && static_cast<size_t>(piece) < role.groups.size())
    bucket = rangeOf(role.groups[piece].buffer);
  for (uint32_t s = 0; s < out.stretches.size(); ++s) {
    PoolKind kind = role.pools[out.stretches[s].pool].kind;
    if (!unnamed[s] || Touches::isPassing(kind) ||
        (kind != PoolKind::Gradients && !updates) ||
        s < bucket.first || s >= bucket.second)
      continue;
    Cell &cell = row[s];
    cell.reads = cell.writes = cell.adds = true;
  }
}

void TouchBuilder::procedure(size_t index, Row &row) {
  const Procedure &code = role.procedures[index];
  // A bucket may hold nothing of such a layer in its own piece, but the whole
  // procedure of the other micro-batches adds to all.
  auto isProfiledSum = [](const Kernel &kernel) {
    return kernel.kind == KernelKind::Profiled &&
           kernel.phase == Phase::WeightGrad;
  };
  bool sums = false;
  for (const Procedure &other : role.procedures)
    sums |= other.stage == code.stage &&
            std::any_of(other.kernels.begin(), other.kernels.end(),
                        isProfiledSum);
  if (sums && pieceOf(code) >= 0)
    addUnnamed(code, false, row);
  for (const Kernel &kernel : code.kernels) {
    bool clean = !out.firstFault;
    if (kernel.kind == KernelKind::Profiled)
      profiled(kernel, code, row);
    const char *uses = operandUses(kernel);
    for (size_t i = 0; i < kernel.operands.size(); ++i)
      if (uses[i] != 'w')
        read(row, kernel.operands[i], idOf(kernel.operands[i]), uses[i] == 'a');
    for (size_t i = 0; i < kernel.operands.size(); ++i)
      if (uses[i] != 'r')
        write(row, kernel.operands[i], idOf(kernel.operands[i]));
    if (overlaps(kernel) && !out.firstFault)
      out.firstFault = KernelFault{index, "writes over one of its operands"};
    if (clean && out.firstFault) {
      std::string layer = kernel.layer < 0
                              ? ""
                              : " of layer " +
                                    quoted(plan.layers[kernel.layer].name);
      out.firstFault->procedure = index;
      out.firstFault->text = fmt::format("kernel '{}'{} {}",
                                         nameOf(kernel.kind), layer,
                                         out.firstFault->text);
    }
  }
}

/// Stretches that every kind treats alike become one part. Which buffers they
/// are of only matters as far as reads and writes agree on it, so those are
/// counted anew in each column. Sums are told apart: each has its own
/// contributions.
void TouchBuilder::merge() {
  using Column = std::vector<std::pair<size_t, Cell>>;
  std::vector<Column> columns(out.stretches.size());
  for (size_t kind = 0; kind < table.size(); ++kind)
    for (const auto &[stretch, cell] : table[kind])
      columns[stretch].push_back({kind, cell});
  for (uint32_t s = 0; s < columns.size(); ++s) {
    PoolKind kind = role.pools[out.stretches[s].pool].kind;
    if (kind == PoolKind::Gradients || kind == PoolKind::Workspace)
      continue;
    std::map<BufferId, BufferId> local{{kAnyBuffer, kAnyBuffer}};
    auto renumber = [&](BufferId &id) {
      id = local.insert({id, static_cast<BufferId>(local.size())})
               .first->second;
    };
    for (auto &[index, cell] : columns[s]) {
      renumber(cell.readAs);
      renumber(cell.wroteAs);
    }
  }
  std::map<std::pair<uint16_t, Column>, uint16_t> parts;
  out.partCount.assign(role.pools.size(), 0);
  out.touches.resize(table.size());
  for (uint32_t s = 0; s < out.stretches.size(); ++s) {
    uint16_t pool = out.stretches[s].pool;
    auto [entry, isNew] =
        parts.insert({{pool, columns[s]},
                      static_cast<uint16_t>(out.partCount[pool])});
    out.stretches[s].part = entry->second;
    if (!isNew)
      continue;
    ++out.partCount[pool];
    for (const auto &[kind, cell] : columns[s])
      out.touches[kind].push_back({pool, entry->second, cell.reads,
                                   cell.writes, cell.adds, cell.readAs,
                                   cell.wroteAs});
  }
}

void TouchBuilder::build() {
  cut();
  table.resize(role.procedures.size() + 1 + plan.channels.size() +
               plan.groups.size());
  for (size_t i = 0; i < role.procedures.size(); ++i)
    procedure(i, table[i]);
  size_t load = role.procedures.size();
  for (const LoadField &field : role.loads)
    write(table[load], field.buffer, idOf(field.buffer));
  for (const Endpoint &end : role.channels) {
    Row &row = table[load + 1 + end.target];
    if (&plan.roles[plan.channels[end.target].srcRole] == &role)
      read(row, end.buffer, idOf(end.buffer), false);
    else
      write(row, end.buffer, idOf(end.buffer));
  }
  for (const Endpoint &end : role.groups) {
    Row &row = table[load + 1 + plan.channels.size() + end.target];
    read(row, end.buffer, idOf(end.buffer), false);
    write(row, end.buffer, idOf(end.buffer));
  }
  merge();
}

Touches::Touches(const Plan &plan, const Role &role)
    : role(role), channelCount(plan.channels.size()) {
  TouchBuilder(plan, role, *this).build();
}

size_t Touches::kindOf(const Instr &instr) const {
  size_t load = role.procedures.size();
  switch (instr.kind) {
  case InstrKind::Call:
    return instr.target;
  case InstrKind::Load:
    return load;
  case InstrKind::Send:
  case InstrKind::Recv:
    return load + 1 + instr.target;
  case InstrKind::AllReduce:
    break;
  }
  return load + 1 + channelCount + instr.target;
}

bool Touches::feeds(const Instr &writer, const Instr &reader) const {
  for (const Touch &read : of(reader))
    for (const Touch &write : of(writer))
      if (read.reads && write.writes && read.pool == write.pool &&
          read.part == write.part &&
          (read.readAs == write.wroteAs || read.readAs == kAnyBuffer ||
           write.wroteAs == kAnyBuffer))
        return true;
  return false;
}

std::optional<uint16_t> Touches::partOf(const BufferRef &ref) const {
  for (const Stretch &stretch : stretches)
    if (stretch.pool == ref.pool && stretch.begin == ref.offset &&
        ref.bytes > 0)
      return stretch.part;
  return std::nullopt;
}

} // namespace takt::rt::proof
