//===- flight.h - recordings that outlive their process ---------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A flight recorder keeps, for one rank, where each lane stands and the last
// events, in a file that is mapped into memory: what is stored there is the
// system's, so that it survives the process however it ends (not the machine).
//
//   DIR/flight.rank3.bin      of the run under way or the last one
//   DIR/previous/             of the run before it
//
// A file is a header of 8192 bytes, the lanes (8 bytes each), then a ring of
// events (24 bytes each), in the byte order of the machine. One thread writes,
// and takes no lock; an event costs some stores and a look at the clock. The
// size never changes, and its room on the disk is taken when it is made.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/hang.h"
#include "takt-rt/core/interpreter.h"
#include "takt-rt/core/plan.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace takt::rt {

/// Steps whose time in calls a recording keeps.
constexpr size_t kFlightSteps = 32;

/// What does not change while a recording is made.
struct FlightInfo {
  int32_t rank = 0, ranks = 0;
  uint64_t planHash = 0;
  std::string run; ///< a word that all ranks of the run share
  std::string model;
  std::string plan; ///< path, to find it again; may be empty
  std::string host;
  int64_t pid = 0;
  int64_t started = 0; ///< nanoseconds since 1970
  Nanos deadline = 0;  ///< without progress, that ends the run; 0: none
  Nanos predicted = 0; ///< time of a step; 0: not known
};

enum class FlightEventKind : uint16_t {
  StepBegan,
  Began,
  Completed,
  StepEnded
};

struct FlightEvent {
  Nanos time = 0;   ///< since the recording began
  int64_t step = 0; ///< the low 32 bits
  uint32_t instr = 0;
  uint16_t lane = 0;
  FlightEventKind kind = FlightEventKind::StepBegan;
};

/// How a rank came to its end.
enum class FlightEnd : uint8_t {
  None,    ///< it said nothing: it runs, or was killed
  InOrder, ///< it did what was asked for
  Failed   ///< with an exit code and a message
};

class FlightRecorder final : public RankObserver {
public:
  /// Makes the folder and the file; a recording that is there moves to
  /// "previous", also those of ranks that this run lacks. Throws `Error`
  /// (BadInput) when there is no room or no right.
  FlightRecorder(const std::string &folder, const FlightInfo &info,
                 const Role &role, uint32_t events = 4096);
  ~FlightRecorder() override;

  void stepBegan(int64_t step) override;
  void began(int lane, uint32_t instr) override;
  void completed(int lane, uint32_t instr) override;
  void stepEnded() override;

  /// Leaves word of the end; of several the last counts. No step may be under
  /// way.
  void end(FlightEnd how, int exitCode, const std::string &message);

private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

/// A recording that was read.
struct Flight {
  std::string file;
  FlightInfo info;
  int64_t step = -1;   ///< begun last, from 0; -1: none
  bool inStep = false; ///< it has not ended
  RankProgress lanes;  ///< in that step
  FlightEnd end = FlightEnd::None;
  int exitCode = 0;
  std::string message;
  std::vector<FlightEvent> events; ///< oldest first
  uint64_t lost = 0;               ///< events that the ring no longer has
  uint64_t damaged = 0;            ///< events of the ring that do not check
  std::vector<Nanos> busy; ///< time in calls of the last steps that ended
};

/// "flight.rank3.bin".
std::string flightName(int32_t rank);
/// The rank in such a name; -1 for another name.
int32_t rankOfFlight(const std::string &name);

/// Throws `Error` (BadInput), naming the file and what is wrong with it, for
/// what is no recording; may be asked while the rank runs.
Flight readFlight(const std::string &path);

/// The same from a file's content; `name` is for messages.
Flight parseFlight(const std::string &content, const std::string &name);

/// The recordings of a folder by rank, and those that cannot be read with why.
struct FlightFolder {
  std::vector<Flight> flights;
  std::vector<std::string> faults;
};
/// Throws `Error` (BadInput) when there is no such folder.
FlightFolder readFlights(const std::string &folder);

} // namespace takt::rt
