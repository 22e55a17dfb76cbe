//===- FileTests.cpp - schedule files in and out
//---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The published files survive a round trip; every spelling is read; every fault
// is named with its line and column.
//
//===----------------------------------------------------------------------===//
#include "takt/Schedule/File.h"
#include "takt/Support/TextFile.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace takt;

namespace {

ScheduleFile parsed(const std::string &text) {
  Diagnostics diags;
  std::optional<ScheduleFile> file = parseScheduleCsv("s.csv", text, diags);
  EXPECT_TRUE(file) << diags.text();
  return file.value_or(ScheduleFile{});
}

/// Everything that reading and checking says.
std::string complaint(const std::string &text) {
  Diagnostics diags;
  std::optional<ScheduleFile> file = parseScheduleCsv("s.csv", text, diags);
  const bool right = file && verifyFile(*file, diags);
  EXPECT_EQ(right, !diags.hasErrors());
  return diags.text();
}

std::string published(const std::string &name) {
  Diagnostics diags;
  std::optional<std::string> text = readTextFile(
      std::string(TAKT_TEST_DATA) + "/pytorch-pipelining/" + name, diags);
  EXPECT_TRUE(text) << diags.text();
  return text.value_or("");
}

void expectFault(const std::string &text, const std::string &place,
                 const std::string &message) {
  const std::string said = complaint(text);
  EXPECT_NE(said.find("s.csv:" + place + ": error: "), std::string::npos)
      << said;
  EXPECT_NE(said.find(message), std::string::npos) << said;
}

std::map<std::string, int> countKinds(const std::vector<FileAction> &row) {
  std::map<std::string, int> counts;
  for (const FileAction &action : row) {
    std::string text = toText(action);
    text.erase(0, text.find_first_not_of("0123456789"));
    text.erase(text.find_first_of("0123456789"));
    ++counts[text];
  }
  return counts;
}

TEST(ScheduleFile, PublishedFilesSurviveRoundTrips) {
  for (const char *name :
       {"torchtitan_custom_schedule.csv", "zb1p_2rank_2stagep_compute.csv",
        "zb1p_2rank_2stagep_comms.csv"}) {
    SCOPED_TRACE(name);
    const std::string text = published(name);
    const ScheduleFile file = parsed(text);
    EXPECT_EQ(file.rows.size(), 2u);
    EXPECT_EQ(file.stages, 4);
    EXPECT_EQ(file.microBatches, 8);
    EXPECT_EQ(complaint(text), "");
    const std::string once = writeScheduleCsv(file);
    EXPECT_EQ(writeScheduleCsv(parsed(once)), once);
    EXPECT_EQ(complaint(once), "");
  }
  // This one is in the current spelling already.
  const std::string text = published("torchtitan_custom_schedule.csv");
  EXPECT_EQ(writeScheduleCsv(parsed(text)), text);
}

TEST(ScheduleFile, OldSpellingIsResolvedRowByRow) {
  const ScheduleFile file = parsed(published("zb1p_2rank_2stagep_comms.csv"));
  // The counts of expected-schedules.json, in the current spelling.
  EXPECT_EQ(countKinds(file.rows[0]),
            (std::map<std::string, int>{{"F", 16},
                                        {"SEND_F", 16},
                                        {"RECV_F", 8},
                                        {"RECV_B", 16},
                                        {"B", 16},
                                        {"SEND_B", 8}}));
  EXPECT_EQ(countKinds(file.rows[1]),
            (std::map<std::string, int>{{"RECV_F", 16},
                                        {"F", 16},
                                        {"SEND_F", 8},
                                        {"I", 16},
                                        {"SEND_B", 16},
                                        {"RECV_B", 8},
                                        {"W", 16}}));
}

TEST(ScheduleFile, ReadsEverySpelling) {
  EXPECT_EQ(writeScheduleCsv(parsed("F0_s0,B0_s0\nF0_s1,B0_s1\n")),
            "0F0,0B0\n1F0,1B0\n");
  EXPECT_EQ(writeScheduleCsv(parsed("\xEF\xBB\xBF 0F0 ,,\"0BW0\"\r\n")),
            "0F0,0B0\n");
  EXPECT_EQ(writeScheduleCsv(parsed("0F0,0B0,0W0")), "0F0,0I0,0W0\n");
  EXPECT_EQ(writeScheduleCsv(parsed("0F0,0F1,0B0,0B1\n"
                                    "1F0,1F1,1B0,1SEND_B0_1RECV_F1,1B1\n")),
            "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1SEND_B0,1RECV_F1,1B1\n");
  const std::string overlap = "0UNSHARD,0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2,"
                              "0RESHARD,0REDUCE_GRAD\n";
  EXPECT_EQ(writeScheduleCsv(parsed(overlap)), overlap);
  EXPECT_EQ(complaint(overlap), "");
}

TEST(ScheduleFile, SyntaxErrorsHaveTheirPlace) {
  expectFault("0F0,0X0\n", "1:6", "'X0' is no kind of action");
  expectFault("0F0,0B0\n1F0,hello\n", "2:5", "'hello' is no action");
  expectFault("0F0,0F\n", "1:7", "lacks the number of its micro-batch");
  expectFault("0F00,0B0\n", "1:3", "begins with 0");
  expectFault("0F0,70000F0\n", "1:5", "stage 70000 is too large");
  expectFault("0F0,0B99999999999999999999\n", "1:7", "too large");
  expectFault("0F0 0B0\n", "1:4", "stands behind '0F0' in one cell");
  expectFault("(0F0;0B0)OVERLAP\n", "1:10", "expected 'OVERLAP_F_B'");
  expectFault("(0F0)OVERLAP_F_B\n", "1:5", "expected ';'");
  expectFault("(0F0;0B0\n", "1:1", "has no ')'");
  expectFault("(0F0;0SEND_F0)OVERLAP_F_B\n", "1:6", "cannot overlap");
  expectFault("0F0,0B0\n\n1F0,1B0\n", "2:1", "rank 1 has no actions");
  expectFault(",,\n", "1:1", "rank 0 has no actions");
  expectFault("0SEND_F0\n", "1:1", "computes nothing");
  expectFault("\n \n", "1:1", "empty");
  expectFault(std::string("0F0,0B0\0", 8), "1:8", "not a text file");
}

TEST(ScheduleFile, WrongSchedulesNameTheAction) {
  // Sizes named but not spelt out take no memory.
  expectFault("60000F16000000,0F0\n", "1:1", "'0B0' is missing");
  expectFault("0F0,0B0\n1B0,1F0\n", "2:1", "'1B0'");
  expectFault("0F0,0B0,0B0\n1F0,1B0\n", "1:9", "stands twice");
  expectFault("0F0,1F0,0B0\n1B0\n", "2:1", "belongs to role 0");
  // Two stages of one rank out of order.
  expectFault("1F0,0F0,1B0,0B0\n", "1:1",
              "'1F0' at place 0 of role 0 needs "
              "'0F0'");
  expectFault("0F0,0F1,0B1,0B0\n1F0,1B0,1F1,1B1\n2F1,2B1,2F0,2B0\n", "2:5",
              "in a circle");
}

TEST(ScheduleFile, TransfersMustFitThePlacement) {
  const std::string good = "0F0,0SEND_F0,0RECV_B0,0B0\n"
                           "1RECV_F0,1F0,1B0,1SEND_B0\n";
  EXPECT_EQ(complaint(good), "");
  expectFault("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "2:1",
              "'0SEND_F0' is missing from the row of rank 0");
  expectFault("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "1:1",
              "sends what '0F0' makes later");
  expectFault("0F0,0SEND_F0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "1:14",
              "needs '0RECV_B0', which comes later");
  expectFault("0F0,0SEND_F0,0RECV_B0,0B0\n"
              "1RECV_F0,1F0,1B0,1SEND_B0,1SEND_F0\n",
              "2:27", "has no neighbour");
  expectFault("0F0,0SEND_F0,0RECV_B0,0B0,1SEND_B0\n1RECV_F0,1F0,1B0\n", "1:27",
              "stage 1 is computed by rank 1");
  expectFault("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n", "1:5",
              "nothing is sent between them");
  expectFault("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
              "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n",
              "2:1", "'1RECV_F1' of rank 1 is message 0");
  // The send stands behind what waits for its answer.
  expectFault("0F0,0RECV_B0,0B0,0SEND_F0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "1:14",
              "in a circle");
  expectFault("0F0,0WAIT_SEND_F0,0SEND_F0,0RECV_B0,0B0\n"
              "1RECV_F0,1F0,1B0,1SEND_B0\n",
              "1:5", "which does not stand before it");
  expectFault("0F0,0SEND_F0,0RECV_B0,0B0\n"
              "1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0,1WAIT_SEND_B0\n",
              "2:41", "stands twice");
  // A send is over when it is received: each row waits for the other.
  expectFault("0F0,0SEND_F0,0WAIT_SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F1,0RECV_B0,"
              "0B0,0RECV_B1,0B1\n"
              "1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0,1RECV_F1,1F1,1B1,"
              "1SEND_B1\n",
              "1:41", "in a circle");
  expectFault("0REDUCE_GRAD,0F0,0B0\n", "1:18", "already reduced");
}

TEST(ScheduleFile, WarnsWhereMessagesOfTwoRanksCross) {
  // Stages 0 and 2 on rank 0: two channels from rank 0 to rank 1.
  const std::string text =
      "0F0,0SEND_F0,2RECV_F0,2F0,0F1,0SEND_F1,2SEND_F0,2RECV_F1,2F1,2SEND_F1,"
      "2RECV_B0,2B0,2SEND_B0,2RECV_B1,2B1,2SEND_B1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,1RECV_F1,1F1,1SEND_F1,"
      "3RECV_F1,3F1,3B1,3SEND_B1,1RECV_B0,1B0,1SEND_B0,1RECV_B1,1B1,1SEND_B1\n";
  const std::string said = complaint(text);
  // Rank 0 sends 0SEND_F1 first, rank 1 takes 3RECV_F0 first.
  EXPECT_NE(said.find("s.csv:2:23: warning: rank 1 receives '3RECV_F0' where "
                      "rank 0 sends '0SEND_F1'"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("error"), std::string::npos) << said;
}

TEST(ScheduleFile, InsertedTransfersPassTheCheck) {
  std::vector<std::string> texts = {
      published("torchtitan_custom_schedule.csv"),
      published("zb1p_2rank_2stagep_compute.csv"),
      // A V: stages 1 and 2 on one rank.
      "0F0,0F1,3F0,3B0,3F1,3B1,0B0,0B1\n1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1\n",
      "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n"};
  for (const std::string &text : texts) {
    const ScheduleFile compute = parsed(text);
    const ScheduleFile whole = insertTransfers(compute);
    const std::string csv = writeScheduleCsv(whole);
    EXPECT_TRUE(whole.hasTransfers());
    EXPECT_EQ(complaint(csv), "") << csv;
    const Schedule before = computeSchedule(compute);
    EXPECT_EQ(computeSchedule(parsed(csv)).roles, before.roles);
    const std::string waits = writeScheduleCsv(insertSendWaits(whole));
    EXPECT_EQ(complaint(waits), "") << waits;
    EXPECT_EQ(writeScheduleCsv(parsed(waits)), waits);
  }
}

TEST(ScheduleFile, GeneratedSchedulesGoThroughFiles) {
  for (const std::string &name : scheduleNames()) {
    const ScheduleProblem problem{4, 6};
    const Schedule schedule = generateSchedule(name, problem).value();
    const ScheduleFile file = toFile(problem, schedule);
    EXPECT_EQ(computeSchedule(parsed(writeScheduleCsv(file))).roles,
              schedule.roles);
    EXPECT_EQ(complaint(writeScheduleCsv(insertTransfers(file))), "");
  }
}

/// Broken files are refused with a place, or read and found right.
TEST(ScheduleFile, MutantsAreRefusedOrRight) {
  const std::string text = published("zb1p_2rank_2stagep_comms.csv");
  std::mt19937 random(7);
  const std::string alphabet = "0123456789FBIWSENDRECV_,;()\n\"";
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string mutant = text;
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % mutant.size();
      const char letter = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
      case 0:
        mutant[at] = letter;
        break;
      case 1:
        mutant.insert(at, 1, letter);
        break;
      default:
        mutant.erase(at, 1);
      }
    }
    const std::string said = complaint(mutant);
    if (said.find("error") == std::string::npos)
      continue;
    ++refused;
    EXPECT_NE(said.find("s.csv:"), std::string::npos) << said;
  }
  EXPECT_GT(refused, 1500);
}

} // namespace
