//===- read_trace.cpp - a measured run out of a trace -----------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reads only what `writeChromeTrace` writes, and holds it against the plan:
// events of another plan's run must not pass for this one's. Arrows and
// counters are dropped while parsing, as they are most of a trace.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/trace/trace.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace takt::rt {

namespace {

using nlohmann::json;

/// Longest step that is believed, in microseconds.
constexpr double kLongest = 1e12;

class TraceReader {
public:
  TraceReader(const Plan &plan, const std::string &file)
      : plan(plan), file(file) {}
  std::vector<Record> read(const std::string &content);

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(fmt::format("{}: {}", file, what));
  }
  json parse(const std::string &content) const;
  void findProcesses(const json &events);
  void addEvent(const json &event, size_t index);
  /// Of an event, or nothing.
  static const json *member(const json &object, const char *key) {
    auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
  }
  int64_t integer(const json &event, const char *key, size_t index) const;
  Nanos nanos(const json &event, const char *key, size_t index) const;
  void nameInstrs();

  struct Event {
    Record record;
    std::string name;
    size_t index = 0; ///< in the file
  };

  const Plan &plan;
  const std::string &file;
  std::map<int64_t, int32_t> rankOf; ///< by process
  std::vector<Event> events;
};

/// True for events that say something about a run: processes and instructions.
bool isOfUse(const json &event) {
  if (!event.is_object())
    return true; // refused later, with its place
  auto kind = event.find("ph");
  return kind == event.end() || *kind == "X" || *kind == "M";
}

json TraceReader::parse(const std::string &content) const {
  auto keep = [](int depth, json::parse_event_t at, json &parsed) {
    return at != json::parse_event_t::object_end || depth != 2 ||
           isOfUse(parsed);
  };
  try {
    return json::parse(content, keep);
  } catch (const json::exception &fault) {
    std::string what = fault.what();
    if (size_t tag = what.find("] "); tag != std::string::npos)
      what.erase(0, tag + 2); // the library's name for the fault
    std::replace(what.begin(), what.end(), '\n', ' ');
    for (char &c : what)
      if (static_cast<unsigned char>(c) < 0x20 ||
          static_cast<unsigned char>(c) >= 0x7f)
        c = '?';
    fail("no JSON: " + what.substr(0, 200));
  }
}

/// The measured run is wanted; a trace of one run only has no other.
void TraceReader::findProcesses(const json &list) {
  std::map<int64_t, int32_t> predicted;
  for (size_t i = 0; i < list.size(); ++i) {
    const json &event = list[i];
    if (!event.is_object())
      fail(fmt::format("event {} is no object", i));
    const json *name = member(event, "name"), *args = member(event, "args");
    if (!name || *name != "process_name" || !args || !args->is_object())
      continue;
    const json *process = member(*args, "name");
    if (!process || !process->is_string())
      continue;
    const std::string &text = process->get_ref<const std::string &>();
    for (const char *run : {"measured rank ", "predicted rank "}) {
      std::string prefix = run;
      if (text.compare(0, prefix.size(), prefix) != 0)
        continue;
      int64_t rank = 0;
      size_t at = prefix.size();
      for (; at < text.size() && text[at] >= '0' && text[at] <= '9' &&
             rank < plan.numRanks();
           ++at)
        rank = 10 * rank + (text[at] - '0');
      if (at == prefix.size() || rank >= plan.numRanks())
        fail(fmt::format("event {} names a rank that the plan does not have",
                         i));
      auto &ranks = prefix[0] == 'm' ? rankOf : predicted;
      ranks[integer(event, "pid", i)] = static_cast<int32_t>(rank);
    }
  }
  if (rankOf.empty())
    rankOf = std::move(predicted);
  if (rankOf.empty())
    fail("no process is named 'measured rank N': not a trace of takt-run");
}

int64_t TraceReader::integer(const json &event, const char *key,
                             size_t index) const {
  const json *value = member(event, key);
  if (!value || !value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<uint64_t>() > 1u << 30) ||
      value->get<int64_t>() < 0)
    fail(fmt::format("event {}: '{}' is no small number", index, key));
  return value->get<int64_t>();
}

Nanos TraceReader::nanos(const json &event, const char *key,
                         size_t index) const {
  const json *value = member(event, key);
  double micros = value && value->is_number() ? value->get<double>() : -1;
  if (!(micros >= 0 && micros <= kLongest))
    fail(fmt::format("event {}: '{}' is no time in microseconds", index, key));
  return static_cast<Nanos>(std::llround(micros * 1000));
}

void TraceReader::addEvent(const json &event, size_t index) {
  const json *kind = member(event, "ph");
  if (!kind || *kind != "X")
    return;
  auto process = rankOf.find(integer(event, "pid", index));
  if (process == rankOf.end())
    return;
  const json *name = member(event, "name");
  if (!name || !name->is_string())
    fail(fmt::format("event {} has no name", index));
  Event added;
  added.index = index;
  added.name = name->get<std::string>();
  added.record.rank = process->second;
  int64_t lane = integer(event, "tid", index);
  const Role &role = plan.roles[plan.roleOf(process->second)];
  if (lane >= static_cast<int64_t>(role.lanes.size()))
    fail(fmt::format("event {}: rank {} has no lane {}", index, process->second,
                     lane));
  added.record.lane = static_cast<uint16_t>(lane);
  added.record.begin = nanos(event, "ts", index);
  added.record.end = added.record.begin + nanos(event, "dur", index);
  events.push_back(std::move(added));
}

/// The k-th event of a lane is its k-th instruction, and must be called so.
void TraceReader::nameInstrs() {
  std::stable_sort(events.begin(), events.end(),
                   [](const Event &a, const Event &b) {
                     const Record &x = a.record, &y = b.record;
                     return std::tie(x.rank, x.lane, x.begin, x.end) <
                            std::tie(y.rank, y.lane, y.begin, y.end);
                   });
  uint32_t next = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    Record &record = events[i].record;
    bool isFirst = i == 0 || events[i - 1].record.rank != record.rank ||
                   events[i - 1].record.lane != record.lane;
    next = isFirst ? 0 : next + 1;
    const Role &role = plan.roles[plan.roleOf(record.rank)];
    const Lane &lane = role.lanes[record.lane];
    std::string expected =
        next < lane.instrs.size()
            ? "PP:" + actionText(plan, role, lane.instrs[next])
            : "nothing more";
    if (events[i].name != expected)
      fail(fmt::format("event {} is not what the plan does: rank {}, lane "
                       "'{}', instruction {} is {}",
                       events[i].index, record.rank, lane.name, next,
                       expected));
    record.instr = next;
  }
}

std::vector<Record> TraceReader::read(const std::string &content) {
  json trace = parse(content);
  const json *list = trace.is_object() ? member(trace, "traceEvents") : nullptr;
  if (!list || !list->is_array())
    fail("no list 'traceEvents'");
  findProcesses(*list);
  for (size_t i = 0; i < list->size(); ++i)
    addEvent((*list)[i], i);
  if (events.empty())
    fail("no instructions in it");
  nameInstrs();
  std::vector<Record> records;
  for (const Event &event : events)
    records.push_back(event.record);
  std::stable_sort(
      records.begin(), records.end(),
      [](const Record &a, const Record &b) { return a.end < b.end; });
  return records;
}

} // namespace

std::vector<Record> readChromeTrace(const std::string &content,
                                    const std::string &name, const Plan &plan) {
  return TraceReader(plan, name).read(content);
}

} // namespace takt::rt
