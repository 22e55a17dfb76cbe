//===- WhyHangTests.cpp - who held a run up -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Runs of small pipelines in which one rank dies at any moment: whoever dies is
// named, and so is its instruction. Then each kind of evidence by itself.
//
//===----------------------------------------------------------------------===//

#include "../RuntimeCore/PlanBuilder.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/file.h"
#include "takt-rt/core/text.h"
#include "takt-rt/trace/why_hang.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <random>
#include <sstream>

namespace takt::rt::test {
namespace {

/// Ranks that pass messages as the host does, without data or time.
class World {
public:
  explicit World(const Plan &plan) : plan(plan) {
    for (int32_t rank = 0; rank < plan.numRanks(); ++rank) {
      devices.push_back(std::make_unique<Member>(*this, rank));
      ranks.emplace_back(plan, rank, *devices.back());
    }
  }

  /// Runs a step in which `victim` dies when it has completed `count`.
  void run(int32_t victim, int64_t count) {
    dying = victim;
    left = count;
    for (bool moved = true; moved;) {
      moved = false;
      for (int32_t rank = 0; rank < plan.numRanks(); ++rank) {
        if (rank == dying && left <= 0)
          continue;
        try {
          moved |= ranks[rank].advance();
        } catch (const Death &) {
          left = 0;
        }
      }
    }
  }

  const Plan &plan;
  std::vector<Interpreter> ranks;

private:
  struct Death {};

  class Member final : public Device {
  public:
    Member(World &world, int32_t rank)
        : world(world), rank(rank),
          role(world.plan.roles[world.plan.roleOf(rank)]),
          works(role.lanes.size()) {}
    void call(int lane, const Procedure &, int32_t) override {
      works[lane] = {InstrKind::Call, 0, 0};
    }
    void load(int lane, int32_t) override {
      works[lane] = {InstrKind::Load, 0, 0};
    }
    void send(int lane, uint16_t channel, int32_t) override {
      begin(lane, InstrKind::Send, channel);
    }
    void recv(int lane, uint16_t channel, int32_t) override {
      begin(lane, InstrKind::Recv, channel);
    }
    void allReduce(int lane, uint16_t group) override {
      begin(lane, InstrKind::AllReduce, group);
    }
    bool done(int lane) override {
      if (!isMet(works[lane]))
        return false;
      if (rank == world.dying && world.left-- <= 0)
        throw Death();
      return true;
    }

  private:
    struct Work {
      InstrKind kind;
      uint16_t target;
      int32_t number; ///< of its kind and target
    };
    void begin(int lane, InstrKind kind, uint16_t target) {
      works[lane] = {kind, target, ++world.begun[{rank, kind, target}]};
    }
    bool isMet(const Work &work) const {
      if (work.kind == InstrKind::Call || work.kind == InstrKind::Load)
        return true;
      InstrKind other = work.kind == InstrKind::Send   ? InstrKind::Recv
                        : work.kind == InstrKind::Recv ? InstrKind::Send
                                                       : work.kind;
      std::vector<int32_t> peers;
      if (work.kind == InstrKind::AllReduce)
        for (int32_t i = 0; i < role.replicas; ++i)
          peers.push_back(role.firstRank + i);
      else
        for (const Piece &piece : transferPieces(
                 world.plan, world.plan.channels[work.target],
                 work.kind == InstrKind::Send, rank - role.firstRank))
          peers.push_back(piece.peer);
      for (int32_t peer : peers)
        if (world.begun[{peer, other, work.target}] < work.number)
          return false;
      return true;
    }

    World &world;
    int32_t rank;
    const Role &role;
    std::vector<Work> works;
  };

