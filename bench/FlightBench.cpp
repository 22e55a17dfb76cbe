//===- FlightBench.cpp - what a recorded event costs ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// One instruction is two events. The time is that of the processor, so that
// other programs on the machine do not count.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/trace/flight.h"

#include <benchmark/benchmark.h>

#include <filesystem>

#include <unistd.h>

using namespace takt::rt;

static void recordEvent(benchmark::State &state) {
  std::string folder = (std::filesystem::temp_directory_path() /
                        ("takt-flight-bench-" + std::to_string(getpid())))
                           .string();
  Role role;
  role.lanes.resize(8);
  FlightInfo info;
  info.ranks = 1;
  {
    FlightRecorder recorder(folder, info, role);
    recorder.stepBegan(0);
    uint32_t instr = 0;
    for (auto _ : state) {
      recorder.began(int(instr % 8), instr);
      recorder.completed(int(instr % 8), instr);
      ++instr;
    }
  }
  state.counters["ns_per_event"] = benchmark::Counter(
      double(state.iterations()) * 2e-9,
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  std::filesystem::remove_all(folder);
}
BENCHMARK(recordEvent);

BENCHMARK_MAIN();
