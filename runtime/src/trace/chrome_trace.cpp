//===- chrome_trace.cpp - runs as a Chrome / Perfetto trace -----*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Names in a checked plan are UTF-8 without control characters, so only quotes
// and backslashes need escaping.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/trace/trace.h"

#include "takt-rt/core/in_flight.h"
#include "takt-rt/core/names.h"
#include "takt-rt/trace/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

namespace takt::rt {

namespace {

std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result;
}

/// Microseconds with all nanoseconds kept.
std::string micros(Nanos time) {
  return fmt::format("{}.{:03}", time / 1000, time % 1000);
}

Bytes bytesOf(const Role &role, const Instr &instr) {
  const Endpoint *end = nullptr;
  if (instr.kind == InstrKind::Send || instr.kind == InstrKind::Recv)
    end = findEndpoint(role.channels, instr.target);
  else if (instr.kind == InstrKind::AllReduce)
    end = findEndpoint(role.groups, instr.target);
  return end ? end->buffer.bytes : 0;
}

class TraceWriter {
public:
  TraceWriter(std::ostream &out, const Plan &plan) : out(out), plan(plan) {}
  void write(const Runs &runs);

private:
  template <typename... Args>
  void event(fmt::format_string<Args...> format, Args &&...args) {
    buffer.append(std::string_view(isFirst ? "\n" : ",\n"));
    isFirst = false;
    fmt::format_to(std::back_inserter(buffer), format,
                   std::forward<Args>(args)...);
    if (buffer.size() > (1 << 16))
      flush();
  }
  void flush() {
    out.write(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    buffer.clear();
  }
  const Role &roleOf(const Record &record) const {
    return plan.roles[plan.roleOf(record.rank)];
  }
  const Instr &instrOf(const Record &record) const {
    return roleOf(record).lanes[record.lane].instrs[record.instr];
  }
  int32_t pid(const Record &record) const { return firstPid + record.rank; }

  void writeRun(const std::vector<Record> &run, const char *name);
  void writeNames(const char *run);
  void writeInstr(const Record &record);
  void writeArrows(const std::vector<Record> &run);
  void writeCounters(const std::vector<Record> &run);

  std::ostream &out;
  const Plan &plan;
  fmt::memory_buffer buffer;
  bool isFirst = true;
  int32_t firstPid = 0;
  int64_t nextArrow = 1;
};

void TraceWriter::writeNames(const char *run) {
  for (const Role &role : plan.roles)
    for (int32_t i = 0; i < role.replicas; ++i) {
      int32_t rank = role.firstRank + i;
      int32_t process = firstPid + rank;
      event(R"({{"name":"process_name","ph":"M","pid":{},"tid":0,)"
            R"~("args":{{"name":"{} rank {} ({})"}}}})~",
            process, run, rank, escaped(role.name));
      // Both runs of a rank stand together.
      event(R"({{"name":"process_sort_index","ph":"M","pid":{},"tid":0,)"
            R"("args":{{"sort_index":{}}}}})",
            process, 2 * rank + (firstPid > 0));
      for (size_t lane = 0; lane < role.lanes.size(); ++lane) {
        event(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},)"
              R"("args":{{"name":"{}"}}}})",
              process, lane, escaped(role.lanes[lane].name));
        bool compute = role.lanes[lane].kind == LaneKind::Compute;
        event(R"({{"name":"thread_sort_index","ph":"M","pid":{},"tid":{},)"
              R"("args":{{"sort_index":{}}}}})",
              process, lane, compute ? 0 : lane + 1);
      }
    }
}

void TraceWriter::writeInstr(const Record &record) {
  const Role &role = roleOf(record);
  const Instr &instr = instrOf(record);
  std::string more;
  if (instr.kind == InstrKind::Call)
    more += fmt::format(R"(,"phase":"{}")",
                        nameOf(role.procedures[instr.target].phase));
  if (instr.microBatch >= 0)
    more += fmt::format(R"(,"micro_batch":{})", instr.microBatch);
  if (Bytes bytes = bytesOf(role, instr))
    more += fmt::format(R"(,"bytes":{})", bytes);
  event(R"({{"name":"PP:{}","cat":"{}","ph":"X","ts":{},"dur":{},)"
        R"("pid":{},"tid":{},"args":{{"kind":"{}"{}}}}})",
        escaped(actionText(plan, role, instr)),
        nameOf(role.lanes[record.lane].kind), micros(record.begin),
        micros(record.end - record.begin), pid(record), record.lane,
        nameOf(instr.kind), more);
}

