//===- DoorkeeperTests.cpp - who may connect ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Ranks with the token come in; strangers with random bytes, with nothing, with
// too much or with another token do not, and keep nobody out.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/doorkeeper.h"
#include "takt-rt/core/error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <thread>

namespace takt::rt {
namespace {

constexpr const char *kToken = "secret";

/// Keeps the door from a thread of its own.
class Door {
public:
  Door()
      : keeper(Socket::listenOn({"127.0.0.1", 0}), kToken, Purpose::Mailbox,
               [this](const std::string &line) { lines.push_back(line); }),
        thread([this] { keep(); }) {}
  ~Door() { end(); }
  void end() {
    quit = true;
    if (thread.joinable())
      thread.join();
  }
  Address address() const { return {"127.0.0.1", keeper.port()}; }

  std::vector<std::string> lines;
  std::vector<Visitor> visitors; // after `end`
  Doorkeeper keeper;

private:
  void keep() {
    while (!quit) {
      for (Visitor &visitor : keeper.look())
        visitors.push_back(std::move(visitor));
      std::vector<int> fds;
      keeper.watched(fds);
      std::vector<pollfd> waits;
      for (int fd : fds)
        waits.push_back({fd, POLLIN, 0});
      poll(waits.data(), waits.size(), 5);
    }
  }

  std::atomic<bool> quit{false};
  std::thread thread;
};

Socket visit(const Door &door, int32_t rank, uint32_t index,
             const std::string &token = kToken,
             Purpose purpose = Purpose::Mailbox) {
  Socket socket = Socket::connectTo(door.address(), deadlineIn(30));
  introduce(socket, token, purpose, rank, index, deadlineIn(30));
  return socket;
}

TEST(Doorkeeper, LetsInWhoKnowsTheToken) {
  Door door;
  Socket a = visit(door, 3, 17), b = visit(door, 1, 2);
  door.end();
  ASSERT_EQ(door.visitors.size(), 2u);
  EXPECT_EQ(door.visitors[0].rank, 3);
  EXPECT_EQ(door.visitors[0].index, 17u);
  EXPECT_EQ(door.visitors[1].rank, 1);
  EXPECT_EQ(door.keeper.strangers(), 0u);
}

TEST(Doorkeeper, TurnsAwayAnotherTokenAndAnotherPurpose) {
  Door door;
  EXPECT_THROW(visit(door, 0, 0, "another"), Error);
  EXPECT_THROW(visit(door, 0, 0, ""), Error);
  EXPECT_THROW(visit(door, 0, 0, kToken, Purpose::Store), Error);
  visit(door, 5, 0);
  door.end();
  ASSERT_EQ(door.visitors.size(), 1u);
  EXPECT_EQ(door.visitors[0].rank, 5);
  EXPECT_EQ(door.keeper.strangers(), 3u);
  EXPECT_EQ(door.lines.size(), 2u); // the first and the second
}

// A visitor checks its host too: one that says welcome without the token.
TEST(Doorkeeper, TheVisitorKnowsAFalseHost) {
  Socket listening = Socket::listenOn({"127.0.0.1", 0});
  Address address{"127.0.0.1", listening.localPort()};
  Doorkeeper other(std::move(listening), "another", Purpose::Mailbox, nullptr);
  std::atomic<bool> quit{false};
  std::thread keeping([&] {
    while (!quit)
      other.look();
  });
  Socket socket = Socket::connectTo(address, deadlineIn(30));
  EXPECT_THROW(
      introduce(socket, kToken, Purpose::Mailbox, 0, 0, deadlineIn(30)), Error);
  quit = true;
  keeping.join();
}

TEST(Doorkeeper, AHundredStrangersChangeNothing) {
  Door door;
  std::mt19937 random(7);
  std::vector<Socket> lingering;
  for (int i = 0; i < 100; ++i) {
    Socket socket = Socket::connectTo(door.address(), deadlineIn(30));
    std::string bytes(random() % 300, ' ');
    for (char &byte : bytes)
      byte = char(random());
    try {
      socket.writeAll(bytes.data(), bytes.size(), deadlineIn(30));
    } catch (const Error &) {
      // It was turned away before it had said everything.
    }
    if (i % 3 == 0) // some stay and say no more
      lingering.push_back(std::move(socket));
  }
  Socket socket = visit(door, 2, 9);
  lingering.clear();
  for (int i = 0; i < 2000 && door.keeper.strangers() < 100; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  door.end();
  ASSERT_EQ(door.visitors.size(), 1u);
  EXPECT_EQ(door.visitors[0].index, 9u);
  EXPECT_EQ(door.keeper.strangers(), 100u);
  EXPECT_LE(door.lines.size(), 7u);
}

// A recorded introduction is worth nothing on the next connection.
TEST(Doorkeeper, RepeatsAreStrangers) {
  Door door;
  Socket middle = Socket::connectTo(door.address(), deadlineIn(30));
  char challenge[40], introduction[56];
  middle.readAll(challenge, sizeof(challenge), deadlineIn(30));
  // The introduction of a true visitor, overheard.
  Socket listening = Socket::listenOn({"127.0.0.1", 0});
  Address false_{"127.0.0.1", listening.localPort()};
  std::thread visitor([&] {
    Socket socket = Socket::connectTo(false_, deadlineIn(30));
    EXPECT_THROW(
        introduce(socket, kToken, Purpose::Mailbox, 1, 1, deadlineIn(30)),
        Error);
  });
  pollfd wait{listening.fd(), POLLIN, 0};
  poll(&wait, 1, 30000);
  {
    Socket overheard(accept(listening.fd(), nullptr, nullptr));
    overheard.writeAll(challenge, sizeof(challenge), deadlineIn(30));
    overheard.readAll(introduction, sizeof(introduction), deadlineIn(30));
  }
  visitor.join();
  middle.writeAll(introduction, sizeof(introduction), deadlineIn(30));
  char welcome[32];
  middle.readAll(welcome, sizeof(welcome), deadlineIn(30)); // once it is good
  Socket again = Socket::connectTo(door.address(), deadlineIn(30));
  again.readAll(challenge, sizeof(challenge), deadlineIn(30));
  again.writeAll(introduction, sizeof(introduction), deadlineIn(30));
  EXPECT_THROW(again.readAll(welcome, sizeof(welcome), deadlineIn(30)), Error);
  door.end();
  EXPECT_EQ(door.visitors.size(), 1u);
  EXPECT_EQ(door.keeper.strangers(), 1u);
}

TEST(Address, ReadsAndWrites) {
  EXPECT_EQ(Address::parse("a.b:12").host, "a.b");
  EXPECT_EQ(Address::parse("[::1]:12").host, "::1");
  EXPECT_EQ(Address::parse("[::1]:12").text(), "[::1]:12");
  for (const char *wrong :
       {"", "a", "a:", ":1", "a:0", "a:65536", "a:1x", "a:-1", "a: 1"})
    EXPECT_THROW(Address::parse(wrong), Error) << wrong;
}

TEST(Socket, ConnectingToNobodyEndsWithItsDeadline) {
  Socket listening = Socket::listenOn({"127.0.0.1", 0});
  Address address{"127.0.0.1", listening.localPort()};
  listening = Socket();
  try {
    Socket::connectTo(address, deadlineIn(0.05));
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::Timeout);
  }
}

} // namespace
} // namespace takt::rt
