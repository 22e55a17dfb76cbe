//===- SocketTests.cpp - messages over TCP --------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The rendezvous rules over connections; random messages; and everything that
// damage, cut connections and wrong bytes can do.
//
//===----------------------------------------------------------------------===//

#include "MessageStream.h"

#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"
#include "takt-rt/transport/sockets.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>

#include <cstring>

namespace takt::rt::test {
namespace {

/// The two ends of a connection.
std::pair<Socket, Socket> connection() {
  Socket listening = Socket::listenOn({"127.0.0.1", 0});
  Socket one =
      Socket::connectTo({"127.0.0.1", listening.localPort()}, deadlineIn(30));
  pollfd wait{listening.fd(), POLLIN, 0};
  poll(&wait, 1, 30000);
  Socket other(accept(listening.fd(), nullptr, nullptr));
  other.prepare();
  return {std::move(one), std::move(other)};
}

/// A mailbox with both its ends in this process.
struct Pair {
  Pair() {
    auto [a, b] = connection();
    sends = std::make_unique<SocketMailbox>(
        std::move(a), SocketMailbox::End::Sends, 1, "to 1", &sender);
    receives = std::make_unique<SocketMailbox>(
        std::move(b), SocketMailbox::End::Receives, 0, "from 0", &receiver);
    thread.add(*sends);
    thread.add(*receives);
  }
  ~Pair() { thread.stop(); }
  Bell sender, receiver;
  std::unique_ptr<SocketMailbox> sends, receives;
  SocketThread thread;
};

/// A mailbox's receiving end, and the bare connection of its sender.
struct HalfPair {
  HalfPair() {
    auto [a, b] = connection();
    bare = std::move(a);
    box = std::make_unique<SocketMailbox>(
        std::move(b), SocketMailbox::End::Receives, 3, "channel 'x'", &bell);
    thread.add(*box);
  }
  ~HalfPair() { thread.stop(); }
  void write(const void *bytes, size_t count) {
    bare.writeAll(bytes, count, deadlineIn(30));
  }
  /// Receives `bytes`; the code it fails with, or Done.
  ExitCode receive(Bytes bytes, std::string *said = nullptr) {
    std::vector<char> to(bytes);
    Receiving recv(*box, to.data(), bytes, Take::Copy);
    try {
      finishMessage(recv, bell);
    } catch (const Error &error) {
      if (said)
        *said = error.what();
      return error.code();
    }
    return ExitCode::Done;
  }
  Bell bell;
  Socket bare;
  std::unique_ptr<SocketMailbox> box;
  SocketThread thread;
};

MessageHead headOf(const std::string &data, uint64_t turn = 0) {
  MessageHead head;
  head.kind = MessageHead::kData;
  head.turn = turn;
  head.size = data.size();
  head.dataCrc = crc32c(data);
  head.seal();
  return head;
}

TEST(SocketMailbox, SendEndsOnlyWhenTaken) {
  Pair pair;
  int32_t value = 7, taken = 0;
  Sending send(*pair.sends, &value, 4);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(send.poll());
    std::this_thread::yield();
  }
  Receiving recv(*pair.receives, &taken, 4, Take::Copy);
  finishMessage(recv, pair.receiver);
  EXPECT_EQ(taken, 7);
  finishMessage(send, pair.sender);
}

TEST(SocketMailbox, RandomMessages) {
  Pair pair;
  std::thread other([&] { sendStream(*pair.sends, pair.sender, 3, 500); });
  EXPECT_EQ(wrongInStream(*pair.receives, pair.receiver, 3, 500), 0);
  other.join();
}

TEST(SocketMailbox, MessagesBeyondTheBuffersOfTheSystem) {
  Pair pair;
  std::vector<float> from(8 << 20), to(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    from[i] = float(i);
  std::thread other([&] {
    Sending send(*pair.sends, from.data(), Bytes(from.size() * sizeof(float)));
    finishMessage(send, pair.sender);
  });
  Receiving recv(*pair.receives, to.data(), Bytes(to.size() * sizeof(float)),
                 Take::Copy);
  finishMessage(recv, pair.receiver);
  other.join();
  EXPECT_EQ(std::memcmp(from.data(), to.data(), from.size() * sizeof(float)),
            0);
}

TEST(SocketMailbox, SizesMustAgree) {
  HalfPair half;
  std::string data = "12345678", said;
  MessageHead head = headOf(data);
  half.write(&head, sizeof(head));
  EXPECT_EQ(half.receive(4, &said), ExitCode::Communication);
  EXPECT_NE(said.find("8 bytes meets a receive of 4"), std::string::npos);
}

TEST(SocketMailbox, ATrueMessageIsTaken) {
  HalfPair half;
  std::string data = "12345678";
  MessageHead head = headOf(data), answer;
  half.write(&head, sizeof(head));
  half.write(data.data(), data.size());
  EXPECT_EQ(half.receive(8), ExitCode::Done);
  half.bare.readAll(&answer, sizeof(answer), deadlineIn(30));
  EXPECT_TRUE(answer.isSound());
  EXPECT_EQ(answer.kind, MessageHead::kAnswer);
}

// Every bit of head and data counts.
TEST(SocketMailbox, OneWrongBitIsNoticed) {
  std::string data = "abcdefghijkl";
  MessageHead head = headOf(data);
  std::string whole(reinterpret_cast<char *>(&head), sizeof(head));
  whole += data;
  for (size_t bit = 0; bit < whole.size() * 8; bit += 3) {
    HalfPair half;
    std::string damaged = whole;
    damaged[bit / 8] = char(damaged[bit / 8] ^ (1 << (bit % 8)));
    half.write(damaged.data(), damaged.size());
    std::string said;
    EXPECT_EQ(half.receive(Bytes(data.size()), &said), ExitCode::Communication)
        << "bit " << bit;
    EXPECT_NE(said.find("rank 3"), std::string::npos) << said;
    EXPECT_NE(said.find("channel 'x'"), std::string::npos) << said;
  }
}

TEST(SocketMailbox, RandomBytesAreDamage) {
  std::mt19937 random(1);
  for (int i = 0; i < 50; ++i) {
    HalfPair half;
    std::string bytes(sizeof(MessageHead) + random() % 100, ' ');
    for (char &byte : bytes)
      byte = char(random());
    half.write(bytes.data(), bytes.size());
    EXPECT_EQ(half.receive(16), ExitCode::Communication);
  }
}

TEST(SocketMailbox, AMessageOutOfItsTurnIsDamage) {
  HalfPair half;
  MessageHead head = headOf("1234", 1);
  half.write(&head, sizeof(head));
  EXPECT_EQ(half.receive(4), ExitCode::Communication);
}

TEST(SocketMailbox, TheEndOfAConnectionIsAPeerThatFailed) {
  for (size_t part : {0u, 10u, 32u, 36u}) { // nothing, in the head, the data
    HalfPair half;
    std::string data = "12345678", said;
    MessageHead head = headOf(data);
    std::string whole(reinterpret_cast<char *>(&head), sizeof(head));
    whole += data;
    half.write(whole.data(), part);
    half.bare = Socket();
    EXPECT_EQ(half.receive(8, &said), ExitCode::PeerFailed) << part;
    EXPECT_NE(said.find("rank 3"), std::string::npos) << said;
  }
}

TEST(SocketMailbox, AnAnswerToNothingIsDamage) {
  auto [a, b] = connection();
  Bell bell;
  SocketMailbox box(std::move(a), SocketMailbox::End::Sends, 2, "to 2", &bell);
  SocketThread thread;
  thread.add(box);
  MessageHead answer;
  answer.kind = MessageHead::kAnswer;
  answer.seal();
  b.writeAll(&answer, sizeof(answer), deadlineIn(30));
  uint32_t none = 0;
  while (bell.rings() == none)
    std::this_thread::yield();
  int32_t value = 1;
  Sending send(box, &value, 4);
  EXPECT_THROW(send.poll(), Error);
  thread.stop();
}

// Messages of one connection do not wait for those of another.
TEST(SocketMailbox, ManyAtOnce) {
  constexpr int kPairs = 8;
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < kPairs; ++i)
    pairs.push_back(std::make_unique<Pair>());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < kPairs; ++i) {
    threads.emplace_back(
        [&, i] { sendStream(*pairs[i]->sends, pairs[i]->sender, i, 100); });
    threads.emplace_back([&, i] {
      wrong += wrongInStream(*pairs[i]->receives, pairs[i]->receiver, i, 100);
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

} // namespace
} // namespace takt::rt::test
