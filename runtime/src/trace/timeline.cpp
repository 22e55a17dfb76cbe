//===- timeline.cpp - runs as a picture -------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Layout, from the top: title, legend, then for each run a heading, a row a
// rank and an axis. A row is a bar of compute boxes above two thin bars of what
// comes in (loads, receives) and what goes out (sends, reductions), and below
// them the curve of the memory in use, on one scale for all ranks.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/trace/timeline.h"

#include "timeline.h"

#include "takt-rt/core/summary.h"
#include "takt-rt/core/units.h"
#include "takt-rt/trace/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace takt::rt {

namespace {

/// Heights and widths in pixels.
struct Geometry {
  double left = 150;   ///< names of the ranks
  double width = 1100; ///< of the time axis
  double right = 90;   ///< busy shares
  double compute = 20; ///< bar of compute boxes
  double thin = 5;     ///< bar of transfers
  double memory = 12;  ///< curve of the memory in use
  double gap = 7;      ///< between rows
  double barsHeight() const { return compute + 2 * thin + 2; }
  double rowHeight() const { return barsHeight() + memory + gap; }
};

bool comesIn(const Instr &instr) {
  return instr.kind == InstrKind::Load || instr.kind == InstrKind::Recv;
}

class Picture {
public:
  Picture(std::ostream &out, const Plan &plan, const Runs &runs);
  void write();

private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args &&...args) {
    fmt::format_to(std::back_inserter(buffer), format,
                   std::forward<Args>(args)...);
    if (buffer.size() > (1 << 16))
      flush();
  }
  void flush() {
    out.write(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    buffer.clear();
  }
  double x(Nanos time) const {
    return geometry.left + geometry.width * static_cast<double>(time) /
                               static_cast<double>(span);
  }
  double panelHeight() const {
    return 28 + static_cast<double>(shown.size()) * geometry.rowHeight() + 30;
  }

  void chooseRows();
  void chooseWidth();
  void writeLegend(double y);
  void writePanel(const std::vector<Record> &run, const std::string &heading,
                  double y);
  void writeRow(int32_t rank, const std::vector<const Record *> &records,
                const std::vector<MemoryPoint> &memory, Nanos total, double y);
  void writeBox(const Record &record, double rowY);
  void writeAxis(double top, double bottom);
  void writeMemory(const std::vector<MemoryPoint> &curve, Nanos total,
                   double bottom);

  std::ostream &out;
  const Plan &plan;
  const Runs &runs;
  Geometry geometry;
  std::vector<std::vector<MemoryPoint>> predictedMemory, measuredMemory;
  Bytes mostMemory = 1;  ///< of any rank in any run
  bool hasTitles = true; ///< few enough boxes to say what each is
  Nanos span = 1;
  std::vector<int32_t> shown; ///< ranks with a row, ascending
  fmt::memory_buffer buffer;
};

Picture::Picture(std::ostream &out, const Plan &plan, const Runs &runs)
    : out(out), plan(plan), runs(runs) {
  checkRecords(plan, runs.predicted);
  checkRecords(plan, runs.measured);
  span = std::max<Nanos>(
      1, std::max(stepTime(runs.predicted), stepTime(runs.measured)));
  predictedMemory = memoryOverTime(plan, runs.predicted);
  measuredMemory = memoryOverTime(plan, runs.measured);
  for (const auto *memory : {&predictedMemory, &measuredMemory})
    for (const std::vector<MemoryPoint> &curve : *memory)
      mostMemory = std::max(mostMemory, peakOf(curve));
  constexpr size_t kMostTitles = 20'000;
  hasTitles = runs.predicted.size() + runs.measured.size() <= kMostTitles;
  chooseRows();
  chooseWidth();
}

void Picture::chooseRows() {
  constexpr int32_t kMostRows = 64;
  bool all = plan.numRanks() <= kMostRows;
  for (const Role &role : plan.roles)
    for (int32_t i = 0; i < (all ? role.replicas : 1); ++i)
      shown.push_back(role.firstRank + i);
}

/// Room for the number in most boxes of the busiest lane, within reason.
void Picture::chooseWidth() {
  size_t most = 0;
  for (const Role &role : plan.roles)
    for (const Lane &lane : role.lanes)
      if (lane.kind == LaneKind::Compute)
        most = std::max(most, lane.instrs.size());
  geometry.width = std::clamp(22.0 * static_cast<double>(most), 1000.0, 2400.0);
  if (shown.size() > 32) {
    geometry.compute = 14;
    geometry.thin = 3;
    geometry.memory = 8;
    geometry.gap = 4;
  }
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

void Picture::writeBox(const Record &record, double rowY) {
  const Role &role = plan.roles[plan.roleOf(record.rank)];
  const Lane &lane = role.lanes[record.lane];
  const Instr &instr = lane.instrs[record.instr];
  bool isCall = instr.kind == InstrKind::Call;
  double left = x(record.begin), width = x(record.end) - left;
  // A box of no length would only be seen as a hairline that means nothing.
  if (record.end == record.begin)
    return;
  double y = rowY, height = geometry.compute;
  if (!isCall) {
    y += geometry.compute + 1 + (comesIn(instr) ? 0 : geometry.thin + 1);
    height = geometry.thin;
  }
  const char *style = isCall ? classOf(role.procedures[instr.target].phase)
                             : classOf(lane.kind);
  put(R"(<rect class="{} {}" x="{:.2f}" y="{:.1f}" width="{:.2f}" )"
      R"(height="{:.1f}")",
      isCall ? "b" : "t", style, left, y, width, height);
  if (hasTitles)
    put("><title>{}, rank {}: {} from {}</title></rect>",
        xmlEscaped(actionText(plan, role, instr)), record.rank,
        formatNanos(record.end - record.begin), formatNanos(record.begin));
  else
    put("/>");
  if (!isCall || instr.microBatch < 0)
    return;
  std::string number = std::to_string(instr.microBatch);
  if (width >= 6.5 * static_cast<double>(number.size()) + 3)
    put(R"(<text class="n" x="{:.2f}" y="{:.1f}">{}</text>)", left + width / 2,
        y + height / 2 + 3.5, number);
  put("\n");
}

/// The memory in use as an area, at most one step half a pixel.
void Picture::writeMemory(const std::vector<MemoryPoint> &curve, Nanos total,
                          double bottom) {
  double up = geometry.memory / static_cast<double>(mostMemory);
  put(R"(<path class="mem" d="M{:.1f} {:.1f})", geometry.left, bottom);
  double last = -1;
  for (size_t i = 0; i < curve.size();) {
    double at = x(curve[i].time);
    Bytes most = 0;
    for (; i < curve.size() && x(curve[i].time) < at + 0.5; ++i)
      most = std::max(most, curve[i].bytes);
    double height = static_cast<double>(most) * up;
    if (std::abs(height - last) < 0.05)
      continue;
    put("H{:.1f}V{:.1f}", at, bottom - height);
    last = height;
  }
  put(R"(H{:.1f}V{:.1f}Z"><title>memory in use, at most {}</title></path>)",
      x(total), bottom, formatBytes(peakOf(curve)));
  put("\n");
}

void Picture::writeRow(int32_t rank, const std::vector<const Record *> &records,
                       const std::vector<MemoryPoint> &memory, Nanos total,
                       double y) {
  const Role &role = plan.roles[plan.roleOf(rank)];
  bool one = static_cast<int32_t>(shown.size()) == plan.numRanks();
  std::string name = fmt::format("rank {}", rank);
  if (!one && role.replicas > 1)
    name = fmt::format("ranks {}-{}", rank, rank + role.replicas - 1);
  double textY = y + geometry.compute / 2 + 4;
  put(R"(<text x="16" y="{:.1f}">{}</text>)", textY, name);
  put(R"(<text class="soft" x="{}" y="{:.1f}" text-anchor="end">{}</text>)",
      geometry.left - 10, textY, xmlEscaped(role.name));
  put("\n");
  put(R"(<rect class="bar" x="{}" y="{:.1f}" width="{}" height="{}"/>)",
      geometry.left, y, geometry.width, geometry.compute);
  put("\n<g clip-path=\"url(#chart)\">\n");
  Nanos busy = 0;
  for (const Record *record : records) {
    writeBox(*record, y);
    if (role.lanes[record->lane].kind == LaneKind::Compute)
      busy += record->end - record->begin;
  }
  double bottom = y + geometry.barsHeight() + geometry.memory;
  writeMemory(memory, total, bottom);
  put("</g>\n");
  double right = geometry.left + geometry.width + 10;
  if (total > 0)
    put(R"(<text class="soft" x="{}" y="{:.1f}">{} busy</text>)", right, textY,
        formatShare(static_cast<double>(busy) / static_cast<double>(total)));
  if (std::string kind = kindAmongSeveral(plan, role); !kind.empty())
    put(R"(<text class="soft" x="{}" y="{:.1f}" text-anchor="end">{}</text>)",
        geometry.left - 10, bottom - 1, xmlEscaped(kind));
  if (geometry.memory > 10)
    put(R"(<text class="soft" x="{}" y="{:.1f}">{}</text>)", right, bottom - 1,
        formatBytes(peakOf(memory)));
  put("\n");
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

/// Unit of the axis: milliseconds unless the step is far shorter.
struct AxisUnit {
  double nanos;
  const char *name;
};

AxisUnit axisUnit(Nanos span) {
  if (span >= 100'000)
    return {1e6, "ms"};
  if (span >= 1'000)
    return {1e3, "us"};
  return {1, "ns"};
}

void Picture::writeAxis(double top, double bottom) {
  AxisUnit unit = axisUnit(span);
  double range = static_cast<double>(span) / unit.nanos;
  // The smallest of 1, 2, 5 x 10^k that gives at most ten ticks.
  double step = std::pow(10, std::floor(std::log10(range / 10)));
  for (double factor : {1.0, 2.0, 5.0, 10.0})
    if (range / (step * factor) <= 10) {
      step *= factor;
      break;
    }
  put(R"(<g class="axis">)");
  for (int i = 0; i * step <= range * 1.0001; ++i) {
    double at = geometry.left + geometry.width * i * step / range;
    put(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" )"
        R"(y2="{2:.1f}"/><text class="tick" x="{0:.1f}" y="{3:.1f}">)"
        R"({4:.6g}{5}</text>)",
        at, top, bottom, bottom + 13, i * step,
        i == 0 ? fmt::format(" {}", unit.name) : "");
  }
  put("</g>\n");
}

void Picture::writePanel(const std::vector<Record> &run,
                         const std::string &heading, double y) {
  Nanos total = stepTime(run);
  put(R"(<text class="head" x="16" y="{:.1f}">{}</text>)", y + 14,
      xmlEscaped(heading));
  put("\n");
  double top = y + 28;
  double bottom =
      top + static_cast<double>(shown.size()) * geometry.rowHeight();
  std::vector<std::vector<const Record *>> byRank(plan.numRanks());
  for (const Record &record : run)
    byRank[record.rank].push_back(&record);
  const std::vector<std::vector<MemoryPoint>> &memory =
      &run == &runs.predicted ? predictedMemory : measuredMemory;
  writeAxis(top, bottom);
  for (int32_t rank : shown) {
    writeRow(rank, byRank[rank], memory[rank], total, top);
    top += geometry.rowHeight();
  }
  put(R"~(<g clip-path="url(#chart)"><line class="end" x1="{0:.2f}" )~"
      R"(x2="{0:.2f}" y1="{1:.1f}" y2="{2:.1f}"/></g>)",
      x(total) - 0.5, y + 24, bottom);
  put("\n");
}

void Picture::writeLegend(double y) {
  // I and W stand for plans that split the backward pass, B for the others.
  bool has[5] = {};
  bool hasSum = !plan.groups.empty();
  for (const Role &role : plan.roles) {
    for (const Procedure &procedure : role.procedures)
      has[static_cast<size_t>(procedure.phase)] = true;
    for (const Lane &lane : role.lanes)
      hasSum |= lane.kind == LaneKind::Tie;
  }
  struct Entry {
    const char *style, *text;
    bool show;
  };
  const Entry entries[] = {
      {"F", "forward", has[size_t(Phase::Forward)]},
      {"B", "backward", has[size_t(Phase::Backward)]},
      {"I", "input gradient", has[size_t(Phase::InputGrad)]},
      {"W", "weight gradient", has[size_t(Phase::WeightGrad)]},
      {"U", "update", has[size_t(Phase::Update)]},
      {"act", "activation transfer", !plan.channels.empty()},
      {"grad", "gradient transfer", !plan.channels.empty()},
      {"sum", "all-reduce, tied sums", hasSum},
      {"load", "load", !runs.measured.empty()},
      {"mem", "memory in use", true}};
  double at = 16;
  for (const Entry &entry : entries) {
    if (!entry.show)
      continue;
    put(R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="12" height="12" )"
        R"(rx="2"/><text x="{:.1f}" y="{:.1f}">{}</text>)",
        entry.style, at, y, at + 17, y + 10, entry.text);
    at += 36 +
          5.4 * static_cast<double>(std::char_traits<char>::length(entry.text));
  }
  put("\n");
}

void Picture::write() {
  bool hasPredicted = !runs.predicted.empty();
  bool hasMeasured = !runs.measured.empty();
  constexpr double kTop = 84;
  double height = kTop + panelHeight() * (hasPredicted + hasMeasured);
  double width = geometry.left + geometry.width + geometry.right;
  put(R"(<svg xmlns="http://www.w3.org/2000/svg" class="takt" width="{0}" )"
      R"(height="{1:.0f}" viewBox="0 0 {0} {1:.0f}">)",
      width, height);
  put("\n<style>{}</style>\n", pictureStyle());
  put(R"(<defs><clipPath id="chart"><rect x="{}" y="0" width="{}" )"
      R"(height="{:.0f}"/></clipPath></defs>)",
      geometry.left, geometry.width, height);
  put(R"(<rect width="{}" height="{:.0f}" fill="#fff"/>)", width, height);
  put("\n");
  put(R"(<text class="title" x="16" y="28">{}</text>)",
      xmlEscaped(pictureTitle(plan)));
  std::string shape = pictureShape(plan);
  if (static_cast<int32_t>(shown.size()) < plan.numRanks())
    shape += "; one rank of each role is shown";
  put(R"(<text class="soft" x="16" y="46">{}</text>)", shape);
  put("\n");
  writeLegend(58);
  double y = kTop;
  if (hasPredicted) {
    writePanel(runs.predicted, runHeading(plan, runs, runs.predicted), y);
    y += panelHeight();
  }
  if (hasMeasured)
    writePanel(runs.measured, runHeading(plan, runs, runs.measured), y);
  put("</svg>\n");
  flush();
}

} // namespace

void writeTimelineSvg(std::ostream &out, const Plan &plan, const Runs &runs) {
  Picture(out, plan, runs).write();
}

} // namespace takt::rt