/// An arrow starts where the send starts and ends inside its receive.
void TraceWriter::writeArrows(const std::vector<Record> &run) {
  using Key = std::tuple<uint16_t, int32_t, int32_t, int32_t>;
  std::map<Key, const Record *> sends;
  auto eachPiece = [&](const Record &record, auto &&use) {
    const Instr &instr = instrOf(record);
    for (const Piece &piece : transferPieces(
             plan, plan.channels[instr.target], instr.kind == InstrKind::Send,
             record.rank - roleOf(record).firstRank))
      use(piece.peer, instr);
  };
  for (const Record &record : run)
    if (instrOf(record).kind == InstrKind::Send)
      eachPiece(record, [&](int32_t peer, const Instr &instr) {
        sends[{instr.target, record.rank, peer, instr.microBatch}] = &record;
      });
  for (const Record &record : run)
    if (instrOf(record).kind == InstrKind::Recv)
      eachPiece(record, [&](int32_t peer, const Instr &instr) {
        auto send =
            sends.find({instr.target, peer, record.rank, instr.microBatch});
        if (send == sends.end())
          return;
        const Record &from = *send->second;
        Nanos arrival = std::max(from.begin, record.begin);
        event(R"({{"name":"transfer","cat":"transfer","ph":"s","id":{},)"
              R"("ts":{},"pid":{},"tid":{}}})",
              nextArrow, micros(from.begin), pid(from), from.lane);
        event(R"({{"name":"transfer","cat":"transfer","ph":"f","bp":"e",)"
              R"("id":{},"ts":{},"pid":{},"tid":{}}})",
              nextArrow++, micros(arrival), pid(record), record.lane);
      });
}

void TraceWriter::writeCounters(const std::vector<Record> &run) {
  std::vector<std::vector<std::vector<FlightEdge>>> edges;
  for (const Role &role : plan.roles)
    edges.push_back(flightEdges(role));
  std::map<std::pair<int32_t, Nanos>, int32_t> changes;
  for (const Record &record : run) {
    switch (edges[plan.roleOf(record.rank)][record.lane][record.instr]) {
    case FlightEdge::None:
      break;
    case FlightEdge::Begin:
      ++changes[{record.rank, record.begin}];
      break;
    case FlightEdge::End:
      --changes[{record.rank, record.end}];
      break;
    }
  }
  int32_t rank = -1, inFlight = 0;
  for (auto [at, change] : changes) {
    if (at.first != rank)
      inFlight = 0;
    rank = at.first;
    inFlight += change;
    event(R"({{"name":"in flight","ph":"C","ts":{},"pid":{},"tid":0,)"
          R"("args":{{"micro-batches":{}}}}})",
          micros(at.second), firstPid + rank, inFlight);
  }
  std::vector<std::vector<MemoryPoint>> memory = memoryOverTime(plan, run);
  for (rank = 0; rank < plan.numRanks(); ++rank)
    for (const MemoryPoint &point : memory[rank])
      event(R"({{"name":"memory","ph":"C","ts":{},"pid":{},"tid":0,)"
            R"("args":{{"bytes":{}}}}})",
            micros(point.time), firstPid + rank, point.bytes);
}

void TraceWriter::writeRun(const std::vector<Record> &run, const char *name) {
  checkRecords(plan, run);
  writeNames(name);
  for (const Record &record : run)
    writeInstr(record);
  writeArrows(run);
  writeCounters(run);
}

void TraceWriter::write(const Runs &runs) {
  out << R"({"displayTimeUnit":"ms","otherData":{)"
      << fmt::format(R"("model":"{}","cluster":"{}","schedule":"{}"}},)",
                     escaped(plan.model), escaped(plan.cluster),
                     escaped(plan.schedule))
      << R"("traceEvents":[)";
  if (!runs.predicted.empty()) {
    writeRun(runs.predicted, "predicted");
    firstPid = plan.numRanks();
  }
  if (!runs.measured.empty())
    writeRun(runs.measured, "measured");
  flush();
  out << "\n]}\n";
}

} // namespace

void writeChromeTrace(std::ostream &out, const Plan &plan, const Runs &runs) {
  TraceWriter(out, plan).write(runs);
}

} // namespace takt::rt
