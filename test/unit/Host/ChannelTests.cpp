//===- ChannelTests.cpp - mailboxes, rings and bells ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Rendezvous rules one poll at a time on a single thread, and the ring
// all-reduce over threads.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/core/error.h"
#include "takt-rt/data/random.h"
#include "takt-rt/transport/ring_all_reduce.h"
#include "takt-rt/transport/threads.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace takt::rt {
namespace {

TEST(Mailbox, SendEndsOnlyWhenTaken) {
  ThreadMailbox box(nullptr, nullptr);
  int32_t value = 7, taken = 0;
  Sending send(box, &value, 4);
  EXPECT_FALSE(send.poll());
  EXPECT_FALSE(send.poll());
  Receiving recv(box, &taken, 4, Take::Copy);
  EXPECT_EQ(taken, 0);
  EXPECT_TRUE(recv.poll());
  EXPECT_EQ(taken, 7);
  EXPECT_TRUE(send.poll());
  EXPECT_TRUE(recv.poll());
}

// Both ends agree on when the data began to move, whenever they notice.
TEST(Mailbox, BothEndsSeeTheSameMove) {
  ThreadMailbox box(nullptr, nullptr);
  int32_t value = 7, taken = 0;
  Sending send(box, &value, 4);
  EXPECT_FALSE(send.poll());
  Receiving recv(box, &taken, 4, Take::Copy);
  auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(recv.poll());
  auto after = std::chrono::steady_clock::now();
  EXPECT_TRUE(send.poll());
  EXPECT_EQ(send.movedAt(), recv.movedAt());
  EXPECT_GE(send.movedAt(), before);
  EXPECT_LE(send.movedAt(), after);
}

TEST(Mailbox, ReceiveWaitsForTheOffer) {
  ThreadMailbox box(nullptr, nullptr);
  int32_t value = 7, taken = 0;
  Receiving recv(box, &taken, 4, Take::Copy);
  EXPECT_FALSE(recv.poll());
  Sending send(box, &value, 4);
  EXPECT_FALSE(recv.poll()); // begun but not offered
  EXPECT_FALSE(send.poll());
  EXPECT_TRUE(recv.poll());
  EXPECT_TRUE(send.poll());
}

TEST(Mailbox, MessagesPairInTheOrderTheyBegan) {
  ThreadMailbox box(nullptr, nullptr);
  int32_t values[2] = {1, 2}, taken[2] = {};
  Sending first(box, &values[0], 4), second(box, &values[1], 4);
  Receiving early(box, &taken[0], 4, Take::Copy);
  Receiving late(box, &taken[1], 4, Take::Copy);
  EXPECT_FALSE(second.poll()); // must not overtake
  EXPECT_FALSE(late.poll());
  EXPECT_FALSE(early.poll());
  EXPECT_FALSE(first.poll());
  EXPECT_FALSE(late.poll());
  EXPECT_TRUE(early.poll());
  EXPECT_TRUE(first.poll());
  EXPECT_FALSE(second.poll());
  EXPECT_TRUE(late.poll());
  EXPECT_TRUE(second.poll());
  EXPECT_EQ(taken[0], 1);
  EXPECT_EQ(taken[1], 2);
}

TEST(Mailbox, SizesMustAgree) {
  ThreadMailbox box(nullptr, nullptr);
  int32_t value[2] = {}, taken = 0;
  Sending send(box, value, 8);
  EXPECT_FALSE(send.poll());
  Receiving recv(box, &taken, 4, Take::Copy);
  try {
    recv.poll();
    FAIL() << "8 bytes were received as 4";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::Communication);
  }
}

TEST(Bell, ARingBetweenLookAndWaitIsNotLost) {
  Bell bell;
  uint64_t seen = bell.rings();
  bell.ring();
  bell.wait(seen, 0); // returns at once, or the test hangs
  EXPECT_EQ(bell.rings(), seen + 1);
}

