//===- page_data.cpp - runs as data for the page ----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What is the same for all ranks of a role is written once a role; of a rank
// only times are written, as differences, and only once for ranks whose times
// are equal. About 30 bytes an action of a role and 12 of a rank.
//
//   title, shape           headings
//   roles[]    name, first, replicas, arena, capacity,
//     pools[]    [name, slot bytes, slots, slot of each micro-batch]
//     lanes[]    name, kind, and by instruction: names (one text, a line each),
//                style (one letter each), mb, target (of a transfer, twice
//                its channel, and one more where it sends; else -1), touch
//                (index into touches), waits [n, lane, count..]
//     touches[]  lists of pools
//   channels[] [name, bytes, [sender, receiver, ...]]
//   runs[]     name, heading, end,
//     ranks[]    a number: as that rank; or lanes[] [gap, length, ...] in the
//                order of the instructions, `at[]` per lane where some are
//                missing, busy, memory [gap, bytes, ...], peak
//
//===----------------------------------------------------------------------===//
#include "page.h"
#include "timeline.h"

#include "takt-rt/core/names.h"
#include "takt-rt/core/summary.h"
#include "takt-rt/core/units.h"
#include "takt-rt/trace/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace takt::rt {

namespace {

/// A JSON string that also a script element may hold.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (c == '<')
      result += "\\u003c";
    else
      result += c;
  }
  return result + '"';
}

/// Numbers, and objects, with commas between them.
class List {
public:
  explicit List(std::string &out) : out(out) { out += '['; }
  ~List() { out += ']'; }
  List(const List &) = delete;
  void add(int64_t number) { next() += fmt::format_int(number).c_str(); }
  void add(const std::string &text) { next() += text; }
  /// The place for one more.
  std::string &next() {
    if (!isFirst)
      out += ',';
    isFirst = false;
    return out;
  }

private:
  std::string &out;
  bool isFirst = true;
};

class PageData {
public:
  PageData(const Plan &plan, const Runs &runs) : plan(plan), runs(runs) {}

  std::string write() {
    out += fmt::format(R"({{"title":{},"shape":{},"roles":)",
                       quoted(pictureTitle(plan)), quoted(pictureShape(plan)));
    {
      List roles(out);
      for (const Role &role : plan.roles) {
        roles.next();
        writeRole(role);
      }
    }
    out += ",\n\"channels\":";
    {
      List channels(out);
      for (const Channel &channel : plan.channels) {
        channels.next();
        writeChannel(channel);
      }
    }
    out += ",\n\"runs\":";
    {
      List all(out);
      for (const std::vector<Record> *run : {&runs.predicted, &runs.measured})
        if (!run->empty()) {
          all.next();
          writeRun(*run);
        }
    }
    out += "}\n";
    return std::move(out);
  }

private:
  void writeRole(const Role &role);
  void writeLane(const Role &role, const Lane &lane,
                 std::map<std::vector<uint16_t>, size_t> &touches);
  void writeChannel(const Channel &channel);
  void writeRun(const std::vector<Record> &run);
  void writeRank(const Role &role,
                 const std::vector<std::vector<Record>> &lanes,
                 const std::vector<MemoryPoint> &memory);

  const Plan &plan;
  const Runs &runs;
  std::string out;
};

void PageData::writeRole(const Role &role) {
  std::string name = role.name;
  if (std::string kind = kindAmongSeveral(plan, role); !kind.empty())
    name += " (" + kind + ")";
  out +=
      fmt::format("\n{{\"name\":{},\"first\":{},\"replicas\":{},\"arena\":{},"
                  "\"capacity\":{},\"pools\":",
                  quoted(name), role.firstRank, role.replicas, role.arenaBytes,
                  role.capacity);
  {
    List pools(out);
    for (const Pool &pool : role.pools) {
      pools.next() += fmt::format("[{},{},{},", quoted(pool.name),
                                  pool.slotBytes, pool.count);
      {
        List slots(out);
        for (uint16_t slot : pool.slotOf)
          slots.add(slot);
      }
      out += ']';
    }
  }
  out += ",\"lanes\":";
  std::map<std::vector<uint16_t>, size_t> touches;
  {
    List lanes(out);
    for (const Lane &lane : role.lanes) {
      lanes.next();
      writeLane(role, lane, touches);
    }
  }
  std::vector<const std::vector<uint16_t> *> ordered(touches.size());
  for (const auto &[pools, index] : touches)
    ordered[index] = &pools;
  out += ",\"touches\":";
  {
    List lists(out);
    for (const std::vector<uint16_t> *pools : ordered) {
      lists.next();
      List list(out);
      for (uint16_t pool : *pools)
        list.add(pool);
    }
  }
  out += '}';
}

