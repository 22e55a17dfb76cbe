//===- LogTests.cpp - what a process says of itself -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Levels and names as they are asked for, and files that several threads and
// several logs write to.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/log.h"
#include "takt-rt/core/error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>
#include <unistd.h>
#include <vector>

namespace takt::rt {
namespace {

using Variables = std::map<std::string, std::string>;

std::string refused(const Variables &variables) {
  try {
    Log log((Environment(variables)));
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::Usage);
    return error.what();
  }
  return "it was not refused";
}

TEST(LogLevels, AreOfAllOrOfATopic) {
  for (const char *nothing : {"", "info"}) {
    LogLevels levels = LogLevels::parse(nothing);
    EXPECT_TRUE(levels.has(LogLevel::Info, LogTopic::Comm));
    EXPECT_FALSE(levels.has(LogLevel::Debug, LogTopic::Comm));
  }
  LogLevels levels = LogLevels::parse("error,comm=debug,run=warn");
  EXPECT_TRUE(levels.has(LogLevel::Debug, LogTopic::Comm));
  EXPECT_TRUE(levels.has(LogLevel::Warn, LogTopic::Run));
  EXPECT_FALSE(levels.has(LogLevel::Info, LogTopic::Run));
  EXPECT_FALSE(levels.has(LogLevel::Warn, LogTopic::Start));
  // What comes later counts, also for all.
  EXPECT_FALSE(
      LogLevels::parse("comm=debug,warn").has(LogLevel::Info, LogTopic::Comm));
}

TEST(LogLevels, UnknownWordsAreNamed) {
  EXPECT_EQ(refused({{"TAKT_LOG", "loud"}}),
            "TAKT_LOG='loud': 'loud' is none of error, warn, info, debug");
  EXPECT_EQ(refused({{"TAKT_LOG", "warn,net=debug"}}),
            "TAKT_LOG='warn,net=debug': 'net' is none of start, comm, "
            "checkpoint, run");
  EXPECT_EQ(refused({{"TAKT_LOG", "comm="}}),
            "TAKT_LOG='comm=': '' is none of error, warn, info, debug");
}

TEST(LogPath, ReplacesItsLetters) {
  EXPECT_EQ(logPath("/tmp/%h.%r-%p%%.log", "3", "node1", 42),
            "/tmp/node1.3-42%.log");
  EXPECT_EQ(logPath("plain", "3", "node1", 42), "plain");
  for (const char *wrong : {"a%x", "a%"})
    EXPECT_NE(refused({{"TAKT_LOG_FILE", wrong}}).find("of '%' there are %r"),
              std::string::npos);
}

class LogFile : public testing::Test {
protected:
  LogFile()
      : path((std::filesystem::path(testing::TempDir()) /
              ("takt-log-" + std::to_string(getpid())))
                 .string()) {
    std::filesystem::remove(path + ".2");
  }
  ~LogFile() override { std::filesystem::remove(path + ".2"); }
  Environment asked(const std::string &levels) const {
    return Environment(
        Variables{{"TAKT_LOG_FILE", path + ".%r"}, {"TAKT_LOG", levels}});
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> found;
    std::ifstream in(path + ".2");
    for (std::string line; std::getline(in, line);)
      found.push_back(line);
    return found;
  }
  std::string path;
};

TEST_F(LogFile, LinesSayWhenWhoAndWhat) {
  Log log(asked("warn,comm=debug"));
  log.open("2");
  log.debug(LogTopic::Comm, "by TCP");
  log.debug(LogTopic::Run, "left out");
  log.add(LogLevel::Info, LogTopic::Run, "left out");
  log.error("one\ntwo");
  std::vector<std::string> found = lines();
  ASSERT_EQ(found.size(), 3u);
  std::string masked = found[0];
  for (char &c : masked)
    c = c >= '1' && c <= '9' ? '0' : c;
  EXPECT_EQ(masked.find("0000-00-00T00:00:00.000Z takt-run[rank 0 "), 0u)
      << found[0];
  std::string end = ":" + std::to_string(getpid()) + "] debug comm: by TCP";
  EXPECT_EQ(found[0].rfind(end), found[0].size() - end.size()) << found[0];
  EXPECT_NE(found[1].find("] error run: one"), std::string::npos);
  EXPECT_NE(found[2].find("] error run: two"), std::string::npos);
}

TEST_F(LogFile, ManyWriteWholeLines) {
  constexpr int kThreads = 4, kLines = 200;
  {
    Log a(asked("debug")), b(asked("debug"));
    a.open("2");
    b.open("2");
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kLines; ++i)
          (t % 2 == 0 ? a : b)
              .debug(LogTopic::Run, "line " + std::to_string(t * kLines + i));
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  std::set<std::string> seen;
  for (const std::string &line : lines())
    seen.insert(line.substr(line.find("line ")));
  EXPECT_EQ(lines().size(), size_t(kThreads * kLines));
  EXPECT_EQ(seen.size(), size_t(kThreads * kLines));
}

TEST_F(LogFile, AFolderThatIsNotThereIsAnError) {
  Log log(Environment(Variables{{"TAKT_LOG_FILE", path + ".none/log"}}));
  try {
    log.open("0");
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::BadInput);
    EXPECT_NE(std::string(error.what()).find("TAKT_LOG_FILE"),
              std::string::npos);
  }
}

} // namespace
} // namespace takt::rt