TEST(Bell, WakesASleeper) {
  Bell bell;
  uint64_t seen = bell.rings();
  std::thread sleeper([&] { bell.wait(seen, 0); });
  bell.ring();
  sleeper.join();
}

TEST(Bell, ManyMessagesThroughOneMailbox) {
  constexpr int32_t kMessages = 20000;
  Bell sender, receiver;
  ThreadMailbox box(&sender, &receiver);
  auto finish = [](auto &message, Bell &bell) {
    for (;;) {
      uint64_t seen = bell.rings();
      if (message.poll())
        return;
      bell.wait(seen, 0);
    }
  };
  std::thread other([&] {
    for (int32_t i = 0; i < kMessages; ++i) {
      Sending send(box, &i, sizeof(i));
      finish(send, sender);
    }
  });
  int64_t wrong = 0;
  for (int32_t i = 0; i < kMessages; ++i) {
    int32_t value = -1;
    Receiving recv(box, &value, sizeof(value), Take::Copy);
    finish(recv, receiver);
    wrong += value != i;
  }
  other.join();
  EXPECT_EQ(wrong, 0);
}

class Ring : public testing::TestWithParam<int> {};

/// Runs an all-reduce over `members` threads and returns each one's result.
std::vector<std::vector<float>> allReduce(int members, int64_t elements) {
  std::vector<std::vector<float>> data(members, std::vector<float>(elements));
  for (int m = 0; m < members; ++m)
    for (int64_t i = 0; i < elements; ++i)
      data[m][i] = float(normal(m, i));
  std::vector<Bell> bells(members);
  std::vector<std::unique_ptr<Mailbox>> boxes; // m to m + 1
  for (int m = 0; m < members; ++m)
    boxes.push_back(
        std::make_unique<ThreadMailbox>(&bells[m], &bells[(m + 1) % members]));
  std::vector<std::thread> threads;
  for (int m = 0; m < members; ++m)
    threads.emplace_back([&, m] {
      RingAllReduce ring(m, members, boxes[m].get(),
                         boxes[(m + members - 1) % members].get());
      // Twice, as a second operation must not meet the first one's messages.
      for (int round = 0; round < 2; ++round) {
        ring.begin(data[m].data(), elements);
        for (;;) {
          uint64_t seen = bells[m].rings();
          if (ring.poll())
            break;
          bells[m].wait(seen, 0);
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return data;
}

TEST_P(Ring, LeavesTheSameRightSumEverywhere) {
  int n = GetParam();
  for (int64_t elements : {1, 5, 64, 1003}) {
    std::vector<std::vector<float>> results = allReduce(n, elements);
    for (int m = 1; m < n; ++m)
      EXPECT_EQ(std::memcmp(results[0].data(), results[m].data(),
                            elements * sizeof(float)),
                0)
          << "member " << m << " of " << n;
    for (int64_t i = 0; i < elements; ++i) {
      double sum = 0;
      for (int m = 0; m < n; ++m)
        sum += float(normal(m, i));
      ASSERT_NEAR(results[0][i], sum * n, 1e-5 * n * n) << "element " << i;
    }
    EXPECT_EQ(results, allReduce(n, elements));
  }
}

TEST_P(Ring, SumsInTheOrderOfMembersWhateverTheSize) {
  int n = GetParam();
  for (int64_t elements : {1, 3, 64, 1003}) {
    std::vector<std::vector<float>> results = allReduce(n, elements);
    for (int64_t i = 0; i < elements; ++i) {
      float once = float(normal(0, i));
      for (int m = 1; m < n; ++m)
        once += float(normal(m, i));
      float twice = once;
      for (int m = 1; m < n; ++m)
        twice += once;
      ASSERT_EQ(results[0][i], twice) << "element " << i << " of " << elements;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Members, Ring, testing::Range(1, 9));

} // namespace
} // namespace takt::rt