  std::vector<std::unique_ptr<Member>> devices;
  std::map<std::tuple<int32_t, InstrKind, uint16_t>, int32_t> begun;
  int32_t dying = -1;
  int64_t left = 0;
};

constexpr int64_t kStep = 6;

Flight flightOf(const Plan &plan, int32_t rank) {
  Flight flight;
  flight.file = flightName(rank);
  flight.info.rank = rank;
  flight.info.ranks = plan.numRanks();
  flight.info.planHash = planHash(plan);
  flight.info.run = "run";
  flight.info.started = 1000;
  flight.step = kStep;
  flight.inStep = true;
  flight.lanes.resize(plan.roles[plan.roleOf(rank)].lanes.size());
  return flight;
}

FlightFolder folderOf(const World &world) {
  FlightFolder folder;
  for (int32_t rank = 0; rank < world.plan.numRanks(); ++rank) {
    Flight flight = flightOf(world.plan, rank);
    flight.lanes = world.ranks[rank].progress();
    flight.inStep = !world.ranks[rank].finished();
    folder.flights.push_back(std::move(flight));
  }
  return folder;
}

std::optional<ProcessState> unknownProcess(const FlightInfo &) {
  return std::nullopt;
}

void othersSuffer(FlightFolder &folder, int32_t from) {
  for (Flight &flight : folder.flights)
    if (flight.info.rank != from) {
      flight.end = FlightEnd::Failed;
      flight.exitCode = int(ExitCode::PeerFailed);
    }
}

std::vector<int32_t> ranksOf(const WhyHang &report) {
  std::vector<int32_t> ranks;
  for (const Culprit &culprit : report.culprits)
    ranks.push_back(culprit.rank);
  return ranks;
}

std::string lineOf(const Plan &plan, int64_t number) {
  std::istringstream text(toText(plan));
  std::string line;
  while (number-- > 0)
    std::getline(text, line);
  return line;
}

class WhyHangTest : public testing::Test {
protected:
  static Plan pipeline(int32_t stages, std::vector<int32_t> replicas = {}) {
    PipelineShape shape;
    shape.stages = stages;
    shape.replicas = std::move(replicas);
    return makePipeline(shape);
  }
};

TEST_F(WhyHangTest, WhoeverDiesIsNamed) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<int32_t> replicas;
    int32_t stages = 1 + int32_t(random() % 4);
    for (int32_t stage = 0; stage < stages; ++stage)
      replicas.push_back(random() % 2 == 0 ? 1 : 2 + int32_t(random() % 2));
    Plan plan = pipeline(stages, replicas);
    if (plan.numRanks() < 2)
      continue;
    int32_t victim = int32_t(random() % plan.numRanks());
    int64_t instrs = 0;
    for (const Lane &lane : plan.roles[plan.roleOf(victim)].lanes)
      instrs += int64_t(lane.instrs.size());
    World world(plan);
    world.run(victim, int64_t(random() % instrs));
    ASSERT_FALSE(world.ranks[victim].finished());

    // Its word is missing among those of the others.
    FlightFolder folder = folderOf(world);
    othersSuffer(folder, victim);
    WhyHang report = explainFlights(plan, folder, unknownProcess);
    ASSERT_EQ(ranksOf(report), std::vector<int32_t>{victim});
    EXPECT_EQ(report.step, kStep);
    const Culprit &culprit = report.culprits[0];
    EXPECT_EQ(culprit.why, "silent");
    ASSERT_TRUE(culprit.place);
    EXPECT_EQ(world.ranks[victim].count(culprit.place->lane),
              culprit.place->instr);
    std::string line = lineOf(plan, culprit.place->line);
    std::string ending = "# " + culprit.place->action;
    EXPECT_EQ(line.substr(line.size() - ending.size()), ending);
    EXPECT_NE(culprit.text.find("'" + culprit.place->action + "'"),
              std::string::npos);

    // Without any words the chains lead to it.
    for (Flight &flight : folder.flights)
      flight.end = FlightEnd::None;
    report = explainFlights(plan, folder, unknownProcess);
    EXPECT_EQ(ranksOf(report), std::vector<int32_t>{victim});
    for (const WaitingRank &waiting : report.waiting)
      EXPECT_EQ(waiting.culprit, victim);

