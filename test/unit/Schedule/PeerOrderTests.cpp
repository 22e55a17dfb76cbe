//===- PeerOrderTests.cpp - synchronous families against other planners ---===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The rows of test/data: no later and no more memory than others' orders on the
// same placement, and exactly what an independent simulator expects.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Pipeline.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace takt;
using nlohmann::json;

namespace {

json readData(const std::string &name) {
  std::ifstream in(std::string(TAKT_TEST_DATA) + "/" + name);
  return json::parse(in);
}

PipelineTiming timeOf(const std::string &family,
                      const PipelineProblem &problem) {
  std::string why;
  const auto pipeline = generatePipeline(family, problem, why);
  EXPECT_TRUE(pipeline) << family << ": " << why;
  return pipeline ? *timePipeline(problem, *pipeline) : PipelineTiming{};
}

TEST(PeerOrders, NoWorseAtNoHigherPeak) {
  int rows = 0;
  for (const json &row : readData("synchronous-schedules/peers.json")) {
    PipelineProblem problem{row["ranks"], row["chunks"], row["microBatches"]};
    problem.times.assign(problem.stages(),
                         {row["F"], row["I"], row["W"], 1, 0.5});
    problem.hop = row["hop"];
    const double makespan = row["makespan"];
    const PipelineTiming timing = timeOf(row["family"], problem);
    EXPECT_LE(timing.makespan, makespan * (1 + 1e-9)) << row.dump();
    ASSERT_EQ(timing.peakHeld.size(), row["peak"].size());
    for (size_t rank = 0; rank < timing.peakHeld.size(); ++rank)
      EXPECT_LE(timing.peakHeld[rank], row["peak"][rank].get<double>())
          << "rank " << rank << " of " << row.dump();
    ++rows;
  }
  EXPECT_EQ(rows, 150);
}

TEST(PeerOrders, InterleavedIsWhatASimulatorExpects) {
  const json data = readData("schedules/expected-uniform.json");
  int rows = 0;
  for (const json &row : data["cases"])
    for (const int32_t chunks : {2, 4}) {
      const json &expected = row["interleaved_v" + std::to_string(chunks)];
      PipelineProblem problem{row["stages"], chunks, row["microbatches"]};
      const double share = 1.0 / chunks;
      problem.times.assign(problem.stages(),
                           {row["F"].get<double>() * share,
                            row["I"].get<double>() * share,
                            row["W"].get<double>() * share, 1, 0.5});
      const PipelineTiming timing = timeOf("interleaved-1f1b", problem);
      EXPECT_NEAR(timing.makespan, expected["makespan"].get<double>(), 1e-9);
      EXPECT_EQ(timing.peakHeld,
                expected["peak_in_flight_chunks"].get<std::vector<double>>());
      ++rows;
    }
  EXPECT_EQ(rows, 60);
}

} // namespace