void PageData::writeLane(const Role &role, const Lane &lane,
                         std::map<std::vector<uint16_t>, size_t> &touches) {
  std::string names, styles, micro, targets, touch, waits;
  {
    List microList(micro), targetList(targets), touchList(touch),
        waitList(waits);
    for (const Instr &instr : lane.instrs) {
      if (!names.empty())
        names += '\n';
      names += actionText(plan, role, instr);
      styles += styleOf(role, lane, instr);
      microList.add(instr.microBatch);
      bool sends = instr.kind == InstrKind::Send;
      bool isTransfer = sends || instr.kind == InstrKind::Recv;
      targetList.add(isTransfer ? 2 * instr.target + sends : -1);
      auto pools = touches.emplace(touchedPools(role, instr), touches.size());
      touchList.add(static_cast<int64_t>(pools.first->second));
      waitList.add(instr.waitEnd - instr.waitBegin);
      for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w) {
        waitList.add(lane.waits[w].lane);
        waitList.add(lane.waits[w].count);
      }
    }
  }
  out += fmt::format("\n{{\"name\":{},\"kind\":{},\"names\":{},\"style\":{},",
                     quoted(lane.name), quoted(nameOf(lane.kind)),
                     quoted(names), quoted(styles));
  out += "\"mb\":" + micro + ",\"target\":" + targets + ",\"touch\":" + touch +
         ",\"waits\":" + waits + "}";
}

void PageData::writeChannel(const Channel &channel) {
  out += fmt::format("\n[{},{},", quoted(channel.name), channel.bytes);
  {
    List pairs(out);
    const Role &source = plan.roles[channel.srcRole];
    for (int32_t i = 0; i < source.replicas; ++i)
      for (const Piece &piece : transferPieces(plan, channel, true, i)) {
        pairs.add(source.firstRank + i);
        pairs.add(piece.peer);
      }
  }
  out += ']';
}

void PageData::writeRank(const Role &role,
                         const std::vector<std::vector<Record>> &lanes,
                         const std::vector<MemoryPoint> &memory) {
  Nanos busy = 0;
  out += "{\"lanes\":";
  std::string missing;
  {
    List all(out);
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      all.next();
      List times(out);
      Nanos last = 0;
      for (const Record &record : lanes[lane]) {
        times.add(record.begin - last);
        times.add(record.end - record.begin);
        last = record.end;
        if (role.lanes[lane].kind == LaneKind::Compute)
          busy += record.end - record.begin;
      }
      if (lanes[lane].size() == role.lanes[lane].instrs.size())
        continue;
      missing += fmt::format("{}\"{}\":", missing.empty() ? "" : ",", lane);
      List present(missing);
      for (const Record &record : lanes[lane])
        present.add(record.instr);
    }
  }
  out +=
      fmt::format(",\"at\":{{{}}},\"busy\":{},\"peak\":{},\"memory\":", missing,
                  busy, peakOf(memory));
  {
    List points(out);
    Nanos last = 0;
    for (const MemoryPoint &point : memory) {
      points.add(point.time - last);
      points.add(point.bytes);
      last = point.time;
    }
  }
  out += '}';
}

void PageData::writeRun(const std::vector<Record> &run) {
  out += fmt::format("\n{{\"name\":\"{}\",\"heading\":{},\"end\":{},\"ranks\":",
                     &run == &runs.predicted ? "predicted" : "measured",
                     quoted(runHeading(plan, runs, run)), stepTime(run));
  std::vector<std::vector<MemoryPoint>> memory = memoryOverTime(plan, run);
  // By rank and lane, in the order of instructions.
  std::vector<std::vector<std::vector<Record>>> sorted;
  for (const Role &role : plan.roles)
    sorted.resize(sorted.size() + role.replicas,
                  std::vector<std::vector<Record>>(role.lanes.size()));
  for (const Record &record : run)
    sorted[record.rank][record.lane].push_back(record);
  {
    List ranks(out);
    std::map<std::string, int32_t> known;
    for (int32_t rank = 0; rank < plan.numRanks(); ++rank) {
      const Role &role = plan.roles[plan.roleOf(rank)];
      for (std::vector<Record> &lane : sorted[rank])
        std::sort(
            lane.begin(), lane.end(),
            [](const Record &a, const Record &b) { return a.instr < b.instr; });
      if (rank == role.firstRank)
        known.clear(); // equal times of other roles mean other things
      ranks.next();
      size_t begin = out.size();
      writeRank(role, sorted[rank], memory[rank]);
      auto [same, isNew] = known.emplace(out.substr(begin), rank);
      if (isNew)
        continue;
      out.resize(begin);
      out += std::to_string(same->second);
    }
  }
  out += '}';
}

} // namespace

std::string pageData(const Plan &plan, const Runs &runs) {
  return PageData(plan, runs).write();
}

} // namespace takt::rt