    // And so they do when its recording is lost.
    folder.flights.erase(folder.flights.begin() + victim);
    report = explainFlights(plan, folder, unknownProcess);
    EXPECT_EQ(ranksOf(report), std::vector<int32_t>{victim})
        << printText(plan, report);
  }
}

TEST_F(WhyHangTest, AnErrorOfItsOwnComesFirst) {
  Plan plan = pipeline(3);
  World world(plan);
  world.run(1, 4);
  FlightFolder folder = folderOf(world);
  othersSuffer(folder, -1);
  folder.flights[0].exitCode = int(ExitCode::Timeout);
  folder.flights[2].exitCode = int(ExitCode::BadInput);
  folder.flights[2].message = "class 9 of 4";
  WhyHang report = explainFlights(plan, folder, unknownProcess);
  ASSERT_EQ(ranksOf(report), std::vector<int32_t>{2});
  EXPECT_NE(report.culprits[0].text.find("failed with code 1: class 9 of 4"),
            std::string::npos);
}

// A rank that says that a connection was lost or damaged, which of its messages
// names both ends, comes before those to which chains lead.
TEST_F(WhyHangTest, ALostConnectionIsNamed) {
  Plan plan = pipeline(3);
  World world(plan);
  world.run(2, 4);
  FlightFolder folder = folderOf(world);
  othersSuffer(folder, -1);
  folder.flights[0].exitCode = int(ExitCode::Communication);
  folder.flights[0].message = "the connection with rank 1 has ended (closed)";
  WhyHang report = explainFlights(plan, folder, unknownProcess);
  ASSERT_EQ(ranksOf(report), std::vector<int32_t>{0});
  EXPECT_NE(report.culprits[0].text.find("failed with code 11: the connection "
                                         "with rank 1"),
            std::string::npos);
  // One that fell silent is why the connection was lost.
  folder.flights[1].end = FlightEnd::None;
  report = explainFlights(plan, folder, unknownProcess);
  EXPECT_EQ(ranksOf(report), std::vector<int32_t>{1});
}

// Between steps no instruction waits: who says that nothing came is named.
TEST_F(WhyHangTest, ATimeoutBetweenStepsIsNamed) {
  Plan plan = pipeline(3);
  World world(plan);
  world.run(-1, 0);
  FlightFolder folder = folderOf(world);
  othersSuffer(folder, 1);
  folder.flights[1].end = FlightEnd::Failed;
  folder.flights[1].exitCode = int(ExitCode::Timeout);
  folder.flights[1].message = "nothing came for 9 s from rank 0";
  WhyHang report = explainFlights(plan, folder, unknownProcess);
  ASSERT_EQ(ranksOf(report), std::vector<int32_t>{1});
  EXPECT_NE(report.culprits[0].text.find("nothing came for 9 s from rank 0"),
            std::string::npos)
      << report.culprits[0].text;
}

TEST_F(WhyHangTest, AStoppedProcessIsNamed) {
  Plan plan = pipeline(3);
  World world(plan);
  world.run(2, 5);
  FlightFolder folder = folderOf(world);
  WhyHang report = explainFlights(plan, folder, [](const FlightInfo &info) {
    return std::optional<ProcessState>({true, info.rank == 2});
  });
  ASSERT_EQ(ranksOf(report), std::vector<int32_t>{2});
  EXPECT_NE(report.culprits[0].text.find("is stopped by a signal"),
            std::string::npos);
}

TEST_F(WhyHangTest, DeathBetweenStepsIsSeen) {
  Plan plan = pipeline(2);
  World world(plan);
  world.run(0, 0);
  FlightFolder folder = folderOf(world);
  folder.flights[0] = flightOf(plan, 0);
  folder.flights[0].step = kStep - 1;
  folder.flights[0].inStep = false;
  othersSuffer(folder, 0);
  WhyHang report = explainFlights(plan, folder, unknownProcess);
  ASSERT_EQ(ranksOf(report), std::vector<int32_t>{0});
  EXPECT_FALSE(report.culprits[0].place);
  EXPECT_NE(report.culprits[0].text.find("stopped before step 7"),
            std::string::npos)
      << report.culprits[0].text;
}

