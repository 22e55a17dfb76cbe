//===- flight_recorder.cpp - writing a recording --------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Stores go in an order that leaves the file readable after each of them: an
// event before the number of events, a step's state before its lanes.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/trace/flight.h"

#include "flight_file.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <new>
#include <set>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace takt::rt {

using namespace flight;

std::string flightName(int32_t rank) {
  return fmt::format("flight.rank{}.bin", rank);
}

int32_t rankOfFlight(const std::string &name) {
  constexpr std::string_view kBefore = "flight.rank";
  int32_t rank = -1;
  if (name.rfind(kBefore, 0) == 0)
    std::from_chars(name.data() + kBefore.size(), name.data() + name.size(),
                    rank);
  return rank >= 0 && name == flightName(rank) ? rank : -1;
}

class FlightRecorder::Impl {
public:
  Impl(const std::string &folder, const FlightInfo &info, const Role &role,
       uint32_t events);
  ~Impl() { munmap(start, bytes); }

  void record(FlightEventKind kind, int lane, uint32_t instr);

  /// What the writing thread needs and no reader.
  struct CallTime {
    bool isCompute = false;
    Nanos begun = 0;
  };

  std::byte *start = nullptr;
  size_t bytes;
  Header *header = nullptr;
  LaneWords *lanes = nullptr;
  Event *ring = nullptr;
  uint32_t mask;
  uint64_t number = 0; ///< events so far
  uint32_t step = 0;
  Nanos now = 0; ///< of the last event
  Nanos busy = 0;
  std::vector<CallTime> calls;
  std::chrono::steady_clock::time_point zero = std::chrono::steady_clock::now();
};

static void copyText(char *to, size_t room, const std::string &text) {
  size_t n = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), n);
  std::memset(to + n, 0, room - n);
}

[[noreturn]] static void fail(const std::string &what, const std::string &path,
                              int reason) {
  throw Error(
      fmt::format("cannot {} '{}': {}", what, path, std::strerror(reason)));
}

/// A recording in the folder moves to the previous ones, in the place of what
/// stands there: they are those of one run.
static void setAside(const fs::path &path, const fs::path &previous) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    fs::remove(previous / path.filename(), error);
    return;
  }
  fs::create_directories(previous, error);
  if (!error)
    fs::rename(path, previous / path.filename(), error);
  if (error)
    throw Error(fmt::format("cannot move '{}' to '{}': {}", path.string(),
                            previous.string(), error.message()));
}

/// Ranks of which there are recordings in a folder.
static std::vector<int32_t> recordedRanks(const fs::path &folder) {
  std::vector<int32_t> ranks;
  std::error_code error;
  fs::directory_iterator end;
  for (fs::directory_iterator file(folder, error); !error && file != end;
       file.increment(error))
    if (int32_t rank = rankOfFlight(file->path().filename().string());
        rank >= 0)
      ranks.push_back(rank);
  return ranks;
}

/// What the last run left is kept once: it may say why that one ended. Ranks
/// that this run lacks are shared out among those it has, so that no two
/// processes move one file.
static std::string makeRoom(const std::string &folder, const FlightInfo &info) {
  fs::path previous = fs::path(folder) / "previous";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(
        fmt::format("cannot make folder '{}': {}", folder, error.message()));
  std::set<int32_t> found{info.rank};
  for (const fs::path &at : {fs::path(folder), previous})
    for (int32_t rank : recordedRanks(at))
      if (rank >= info.ranks && rank % info.ranks == info.rank)
        found.insert(rank);
  for (int32_t rank : found)
    setAside(fs::path(folder) / flightName(rank), previous);
  return (fs::path(folder) / flightName(info.rank)).string();
}

