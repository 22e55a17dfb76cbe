//===- StoreTests.cpp - what processes tell each other --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The same promises from a store over TCP and one in a folder; what a server
// does with those that die or talk nonsense.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/session.h"
#include "takt-rt/bootstrap/store.h"
#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <poll.h>
#include <random>
#include <set>

namespace takt::rt {
namespace {

namespace fs = std::filesystem;

constexpr const char *kToken = "secret";

class Folder {
public:
  Folder() {
    path = fs::temp_directory_path() /
           ("takt-store-" + hex(randomDigest()).substr(0, 12));
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

/// Stores of all ranks of a run, of one kind.
class Members {
public:
  Members(bool tcp, int32_t size) {
    if (tcp)
      server = std::make_unique<StoreServer>(Socket::listenOn({"127.0.0.1", 0}),
                                             kToken, nullptr);
    stores.resize(size);
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < size; ++r)
      threads.emplace_back([&, r] {
        if (tcp)
          stores[r] =
              std::make_unique<TcpStore>(Address{"127.0.0.1", server->port()},
                                         kToken, r, deadlineIn(30), 30);
        else
          stores[r] = std::make_unique<FolderStore>(folder.path, r, size,
                                                    deadlineIn(30));
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  Folder folder;
  std::unique_ptr<StoreServer> server;
  std::vector<std::unique_ptr<Store>> stores;
};

class AnyStore : public testing::TestWithParam<bool> {};

TEST_P(AnyStore, AllSeeWhatOneSets) {
  Members run(GetParam(), 3);
  EXPECT_FALSE(run.stores[2]->get("a/1"));
  run.stores[0]->set("a/1", "one");
  EXPECT_EQ(run.stores[2]->get("a/1"), "one");
  run.stores[1]->set("a/1", "");
  EXPECT_EQ(run.stores[2]->get("a/1"), "");
  std::string binary("x\0y\n\xff", 5);
  run.stores[1]->set("b", binary);
  EXPECT_EQ(run.stores[0]->get("b"), binary);
}

TEST_P(AnyStore, TheFirstOfManyCounts) {
  Members run(GetParam(), 4);
  std::vector<std::future<std::string>> results;
  for (int32_t r = 0; r < 4; ++r)
    results.push_back(std::async(std::launch::async, [&, r] {
      return run.stores[r]->setFirst("winner", std::to_string(r));
    }));
  std::set<std::string> winners;
  for (auto &result : results)
    winners.insert(result.get());
  EXPECT_EQ(winners.size(), 1u);
  EXPECT_EQ(run.stores[0]->get("winner"), *winners.begin());
}

TEST_P(AnyStore, WaitingNamesWhoIsMissing) {
  Members run(GetParam(), 2);
  run.stores[0]->set("x/1", "");
  try {
    waitForAll(*run.stores[0], "x", {0, 1, 2, 5}, deadlineIn(0.02), "meeting");
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(),
                 "meeting: ranks 0, 2 and 5 did not come in time");
    EXPECT_EQ(error.code(), ExitCode::Timeout);
  }
  std::thread later([&] { run.stores[1]->set("y/7", "here"); });
  EXPECT_EQ(waitForAll(*run.stores[0], "y", {7}, deadlineIn(30), "").at(0),
            "here");
  later.join();
}

TEST_P(AnyStore, WaitingEndsWhenTheRunFails) {
  Members run(GetParam(), 2);
  run.stores[1]->setFirst(kAbortKey, Abort{1, 11, "a link\nis cut"}.text());
  try {
    waitForAll(*run.stores[0], "x", {0}, deadlineIn(30), "meeting");
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::PeerFailed);
    EXPECT_NE(std::string(error.what()).find("a link\nis cut"),
              std::string::npos);
  }
}

// Whoever leaves in order without what others wait for is named at once.
TEST_P(AnyStore, WaitingEndsWhenTheRankHasLeft) {
  Members run(GetParam(), 3);
  run.stores[1]->set("x/1", "said before");
  for (int32_t rank : {1, 2})
    run.stores[rank]->set(leftKey(rank), "");
  EXPECT_EQ(waitForAll(*run.stores[0], "x", {1}, deadlineIn(3600), "reports"),
            std::vector<std::string>{"said before"});
  try {
    waitForAll(*run.stores[0], "x", {0, 1, 2}, deadlineIn(3600), "reports");
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "reports: rank 2 left without a word of it");
    EXPECT_EQ(error.code(), ExitCode::Communication);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AnyStore, testing::Bool(),
                         [](const auto &info) {
                           return info.param ? "Tcp" : "Folder";
                         });

TEST(Abort, ReadsWhatItWrites) {
  Abort abort = *Abort::parse(Abort{-1, 13, "why not? 1 2"}.text());
  EXPECT_EQ(abort.rank, -1);
  EXPECT_EQ(abort.code, 13);
  EXPECT_EQ(abort.what, "why not? 1 2");
  for (const char *wrong : {"", "1", "1 ", "x 1 y", "1 x y", "1 2"})
    EXPECT_FALSE(Abort::parse(wrong)) << wrong;
}

TEST(StoreServer, TakesAnEndWithoutGoodByeForADeath) {
  Members run(true, 3);
  run.stores[1]->leave();
  run.stores[1].reset();
  run.stores[2].reset();
  std::optional<std::string> text;
  for (int i = 0; i < 2000 && !text; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    text = run.stores[0]->get(kAbortKey);
  }
  ASSERT_TRUE(text);
  EXPECT_EQ(Abort::parse(*text)->rank, 2);
}

TEST(StoreServer, RefusesWhatIsTooLong) {
  Members run(true, 2);
  EXPECT_THROW(run.stores[1]->set(std::string(kMostKey + 1, 'k'), ""), Error);
  EXPECT_THROW(run.stores[1]->set("k", std::string(kMostValue + 1, 'v')),
               Error);
  std::string longest(kMostValue, 'v');
  run.stores[1]->set("k", longest);
  EXPECT_EQ(run.stores[0]->get("k"), longest);
}

/// Somebody with the token who sends nonsense is cut off; the others go on.
TEST(StoreServer, NonsenseEndsItsConnectionOnly) {
  StoreServer server(Socket::listenOn({"127.0.0.1", 0}), kToken, nullptr);
  Address address{"127.0.0.1", server.port()};
  TcpStore good(address, kToken, 0, deadlineIn(30), 30);
  std::mt19937 random(11);
  for (int i = 0; i < 100; ++i) {
    Socket socket = Socket::connectTo(address, deadlineIn(30));
    introduce(socket, kToken, Purpose::Store, 9, 0, deadlineIn(30));
    std::string bytes(1 + random() % 100, ' ');
    for (char &byte : bytes)
      byte = char(random());
    if (i % 2 == 0) { // a whole frame, with anything in it
      uint32_t head[2] = {uint32_t(bytes.size()),
                          crc32c(0, bytes.data(), bytes.size())};
      bytes.insert(0, reinterpret_cast<char *>(head), sizeof(head));
    }
    socket.writeAll(bytes.data(), bytes.size(), deadlineIn(30));
    good.set("n", std::to_string(i));
    EXPECT_EQ(good.get("n"), std::to_string(i));
  }
}

// A bit that turns on the way to the store is the run's failure, not a value.
TEST(StoreServer, DamageOnTheWayIsSeen) {
  StoreServer server(Socket::listenOn({"127.0.0.1", 0}), kToken, nullptr);
  Address address{"127.0.0.1", server.port()};
  Socket socket = Socket::connectTo(address, deadlineIn(30));
  introduce(socket, kToken, Purpose::Store, 3, 0, deadlineIn(30));
  std::string body("s\1\0\0\0kvalue", 11);
  uint32_t head[2] = {uint32_t(body.size()),
                      crc32c(0, body.data(), body.size())};
  body.back() ^= 4;
  socket.writeAll(head, sizeof(head), deadlineIn(30));
  socket.writeAll(body.data(), body.size(), deadlineIn(30));
  char none;
  EXPECT_THROW(socket.readAll(&none, 1, deadlineIn(30)), Error);
  EXPECT_FALSE(server.get("k"));
  std::optional<Abort> abort = Abort::parse(server.get(kAbortKey).value_or(""));
  ASSERT_TRUE(abort);
  EXPECT_EQ(abort->rank, 3);
  EXPECT_EQ(abort->code, int(ExitCode::Communication));
}

TEST(TcpStore, WhoLosesTheServerIsTold) {
  auto server = std::make_unique<StoreServer>(
      Socket::listenOn({"127.0.0.1", 0}), kToken, nullptr);
  TcpStore store({"127.0.0.1", server->port()}, kToken, 0, deadlineIn(30), 30);
  server.reset();
  for (int i = 0; i < 2; ++i)
    try {
      store.get("a");
      FAIL();
    } catch (const Error &error) {
      EXPECT_EQ(error.code(), ExitCode::PeerFailed);
    }
}

// The door of a run that ends may close with somebody before it.
TEST(TcpStore, KnocksAgainWhereTheDoorWasClosed) {
  Socket closing = Socket::listenOn({"127.0.0.1", 0});
  uint16_t port = closing.localPort();
  auto store = std::async(std::launch::async, [port] {
    return std::make_unique<TcpStore>(Address{"127.0.0.1", port}, kToken, 0,
                                      deadlineIn(30), 30);
  });
  pollfd knocked{closing.fd(), POLLIN, 0};
  ASSERT_EQ(poll(&knocked, 1, 30'000), 1);
  closing = Socket();
  StoreServer server(Socket::listenOn({"127.0.0.1", port}), kToken, nullptr);
  store.get()->set("a", "b");
  EXPECT_EQ(server.get("a"), "b");
}

// What an earlier run left, ended in order or not, is never taken for this one.
TEST(FolderStore, IgnoresEarlierRuns) {
  Folder folder;
  for (int run = 0; run < 4; ++run) {
    std::unique_ptr<Store> zero, one;
    std::thread other([&] {
      one = std::make_unique<FolderStore>(folder.path, 1, 2, deadlineIn(30));
    });
    if (run % 2 == 1) // the other comes first
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    zero = std::make_unique<FolderStore>(folder.path, 0, 2, deadlineIn(30));
    other.join();
    EXPECT_FALSE(one->get("mark"));
    zero->set("mark", std::to_string(run));
    EXPECT_EQ(one->get("mark"), std::to_string(run));
    if (run >= 2) {
      one->set("left/1", "");
      one->leave();
      zero->set("left/0", "");
      zero->leave();
    }
  }
}

TEST(FolderStore, NamesTheMissing) {
  Folder folder;
  try {
    FolderStore alone(folder.path, 0, 4, deadlineIn(0.05));
    FAIL();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("ranks 1, 2 and 3"),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(fs::exists(folder.path)); // nothing is left behind
  EXPECT_THROW(FolderStore("/proc/takt", 0, 2, deadlineIn(0.05)), Error);
}

// A path that is misspelt is an error and not a new folder.
TEST(FolderStore, MakesNoParents) {
  Folder folder;
  try {
    FolderStore alone(folder.path / "meet", 0, 2, deadlineIn(30));
    FAIL();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("cannot make the folder"),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(fs::exists(folder.path));
}

/// Makes a file and its folder as old as that.
void putThere(const fs::path &file, std::chrono::hours age) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "1";
  auto then = fs::last_write_time(file) - age;
  fs::last_write_time(file, then);
  fs::last_write_time(file.parent_path(), then);
}

// What killed runs left goes with the next one, but no run that may live, nor
// what is somebody else's.
TEST(FolderStore, RemovesWhatDeadRunsLeft) {
  Folder folder;
  fs::path dead = folder.path / ("run-" + std::string(32, 'a'));
  fs::path alive = folder.path / ("run-" + std::string(32, 'b'));
  fs::path others = folder.path / "run-of-mine";
  putThere(dead / "hello.0", std::chrono::hours(2));
  putThere(alive / "hello.0", std::chrono::hours(2));
  std::ofstream(alive / "alive.0") << "2"; // a sign of life
  putThere(others / "hello.0", std::chrono::hours(2));
  std::thread other([&] { FolderStore(folder.path, 1, 2, deadlineIn(30)); });
  FolderStore zero(folder.path, 0, 2, deadlineIn(30));
  other.join();
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(alive));
  EXPECT_TRUE(fs::exists(others));
}

//===----------------------------------------------------------------------===//
// Sessions
//===----------------------------------------------------------------------===//

Identity member(int32_t rank, int32_t size, const std::string &where) {
  Identity identity;
  identity.rank = rank;
  identity.world = size;
  identity.rendezvous = where;
  identity.source = "the test";
  return identity;
}

/// What became of each rank's session, which is kept when it met the others.
std::vector<std::string> meet(std::vector<Identity> members,
                              std::vector<SessionOptions> options,
                              std::vector<std::unique_ptr<Session>> &sessions) {
  std::vector<std::string> errors(members.size());
  sessions.resize(members.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < members.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        options[i].startSeconds = 30;
        sessions[i] = std::make_unique<Session>(members[i], options[i]);
      } catch (const Error &error) {
        errors[i] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

TEST(Session, MeetsAndLeaves) {
  Folder folder;
  std::string where = "file:" + folder.path.string();
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<Identity> members{member(0, 3, where), member(1, 3, where),
                                member(2, 3, where)};
  members[2].node = 1; // as a launcher would say
  std::vector<std::string> errors =
      meet(members, std::vector<SessionOptions>(3), sessions);
  EXPECT_EQ(errors, std::vector<std::string>(3));
  EXPECT_EQ(sessions[0]->nodeRanks(), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(sessions[2]->nodeRanks(), std::vector<int32_t>{2});
  EXPECT_FALSE(sessions[0]->isOneNode());
  std::vector<std::thread> threads;
  for (auto &session : sessions)
    threads.emplace_back([&session] { session->leave(); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_FALSE(fs::exists(folder.path)); // nothing is left behind
}

TEST(Session, AnotherPlanVersionOrStartIsRefused) {
  for (std::string SessionOptions::*field :
       {&SessionOptions::planHash, &SessionOptions::version,
        &SessionOptions::start, &SessionOptions::agreed}) {
    Folder folder;
    std::string where = "file:" + folder.path.string();
    std::vector<SessionOptions> options(2);
    options[0].planHash = options[1].planHash = "same";
    options[0].version = options[1].version = "1.0";
    options[1].*field = "other";
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<std::string> errors =
        meet({member(0, 2, where), member(1, 2, where)}, options, sessions);
    EXPECT_FALSE(errors[0].empty() || errors[1].empty());
  }
}

TEST(Session, OptionsThatDifferAreNamed) {
  Folder folder;
  std::string where = "file:" + folder.path.string();
  std::vector<SessionOptions> options(2);
  options[0].agreed = "--steps 3\n--transport auto\n";
  options[1].agreed = "--steps 5\n--transport auto\n";
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::string> errors =
      meet({member(0, 2, where), member(1, 2, where)}, options, sessions);
  EXPECT_NE((errors[0] + errors[1]).find("'--steps 3'"), std::string::npos)
      << errors[0] << "; " << errors[1];
}

TEST(Session, WhoComesAfterTheFailureHearsIt) {
  uint16_t port = Socket::listenOn({"127.0.0.1", 0}).localPort();
  std::string where = "127.0.0.1:" + std::to_string(port);
  std::vector<SessionOptions> options(3);
  options[2].planHash = "other";
  std::vector<std::unique_ptr<Session>> sessions;
  auto early = std::async(std::launch::async, [&] {
    return meet({member(0, 3, where), member(1, 3, where)}, options, sessions);
  });
  // Nobody has failed before all have come; a second rank 1 makes them fail.
  std::vector<std::unique_ptr<Session>> none;
  std::string twice = meet({member(1, 3, where)}, {options[2]}, none)[0];
  std::string late = meet({member(2, 3, where)}, {options[0]}, none)[0];
  EXPECT_NE(late.find("say that they are rank 1"), std::string::npos) << late;
  std::vector<std::string> errors = early.get();
  EXPECT_NE((errors[0] + twice).find("say that they are rank 1"),
            std::string::npos);
}

TEST(Session, AFolderAsksForTheTokenToo) {
  Folder folder;
  std::string where = "file:" + folder.path.string();
  std::vector<Identity> members{member(0, 2, where), member(1, 2, where)};
  members[0].token = "a";
  members[1].token = "b";
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::string> errors =
      meet(members, std::vector<SessionOptions>(2), sessions);
  EXPECT_FALSE(errors[0].empty() || errors[1].empty());
  EXPECT_NE((errors[0] + errors[1]).find("token"), std::string::npos);
}

// A run that fails leaves nothing behind either, once all have heard it.
TEST(Session, AFailureLeavesNoFolder) {
  Folder folder;
  std::string where = "file:" + folder.path.string();
  std::vector<std::unique_ptr<Session>> sessions;
  meet({member(0, 3, where), member(1, 3, where), member(2, 3, where)},
       std::vector<SessionOptions>(3), sessions);
  std::vector<std::thread> threads;
  for (auto &session : sessions)
    threads.emplace_back([&session] {
      session->fail(Error("too hot", ExitCode::BadInput));
      session.reset();
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_FALSE(fs::exists(folder.path));
}

// A peer that is lost has failed, or else the connection has: in a folder that
// shows by signs of its life.
TEST(Session, ALostPeerThatLivesIsALostConnection) {
  for (bool lives : {false, true}) {
    Folder folder;
    std::string where = "file:" + folder.path.string();
    std::vector<SessionOptions> options(2);
    if (!lives)
      options[1].newsSeconds = 0.1;
    std::vector<std::unique_ptr<Session>> sessions;
    meet({member(0, 2, where), member(1, 2, where)}, options, sessions);
    if (lives)
      sessions[0]->watch([](const Abort &) {}, 60, [](const Abort &) {});
    Abort abort =
        sessions[1]->fail(Error("it has ended", ExitCode::PeerFailed));
    EXPECT_EQ(abort.rank, lives ? 1 : 0);
    EXPECT_EQ(abort.code,
              int(lives ? ExitCode::Communication : ExitCode::PeerFailed));
    EXPECT_EQ(abort.what,
              lives ? "it has ended" : "it has shown no life for 0.1 s");
    Abort later =
        sessions[0]->fail(Error("it has ended", ExitCode::PeerFailed));
    EXPECT_EQ(later.rank, abort.rank);
  }
}

TEST(Session, TheFirstFailureIsEveryones) {
  Folder folder;
  std::string where = "file:" + folder.path.string();
  std::vector<std::unique_ptr<Session>> sessions;
  meet({member(0, 3, where), member(1, 3, where), member(2, 3, where)},
       std::vector<SessionOptions>(3), sessions);
  std::promise<Abort> heard;
  sessions[2]->watch([&](const Abort &abort) { heard.set_value(abort); }, 60,
                     [](const Abort &) { FAIL(); });
  Abort first = sessions[1]->fail(Error("too hot", ExitCode::Communication));
  EXPECT_EQ(first.rank, 1);
  Abort later = sessions[0]->fail(Error("too cold", ExitCode::Timeout));
  EXPECT_EQ(later.rank, 1);
  Abort seen = heard.get_future().get();
  EXPECT_EQ(seen.rank, 1);
  EXPECT_EQ(seen.code, 11);
  EXPECT_EQ(seen.what, "too hot");
}

TEST(Session, WhoDoesNotEndIsOverdue) {
  Folder folder;
  std::string where = "file:" + folder.path.string();
  std::vector<std::unique_ptr<Session>> sessions;
  meet({member(0, 2, where), member(1, 2, where)},
       std::vector<SessionOptions>(2), sessions);
  std::promise<void> overdue;
  sessions[0]->watch([](const Abort &) {}, 0.01,
                     [&](const Abort &) { overdue.set_value(); });
  sessions[1]->fail(Error("done", ExitCode::Internal));
  overdue.get_future().get();
}

} // namespace
} // namespace takt::rt
