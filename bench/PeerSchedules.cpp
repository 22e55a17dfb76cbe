//===- PeerSchedules.cpp - other planners' orders, ours and the bound -----===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// peer-schedules FILE...: a line for every row of the files (their form is that
// of test/data/peer-schedules): the makespan of the other planner's order, of
// the same family's order here under the same memory limit, and the bound that
// no order can go below. Ends with 1 if one of ours is longer than a peer's.
//
//===----------------------------------------------------------------------===//

#include "takt/Schedule/Pipeline.h"

#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace takt;

namespace {

struct Tally {
  int shorter = 0, equal = 0, longer = 0, without = 0;
};

PipelineProblem problemOf(const nlohmann::json &row) {
  PipelineProblem problem{row.at("ranks"), row.at("chunks"),
                          row.at("microbatches")};
  const double held = 1.0 / problem.chunks;
  problem.times.assign(problem.stages(),
                       {row.at("F"), row.at("I"), row.at("W"), held, held / 2});
  problem.hop = row.at("hop");
  problem.mostHeld.assign(problem.ranks, row.at("limit").get<double>());
  return problem;
}

void printRow(const nlohmann::json &row, Tally &tally) {
  const std::string family = row.at("family");
  const double peer = row.at("makespan");
  const std::string label =
      fmt::format("{:20} {:32} {:>12.1f}", row.at("case").get<std::string>(),
                  row.at("peer").get<std::string>(), peer);
  const PipelineProblem problem = problemOf(row);
  const auto begin = std::chrono::steady_clock::now();
  std::string why;
  const auto pipeline = generatePipeline(family, problem, why);
  const std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - begin;
  if (!pipeline) {
    fmt::print("{} {}\n", label, why);
    ++tally.without;
    return;
  }
  const double ours = timePipeline(problem, *pipeline)->makespan;
  const double bound = boundPipeline(problem, pipeline->rankOfStage,
                                     findFamily(family)->splitsBackward)
                           .best();
  const bool longer = ours > peer * (1 + 1e-9);
  const bool shorter = ours < peer * (1 - 1e-9);
  ++(longer ? tally.longer : shorter ? tally.shorter : tally.equal);
  fmt::print("{} {:>12.1f} {:>12.1f} {:>6.3f} {:>6.3f} {:>8.1f} ms{}\n", label,
             ours, bound, ours / peer, ours / bound, took.count(),
             longer ? "  longer" : "");
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: peer-schedules FILE...\n");
    return 2;
  }
  Tally tally;
  fmt::print("{:20} {:32} {:>12} {:>12} {:>12} {:>6} {:>6} {:>11}\n", "case",
             "peer", "peer's", "takt's", "bound", "/peer", "/bound", "planned");
  try {
    for (int i = 1; i < argc; ++i) {
      std::ifstream file(argv[i]);
      if (!file) {
        fmt::print(stderr, "peer-schedules: cannot read '{}'\n", argv[i]);
        return 2;
      }
      const nlohmann::json root = nlohmann::json::parse(file);
      for (const nlohmann::json &row : root.at("rows"))
        printRow(row, tally);
    }
  } catch (const nlohmann::json::exception &error) {
    fmt::print(stderr, "peer-schedules: {}\n", error.what());
    return 2;
  }
  fmt::print("{} shorter, {} equal, {} longer than the peer's; {} without an "
             "order\n",
             tally.shorter, tally.equal, tally.longer, tally.without);
  return tally.longer > 0;
}
