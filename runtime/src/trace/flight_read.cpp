//===- flight_read.cpp - reading recordings -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A recording is foreign input: its process may have been killed, its disk
// full, its machine another one.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/trace/flight.h"

#include "flight_file.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace fs = std::filesystem;

namespace takt::rt {

using namespace flight;

static_assert(kSteps == kFlightSteps, "one number in two places");

[[noreturn]] static void refuse(const std::string &file,
                                const std::string &why) {
  throw Error(fmt::format("'{}' is no recording: {}", file, why));
}

/// Text up to its end, in one line.
static std::string textOf(const char *text, size_t room) {
  std::string out(text, strnlen(text, room));
  for (char &c : out)
    if (static_cast<unsigned char>(c) < ' ' || c == 127)
      c = ' ';
  return out;
}

/// Values of the header without its atomics.
template <typename T>
static T load(const std::atomic<T> &value) {
  return value.load(std::memory_order_relaxed);
}

static void checkHeader(const Header &header, uint64_t bytes,
                        const std::string &name) {
  if (header.version != kVersion)
    refuse(name, fmt::format("it has the version {}, this reader knows {}",
                             header.version, kVersion));
  if (header.headerBytes != kHeaderBytes || header.ranks < 1 ||
      header.rank < 0 || header.rank >= header.ranks)
    refuse(name, fmt::format("its header names rank {} of {}", header.rank,
                             header.ranks));
  if (header.lanes > kMostLanes || header.events == 0 ||
      header.events > kMostEvents ||
      (header.events & (header.events - 1)) != 0 ||
      fileBytes(header.lanes, header.events) != bytes)
    refuse(name, fmt::format("{} lanes and {} events do not take {} bytes",
                             header.lanes, header.events, bytes));
  if (load(header.end) > uint32_t(FlightEnd::Failed) ||
      load(header.stepState) > kEnded || load(header.step) < -1)
    refuse(name, "its header is damaged");
}

/// Lanes of a step whose state tells whether the table is of it.
static void readLanes(const Header &header, const char *at, Flight &flight) {
  flight.step = load(header.step);
  uint32_t state = load(header.stepState);
  flight.inStep = state == kBeginning || state == kUnderWay;
  flight.lanes.resize(header.lanes);
  if (state != kUnderWay && state != kEnded)
    return;
  for (uint32_t lane = 0; lane < header.lanes; ++lane) {
    uint32_t words[2];
    std::memcpy(words, at + lane * sizeof(LaneWords), sizeof(words));
    flight.lanes[lane] = {words[0], words[1] != 0};
  }
}

static void readEvents(const Header &header, const char *at, Flight &flight) {
  uint64_t written = load(header.written);
  uint64_t kept = std::min<uint64_t>(written, header.events);
  flight.lost = written - kept;
  for (uint64_t number = written - kept; number < written; ++number) {
    Event event;
    std::memcpy(&event, at + (number & (header.events - 1)) * sizeof(Event),
                sizeof(event));
    if (event.check != checkOf(number, event) ||
        event.kind > uint16_t(FlightEventKind::StepEnded) ||
        event.lane >= std::max(header.lanes, 1u)) {
      ++flight.damaged;
      continue;
    }
    flight.events.push_back({event.time, event.step, event.instr, event.lane,
                             FlightEventKind(event.kind)});
  }
}

Flight parseFlight(const std::string &content, const std::string &name) {
  if (content.size() < kHeaderBytes)
    refuse(name, fmt::format("it has {} bytes", content.size()));
  if (std::memcmp(content.data(), kMagic, sizeof(kMagic)) != 0)
    refuse(name, "it does not begin as one, or was never begun");
  alignas(Header) char bytes[sizeof(Header)];
  std::memcpy(bytes, content.data(), sizeof(Header));
  const Header &header = *reinterpret_cast<const Header *>(bytes);
  checkHeader(header, content.size(), name);

  Flight flight;
  flight.file = name;
  flight.info.rank = header.rank;
  flight.info.ranks = header.ranks;
  flight.info.planHash = header.planHash;
  flight.info.pid = header.pid;
  flight.info.started = header.started;
  flight.info.deadline = header.deadline;
  flight.info.predicted = header.predicted;
  flight.info.run = textOf(header.run, sizeof(header.run));
  flight.info.model = textOf(header.model, sizeof(header.model));
  flight.info.host = textOf(header.host, sizeof(header.host));
  flight.info.plan = textOf(header.plan, sizeof(header.plan));
  flight.end = FlightEnd(load(header.end));
  flight.exitCode = header.exitCode;
  flight.message = textOf(header.message, sizeof(header.message));
  readLanes(header, content.data() + lanesAt(), flight);
  readEvents(header, content.data() + eventsAt(header.lanes), flight);
  uint64_t ended = load(header.stepsEnded);
  for (uint64_t i = ended - std::min<uint64_t>(ended, kSteps); i < ended; ++i)
    flight.busy.push_back(std::max<int64_t>(0, load(header.busy[i % kSteps])));
  return flight;
}

Flight readFlight(const std::string &path) {
  return parseFlight(readFile(path), path);
}

FlightFolder readFlights(const std::string &folder) {
  std::error_code error;
  fs::directory_iterator files(folder, error);
  if (error)
    throw Error(
        fmt::format("cannot read folder '{}': {}", folder, error.message()));
  std::vector<std::string> paths;
  for (const fs::directory_entry &file : files) {
    std::string name = file.path().filename().string();
    if (name.rfind("flight.rank", 0) == 0 && file.path().extension() == ".bin")
      paths.push_back(file.path().string());
  }
  std::sort(paths.begin(), paths.end());
  FlightFolder found;
  for (const std::string &path : paths) {
    try {
      Flight flight = readFlight(path);
      if (fs::path(path).filename() != flightName(flight.info.rank))
        throw Error(fmt::format("'{}' holds a recording of rank {}", path,
                                flight.info.rank));
      found.flights.push_back(std::move(flight));
    } catch (const Error &fault) {
      found.faults.push_back(fault.what());
    }
  }
  std::sort(found.flights.begin(), found.flights.end(),
            [](const Flight &a, const Flight &b) {
              return a.info.rank < b.info.rank;
            });
  return found;
}

} // namespace takt::rt