TEST_F(WhyHangTest, RunsThatEndInOrderBlameNobody) {
  Plan plan = pipeline(2);
  World world(plan);
  world.run(-1, 0);
  FlightFolder folder = folderOf(world);
  for (Flight &flight : folder.flights)
    flight.end = FlightEnd::InOrder;
  WhyHang report = explainFlights(plan, folder, unknownProcess);
  EXPECT_TRUE(report.endedInOrder);
  EXPECT_TRUE(report.culprits.empty());
  EXPECT_NE(printText(plan, report).find("ended in order after step 7"),
            std::string::npos);
}

TEST_F(WhyHangTest, WhatIsNotOfTheRunIsSaid) {
  Plan plan = pipeline(3);
  World world(plan);
  world.run(1, 4);
  FlightFolder folder = folderOf(world);
  othersSuffer(folder, 1);
  folder.flights[0].info.run = "older";
  folder.flights[0].info.started = 1;
  folder.flights[2].lanes[0].completed = 1000;
  folder.faults.push_back("'x' is no recording");
  WhyHang report = explainFlights(plan, folder, unknownProcess);
  std::string faults;
  for (const std::string &fault : report.faults)
    faults += fault + "\n";
  for (const char *part :
       {"'x' is no recording", "is of another run", "lanes do not fit",
        "rank 0 left no recording", "rank 2 left no recording"})
    EXPECT_NE(faults.find(part), std::string::npos) << part;

  for (Flight &flight : folder.flights)
    flight.info.planHash ^= 1;
  try {
    explainFlights(plan, folder, unknownProcess);
    FAIL();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("no recording can be used"),
              std::string::npos);
  }
}

TEST_F(WhyHangTest, TheJsonHasIt) {
  Plan plan = pipeline(3);
  World world(plan);
  world.run(1, 4);
  FlightFolder folder = folderOf(world);
  othersSuffer(folder, 1);
  WhyHang report = explainFlights(plan, folder, unknownProcess);
  auto json = nlohmann::json::parse(toJson(plan, report));
  EXPECT_EQ(json["step"], kStep + 1);
  EXPECT_EQ(json["culprits"][0]["rank"], 1);
  EXPECT_EQ(json["culprits"][0]["action"], report.culprits[0].place->action);
  EXPECT_EQ(json["waiting"].size(), 3u);
  EXPECT_EQ(json["standing"].size(), 3u);
  std::string text = printText(plan, report);
  EXPECT_NE(text.find(report.culprits[0].text), std::string::npos);
  EXPECT_NE(text.find("held up: ranks 0, 2"), std::string::npos) << text;
}

TEST(Stragglers, AreSlowerThanTheirPeers) {
  PipelineShape shape;
  shape.stages = 4;
  shape.forward = 1000;
  shape.backward = 2000;
  Plan plan = makePipeline(shape);
  constexpr Nanos kMs = 1'000'000;
  std::vector<std::vector<Nanos>> busy(4, {10 * kMs, 11 * kMs, 10 * kMs});
  EXPECT_TRUE(findStragglers(plan, busy).empty());
  busy[2] = {30 * kMs, 31 * kMs, 9 * kMs};
  std::vector<Straggler> slow = findStragglers(plan, busy);
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].rank, 2);
  EXPECT_NEAR(slow[0].ratio(), 3, 0.01);
  // One slow step is none, and neither is a rank without steps.
  busy[2] = {30 * kMs, 10 * kMs, 9 * kMs};
  busy[1].clear();
  EXPECT_TRUE(findStragglers(plan, busy).empty());
  // Of two ranks the faster is the measure.
  EXPECT_EQ(findStragglers(plan, {{10 * kMs}, {50 * kMs}}).size(), 1u);
  EXPECT_TRUE(findStragglers(plan, {{10 * kMs}}).empty());
  EXPECT_TRUE(findStragglers(plan, {{100}, {500}}).empty());
}

} // namespace
} // namespace takt::rt::test