FlightRecorder::Impl::Impl(const std::string &folder, const FlightInfo &info,
                           const Role &role, uint32_t events)
    : bytes(fileBytes(uint32_t(role.lanes.size()), events)), mask(events - 1),
      calls(role.lanes.size()) {
  if (events == 0 || (events & mask) != 0 || events > kMostEvents)
    throw Error(fmt::format("{} events are no power of two up to {}", events,
                            kMostEvents),
                ExitCode::Internal);
  std::string path = makeRoom(folder, info);
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0)
    fail("create", path, errno);
  // A page that finds no room later would end the process.
  int reason = posix_fallocate(file, 0, off_t(bytes));
  void *memory = MAP_FAILED;
  if (reason == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    reason = memory == MAP_FAILED ? errno : 0;
  }
  close(file);
  if (reason != 0) {
    unlink(path.c_str());
    fail("write", path, reason);
  }
  start = static_cast<std::byte *>(memory);
  header = new (start) Header();
  lanes = new (start + lanesAt()) LaneWords[calls.size()]();
  ring = new (start + eventsAt(uint32_t(calls.size()))) Event[events]();
  for (size_t lane = 0; lane < calls.size(); ++lane)
    calls[lane].isCompute = role.lanes[lane].kind == LaneKind::Compute;
  header->version = kVersion;
  header->headerBytes = kHeaderBytes;
  header->rank = info.rank;
  header->ranks = info.ranks;
  header->lanes = uint32_t(calls.size());
  header->events = events;
  header->planHash = info.planHash;
  header->pid = info.pid;
  header->started = info.started;
  header->deadline = info.deadline;
  header->predicted = info.predicted;
  copyText(header->run, sizeof(header->run), info.run);
  copyText(header->model, sizeof(header->model), info.model);
  copyText(header->host, sizeof(header->host), info.host);
  copyText(header->plan, sizeof(header->plan), info.plan);
  header->step.store(-1);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header->magic, kMagic, sizeof(kMagic));
}

inline void FlightRecorder::Impl::record(FlightEventKind kind, int lane,
                                         uint32_t instr) {
  now = (std::chrono::steady_clock::now() - zero) / std::chrono::nanoseconds(1);
  Event &event = ring[number & mask];
  event.time = now;
  event.step = step;
  event.instr = instr;
  event.lane = uint16_t(lane);
  event.kind = uint16_t(kind);
  event.check = checkOf(number, event);
  header->written.store(++number, std::memory_order_release);
}

FlightRecorder::FlightRecorder(const std::string &folder,
                               const FlightInfo &info, const Role &role,
                               uint32_t events)
    : impl(std::make_unique<Impl>(folder, info, role, events)) {}

FlightRecorder::~FlightRecorder() = default;

void FlightRecorder::stepBegan(int64_t step) {
  Header &header = *impl->header;
  header.stepState.store(kBeginning, std::memory_order_release);
  header.step.store(step, std::memory_order_release);
  for (size_t lane = 0; lane < impl->calls.size(); ++lane) {
    impl->lanes[lane].running.store(0, std::memory_order_relaxed);
    impl->lanes[lane].completed.store(0, std::memory_order_relaxed);
  }
  header.stepState.store(kUnderWay, std::memory_order_release);
  impl->step = uint32_t(step);
  impl->busy = 0;
  impl->record(FlightEventKind::StepBegan, 0, 0);
}

void FlightRecorder::began(int lane, uint32_t instr) {
  impl->record(FlightEventKind::Began, lane, instr);
  impl->lanes[lane].running.store(1, std::memory_order_release);
  impl->calls[lane].begun = impl->now;
}

void FlightRecorder::completed(int lane, uint32_t instr) {
  impl->record(FlightEventKind::Completed, lane, instr);
  // Never more completed than were: running goes first.
  impl->lanes[lane].running.store(0, std::memory_order_release);
  impl->lanes[lane].completed.store(instr + 1, std::memory_order_release);
  if (impl->calls[lane].isCompute)
    impl->busy += impl->now - impl->calls[lane].begun;
}

void FlightRecorder::stepEnded() {
  impl->record(FlightEventKind::StepEnded, 0, 0);
  Header &header = *impl->header;
  uint64_t ended = header.stepsEnded.load(std::memory_order_relaxed);
  header.busy[ended % kSteps].store(impl->busy, std::memory_order_relaxed);
  header.stepsEnded.store(ended + 1, std::memory_order_release);
  header.stepState.store(kEnded, std::memory_order_release);
}

void FlightRecorder::end(FlightEnd how, int exitCode,
                         const std::string &message) {
  Header &header = *impl->header;
  header.exitCode = exitCode;
  copyText(header.message, sizeof(header.message), message);
  header.end.store(uint32_t(how), std::memory_order_release);
}

} // namespace takt::rt
