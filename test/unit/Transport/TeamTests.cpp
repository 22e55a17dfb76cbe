//===- TeamTests.cpp - what processes agree on ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Gather and broadcast over mailboxes of every size of text, their ends by
// failure and by time; emulated links; the mailboxes that a plan needs.
//
//===----------------------------------------------------------------------===//

#include "MessageStream.h"

#include "takt-rt/core/error.h"
#include "takt-rt/transport/patience.h"
#include "takt-rt/transport/shared_memory.h"
#include "takt-rt/transport/team.h"
#include "takt-rt/transport/threads.h"

#include <gtest/gtest.h>

#include <thread>

namespace takt::rt::test {
namespace {

/// Team mailboxes between ranks that are threads.
class TeamExchange final : public Exchange {
public:
  explicit TeamExchange(int32_t size) : bells(size) {
    for (int32_t r = 1; r < size; ++r)
      for (BoxKey key :
           {BoxKey{BoxOwner::Team, 0, r, 0}, BoxKey{BoxOwner::Team, 0, 0, r}})
        boxes[key] =
            std::make_unique<ThreadMailbox>(&bells[key.from], &bells[key.to]);
  }
  Bell &bell(int32_t rank) override { return bells[rank]; }
  void ringAll() override {
    for (Bell &bell : bells)
      bell.ring();
  }

private:
  std::vector<Bell> bells;
};

template <typename Body>
void onAll(int32_t size, TeamExchange &exchange, Interrupt &interrupt,
           double patience, const Body &body) {
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      TeamOfMany team(exchange, r, size, interrupt, [=] { return patience; });
      body(team);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Team, GathersAndBroadcasts) {
  constexpr int32_t kSize = 4;
  TeamExchange exchange(kSize);
  Interrupt interrupt;
  onAll(kSize, exchange, interrupt, 60, [](TeamOfMany &team) {
    for (size_t length : {0, 1, 1000, 300000}) {
      std::vector<std::string> all =
          team.gather(std::string(length, char('a' + team.rank())));
      if (team.rank() == 0) {
        ASSERT_EQ(all.size(), size_t(kSize));
        for (int32_t r = 0; r < kSize; ++r)
          EXPECT_EQ(all[r], std::string(length, char('a' + r)));
      } else {
        EXPECT_TRUE(all.empty());
      }
      std::string said(length, 'z');
      EXPECT_EQ(team.broadcast(team.rank() == 0 ? said : "mine"), said);
    }
  });
}

TEST(Team, AWaitThatIsTooLongNamesTheRanks) {
  TeamExchange exchange(3);
  Interrupt interrupt;
  TeamOfMany team(exchange, 0, 3, interrupt, [] { return 0.02; });
  try {
    team.gather("");
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::Timeout);
    EXPECT_NE(std::string(error.what()).find("ranks 1, 2"), std::string::npos)
        << error.what();
  }
}

TEST(Team, AnInterruptEndsAWait) {
  TeamExchange exchange(2);
  Interrupt interrupt;
  std::thread later([&] {
    interrupt.raise(Error("rank 1 failed: x", ExitCode::PeerFailed));
    interrupt.raise(Error("and later"));
    exchange.ringAll();
  });
  TeamOfMany team(exchange, 0, 2, interrupt, [] { return 60; });
  try {
    team.gather("");
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "rank 1 failed: x");
  }
  later.join();
}

TEST(Patience, GrowsWithSteps) {
  Patience patience(30, 20, 1'000'000'000);
  EXPECT_EQ(patience.seconds(), 30);
  patience.sawStep(2'000'000'000);
  EXPECT_EQ(patience.seconds(), 40);
  patience.sawStep(1);
  EXPECT_EQ(patience.seconds(), 40);
  Patience fixed(5);
  fixed.sawStep(1'000'000'000'000);
  EXPECT_EQ(fixed.seconds(), 5);
}

// No message is there before its link could have brought it, and it says when
// to look again.
TEST(Emulation, HoldsMessagesUp) {
  ThreadMailbox box(nullptr, nullptr);
  Emulation link{{"slow", 2'000'000, 1e6}, 0.5, 0};
  EXPECT_EQ(link.time(4000), 3'000'000);
  box.emulate(link);
  std::vector<float> from(1000, 1), to(1000);
  Sending send(box, from.data(), 4000);
  EXPECT_FALSE(send.poll());
  MoveTime begin = std::chrono::steady_clock::now();
  Receiving recv(box, to.data(), 4000, Take::Copy);
  EXPECT_EQ(recv.wakeAt(), MoveTime::max());
  bool done = recv.poll();
  MoveTime wake = recv.wakeAt();
  if (!done) {
    EXPECT_GE(wake, begin + std::chrono::nanoseconds(3'000'000));
    EXPECT_EQ(to[0], 0);
  }
  Bell bell;
  while (!recv.poll())
    bell.wait(bell.rings(), 0, recv.wakeAt());
  EXPECT_GE(std::chrono::steady_clock::now() - begin,
            std::chrono::nanoseconds(3'000'000));
  EXPECT_EQ(to[999], 1);
  EXPECT_TRUE(send.poll());
  EXPECT_EQ(recv.wakeAt(), MoveTime::max());
  // Both ends agree on when the link began, and not on when it ended.
  EXPECT_EQ(send.movedAt(), recv.movedAt());
  EXPECT_LE(recv.movedAt() + std::chrono::nanoseconds(3'000'000),
            std::chrono::steady_clock::now());
}

/// Takes a message a link's time after both ends were there, in the first look.
void takeLate(Mailbox &sender, Mailbox &receiver) {
  constexpr auto kTime = std::chrono::milliseconds(3);
  Emulation link{{}, 1, kTime / std::chrono::nanoseconds(1)};
  receiver.emulate(link);
  std::vector<float> from(100, 1), to(100);
  Sending send(sender, from.data(), 400);
  EXPECT_FALSE(send.poll());
  MoveTime offered = std::chrono::steady_clock::now();
  Receiving recv(receiver, to.data(), 400, Take::Copy);
  std::this_thread::sleep_for(kTime); // a kernel
  EXPECT_TRUE(recv.poll());
  EXPECT_EQ(to[99], 1);
  EXPECT_GE(recv.movedAt(), offered);
  EXPECT_LE(recv.movedAt() + kTime, std::chrono::steady_clock::now());
}

// A link works while its receiver computes.
TEST(Emulation, BeginsWhenBothEndsAreThere) {
  ThreadMailbox threads(nullptr, nullptr);
  takeLate(threads, threads);
  SharedBox box;
  std::vector<std::byte> window(4096);
  SharedMailbox shared(box, window.data(), window.size(), nullptr, nullptr);
  takeLate(shared, shared);
}

TEST(Emulation, AFixedTimeCountsWhateverTheSize) {
  Emulation link{{"any", 1, 0}, 1, 500};
  EXPECT_EQ(link.time(0), 500);
  EXPECT_EQ(link.time(1 << 20), 500);
}

} // namespace
} // namespace takt::rt::test
