//===- touches.cpp - which bytes an instruction reads and writes *- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Cuts the slots into stretches, joins those that are treated alike, and works
// out which writer each read means.
//
//===----------------------------------------------------------------------===//
#include "touch_builder.h"

#include "../channel_stage.h"

#include <algorithm>

namespace takt::rt::proof {

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
  auto name = [&](const BufferRef &ref) {
    auto [begin, end] = rangeOf(ref);
    std::fill(unnamed.begin() + begin, unnamed.begin() + end, false);
  };
  for (const Procedure &procedure : role.procedures)
    for (const Kernel &kernel : procedure.kernels)
      if (kernel.kind == KernelKind::Profiled && namesUses(kernel))
        std::for_each(kernel.operands.begin(), kernel.operands.end(), name);
  for (const RoleParam &param : role.params)
    for (const std::vector<BufferRef> &list :
         {std::vector<BufferRef>{param.weight}, param.grads, param.state})
      for (const BufferRef &ref : list)
        name(ref);
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

/// Stretches that every kind treats alike become one part. Which buffers they
/// are of only matters as far as reads and writes agree on it, so those are
/// counted anew in each column. Sums are told apart: each has its own
/// contributions.
void TouchBuilder::merge() {
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
      id =
          local.insert({id, static_cast<BufferId>(local.size())}).first->second;
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
    auto [entry, isNew] = parts.insert(
        {{pool, columns[s]}, static_cast<uint16_t>(out.partCount[pool])});
    out.stretches[s].part = entry->second;
    if (!isNew)
      continue;
    ++out.partCount[pool];
    std::vector<Turn> writers;
    for (const auto &[kind, cell] : columns[s])
      if (cell.writes)
        writers.push_back(out.turns[kind]);
    std::sort(writers.begin(), writers.end());
    for (const auto &[kind, cell] : columns[s])
      out.touches[kind].push_back({pool, entry->second, cell.reads, cell.writes,
                                   cell.adds, cell.readAs, cell.wroteAs,
                                   meantBy(kind, writers)});
  }
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

void TouchBuilder::setTurns() {
  std::vector<int32_t> stages = role.stages;
  std::sort(stages.begin(), stages.end());
  auto count = static_cast<int32_t>(stages.size());
  auto place = [&](int32_t stage) {
    return static_cast<int32_t>(
        std::lower_bound(stages.begin(), stages.end(), stage) - stages.begin());
  };
  // Forward: arrives, is worked on, leaves; back: the weights' share follows.
  auto forward = [&](int32_t stage, int32_t what) {
    return 3 * place(stage) + what;
  };
  auto back = [&](int32_t stage, int32_t what) {
    return 3 * count + 4 * (count - 1 - place(stage)) + what;
  };
  auto updates = [](const Kernel &kernel) {
    return kernel.kind == KernelKind::SgdUpdate ||
           kernel.kind == KernelKind::MomentumUpdate ||
           kernel.kind == KernelKind::AdamWUpdate;
  };
  out.turns.resize(table.size());
  for (size_t i = 0; i < role.procedures.size(); ++i) {
    const Procedure &code = role.procedures[i];
    if (code.phase != Phase::Update)
      out.turns[i] = {code.phase == Phase::Forward      ? forward(code.stage, 1)
                      : code.phase == Phase::WeightGrad ? back(code.stage, 3)
                                                        : back(code.stage, 1),
                      pieceOf(code)};
    else if (std::any_of(code.kernels.begin(), code.kernels.end(), updates))
      out.turns[i] = {Turn::kUpdate, -1};
  }
  size_t load = role.procedures.size();
  out.turns[load] = {0, -1};
  for (const Endpoint &end : role.channels) {
    const Channel &channel = plan.channels[end.target];
    bool sends = &plan.roles[channel.srcRole] == &role;
    int32_t stage = stageAtEnd(role, channel, sends);
    if (channel.kind == ChannelKind::Activation)
      out.turns[load + 1 + end.target] = {forward(stage, sends ? 2 : 0), -1};
    else if (channel.kind == ChannelKind::Gradient)
      out.turns[load + 1 + end.target] = {back(stage, sends ? 2 : 0), -1};
  }
}

/// The last writer before a reader's turn, of writers by turn. A whole call and
/// its pieces never meet in one micro-batch.
Turn TouchBuilder::meantBy(size_t reader,
                           const std::vector<Turn> &writers) const {
  const Turn own = out.turns[reader];
  auto lastBefore = [&](const Turn &turn) {
    auto next = std::lower_bound(writers.begin(), writers.end(), turn);
    return next == writers.begin() ? Turn() : *(next - 1);
  };
  if (own.isNone() || own.isUpdate())
    return {};
  Turn last = lastBefore(own);
  bool isWhole = last.work == own.work && last.piece < 0;
  return isWhole ? lastBefore({own.work, -1}) : last;
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
  setTurns();
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

bool Touches::isMeant(size_t writerKind, size_t readerKind,
                      const Touch &read) const {
  const Turn &from = turns[writerKind], &to = turns[readerKind];
  if (from.isUpdate() && !to.isUpdate())
    return false;
  if (read.meant.isNone() || from.isNone() || to.isNone())
    return true;
  return from.work == read.meant.work &&
         (from.work != to.work || from.piece == read.meant.piece);
}

bool Touches::feeds(const Instr &writer, const Instr &reader) const {
  auto ofStep = [](const Turn &t) { return t.isNone() || t.isUpdate(); };
  bool isStep = ofStep(turn(writer)) || ofStep(turn(reader));
  for (const Touch &read : of(reader))
    for (const Touch &write : of(writer))
      if (read.reads && write.writes && read.pool == write.pool &&
          read.part == write.part &&
          (read.readAs == write.wroteAs || read.readAs == kAnyBuffer ||
           write.wroteAs == kAnyBuffer) &&
          (isStep || !read.meant.isNone()) && isMeant(writer, reader, read))
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
