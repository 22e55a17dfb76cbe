//===- flight_file.h - the bytes of a recording -----------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Shared by the writer and the reader. What a rank changes while it runs is
// atomic, as another process may look at it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace takt::rt::flight {

constexpr char kMagic[8] = {'T', 'A', 'K', 'T', 'F', 'L', 'T', '\0'};
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 8192;
constexpr size_t kSteps = 32;
constexpr uint32_t kMostLanes = 1 << 16;
constexpr uint32_t kMostEvents = 1 << 20;

/// Whether the lanes of `Header::step` stand in the table.
enum StepState : uint32_t { kNone, kBeginning, kUnderWay, kEnded };

struct Header {
  char magic[8]; ///< written last
  uint32_t version;
  uint32_t headerBytes;
  int32_t rank, ranks;
  uint32_t lanes, events; ///< events: a power of two
  uint64_t planHash;
  int64_t pid, started, deadline, predicted;
  char run[64], model[256], host[256], plan[1024];

  alignas(64) std::atomic<uint64_t> written; ///< events so far
  std::atomic<int64_t> step;
  std::atomic<uint32_t> stepState;
  std::atomic<uint32_t> end; ///< FlightEnd, after the two below
  int32_t exitCode;
  char message[1024];
  std::atomic<uint64_t> stepsEnded;
  std::atomic<int64_t> busy[kSteps]; ///< of step i at i modulo kSteps
};
static_assert(sizeof(Header) <= kHeaderBytes, "room for more");
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                  std::atomic<uint32_t>::is_always_lock_free,
              "atomics in a file must be plain words");

struct LaneWords {
  std::atomic<uint32_t> completed, running;
};

struct Event {
  int64_t time;
  uint32_t step, instr;
  uint16_t lane, kind;
  uint32_t check;
};
static_assert(sizeof(Event) == 24 && sizeof(LaneWords) == 8, "as documented");

/// Tells an event from old bytes and from the event that stood there before.
inline uint32_t checkOf(uint64_t number, const Event &event) {
  uint64_t mixed = number * 0x9E3779B97F4A7C15u ^ uint64_t(event.time) ^
                   (uint64_t(event.step) << 32 | event.instr) ^
                   (uint64_t(event.lane) << 16 | event.kind) * 0x100000001B3u;
  return uint32_t(mixed ^ mixed >> 32);
}

inline size_t lanesAt() { return kHeaderBytes; }
inline size_t eventsAt(uint32_t lanes) {
  return kHeaderBytes + (size_t(lanes) * sizeof(LaneWords) + 63) / 64 * 64;
}
inline size_t fileBytes(uint32_t lanes, uint32_t events) {
  return eventsAt(lanes) + size_t(events) * sizeof(Event);
}

} // namespace takt::rt::flight
