//===- SharedMemoryTests.cpp - messages in shared memory ------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The rendezvous rules one poll at a time; random messages through small
// windows between threads and between processes; what does not fit.
//
//===----------------------------------------------------------------------===//

#include "MessageStream.h"

#include "takt-rt/core/error.h"
#include "takt-rt/transport/shared_memory.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace takt::rt::test {
namespace {

/// A mailbox whose two ends are objects of their own, as in two processes.
struct Pair {
  explicit Pair(uint64_t window)
      : data(window), sends(box, data.data(), window, &sender, &receiver),
        receives(box, data.data(), window, &sender, &receiver) {}
  SharedBox box;
  std::vector<std::byte> data;
  Bell sender, receiver;
  SharedMailbox sends, receives;
};

TEST(SharedMailbox, SendEndsOnlyWhenTaken) {
  Pair pair(64);
  int32_t value = 7, taken = 0;
  Sending send(pair.sends, &value, 4);
  EXPECT_FALSE(send.poll());
  EXPECT_FALSE(send.poll());
  Receiving recv(pair.receives, &taken, 4, Take::Copy);
  EXPECT_EQ(taken, 0);
  EXPECT_TRUE(recv.poll());
  EXPECT_EQ(taken, 7);
  EXPECT_TRUE(send.poll());
  EXPECT_EQ(send.movedAt(), recv.movedAt());
}

TEST(SharedMailbox, LongMessagesGoInParts) {
  Pair pair(64);
  std::vector<char> from(200, 'x'), to(200);
  Sending send(pair.sends, from.data(), 200);
  Receiving recv(pair.receives, to.data(), 200, Take::Copy);
  EXPECT_FALSE(recv.poll());
  int rounds = 0;
  while (!recv.poll()) {
    EXPECT_FALSE(send.poll());
    ASSERT_LT(++rounds, 10);
  }
  EXPECT_EQ(from, to);
  EXPECT_TRUE(send.poll());
}

TEST(SharedMailbox, MessagesPairInTheOrderTheyBegan) {
  Pair pair(128);
  int32_t values[2] = {1, 2}, taken[2] = {};
  Sending first(pair.sends, &values[0], 4), second(pair.sends, &values[1], 4);
  Receiving early(pair.receives, &taken[0], 4, Take::Copy);
  Receiving late(pair.receives, &taken[1], 4, Take::Copy);
  EXPECT_FALSE(second.poll()); // must not overtake
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

TEST(SharedMailbox, SizesMustAgree) {
  Pair pair(64);
  int32_t value[2] = {}, taken = 0;
  Sending send(pair.sends, value, 8);
  EXPECT_FALSE(send.poll());
  Receiving recv(pair.receives, &taken, 4, Take::Copy);
  EXPECT_THROW(recv.poll(), Error);
}

class Windows : public testing::TestWithParam<uint64_t> {};

TEST_P(Windows, RandomMessagesBetweenThreads) {
  Pair pair(GetParam());
  std::thread other(
      [&] { sendStream(pair.sends, pair.sender, /*seed=*/GetParam(), 400); });
  EXPECT_EQ(wrongInStream(pair.receives, pair.receiver, GetParam(), 400), 0);
  other.join();
}

// The same between processes, over a segment that has lost its name.
TEST_P(Windows, RandomMessagesBetweenProcesses) {
  std::vector<BoxSpec> specs{{{BoxOwner::Channel, 0, 0, 1}, 4096, {}},
                             {{BoxOwner::Channel, 0, 1, 0}, 4096, {}}};
  NodeLayout layout(specs, {0, 1}, GetParam());
  std::string name = "/takt-test-" + std::to_string(getpid());
  Segment segment = Segment::create(name, layout.bytes());
  layout.makeIn(segment);
  pid_t child = fork();
  if (child == 0) {
    Segment opened = Segment::open(name);
    layout.checkIn(opened);
    auto out = layout.mailbox(opened, 1), in = layout.mailbox(opened, 0);
    Bell &bell = *layout.bell(opened, 1);
    int wrong = wrongInStream(*in, bell, 5, 300);
    sendStream(*out, bell, 6, 300);
    _exit(wrong == 0 ? 0 : 1);
  }
  auto out = layout.mailbox(segment, 0), in = layout.mailbox(segment, 1);
  Bell &bell = *layout.bell(segment, 0);
  sendStream(*out, bell, 5, 300);
  EXPECT_EQ(wrongInStream(*in, bell, 6, 300), 0);
  segment.removeName();
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_THROW(Segment::open(name), Error);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Windows,
                         testing::Values(64, 192, 4096, 1 << 20));

TEST(NodeLayout, WindowsShrinkToTheRoom) {
  std::vector<BoxSpec> specs;
  for (int32_t r = 0; r < 4; ++r)
    specs.push_back(
        {{BoxOwner::Channel, uint16_t(r), r, (r + 1) % 4}, 1 << 20, {}});
  std::vector<int32_t> ranks{0, 1, 2, 3};
  for (uint64_t room : {64u << 20, 3u << 20, 1u << 20, 100u << 10}) {
    uint64_t window = fittingWindow(specs, ranks, room);
    EXPECT_LE(NodeLayout(specs, ranks, window).bytes(), room) << room;
    EXPECT_EQ(window % kAlignment, 0u);
  }
  EXPECT_EQ(fittingWindow(specs, ranks, 64 << 20), 1u << 20);
  // A page is the least; whether that fits shows when the segment is made.
  EXPECT_EQ(fittingWindow(specs, ranks, 0), 4096u);
}

TEST(NodeLayout, OnlyMailboxesInsideTheNode) {
  std::vector<BoxSpec> specs{{{BoxOwner::Channel, 0, 0, 1}, 64, {}},
                             {{BoxOwner::Channel, 0, 1, 2}, 64, {}},
                             {{BoxOwner::Channel, 0, 2, 3}, 64, {}}};
  EXPECT_EQ(NodeLayout(specs, {0, 1}, 4096).specs().size(), 1u);
  EXPECT_EQ(NodeLayout(specs, {1, 2, 3}, 4096).specs().size(), 2u);
}

TEST(NodeLayout, AnotherLayoutIsRefused) {
  std::vector<BoxSpec> specs{{{BoxOwner::Channel, 0, 0, 1}, 64, {}}};
  NodeLayout one(specs, {0, 1}, 4096), other(specs, {0, 1}, 8192);
  std::string name = "/takt-test-layout-" + std::to_string(getpid());
  Segment segment = Segment::create(name, one.bytes());
  segment.removeName();
  EXPECT_THROW(one.checkIn(segment), Error); // nothing is in it yet
  one.makeIn(segment);
  one.checkIn(segment);
  EXPECT_THROW(other.checkIn(segment), Error);
}

// A name that a process left when it was killed goes, one of a process that
// lives stays.
TEST(Segment, NamesOfTheDeadAreTakenAway) {
  std::string prefix = "/takt-test-dead-" + std::to_string(getpid());
  Segment living = Segment::create(prefix + "-living", 4096);
  pid_t child = fork();
  if (child == 0) {
    Segment segment = Segment::create(prefix + "-dead", 4096);
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(Segment::open(prefix + "-dead").size(), 4096u);
  Segment::removeAbandoned(prefix);
  EXPECT_THROW(Segment::open(prefix + "-dead"), Error);
  EXPECT_EQ(Segment::open(prefix + "-living").size(), 4096u);
  living.removeName();
  EXPECT_THROW(Segment::open(prefix + "-living"), Error);
}

TEST(Segment, NoRoomIsAMessage) {
  std::string name = "/takt-test-room-" + std::to_string(getpid());
  try {
    Segment::create(name, size_t(1) << 46);
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::DoesNotFit);
  }
  EXPECT_THROW(Segment::open(name), Error); // no name is left behind
}

} // namespace
} // namespace takt::rt::test
