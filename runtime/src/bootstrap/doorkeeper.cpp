//===- doorkeeper.cpp - who may connect -----------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Three messages of fixed size: challenge (magic, nonce), introduction (magic,
// purpose, rank, index, proof), welcome (proof). Numbers are little-endian.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/doorkeeper.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace takt::rt {

namespace {
constexpr char kMagic[9] = "TAKTDOR2";

struct Challenge {
  char magic[8];
  uint8_t nonce[32];
};
struct Introduction {
  char magic[8];
  uint32_t purpose;
  int32_t rank;
  uint32_t index;
  uint32_t unused;
  uint8_t proof[32];
};
struct Welcome {
  uint8_t proof[32];
};
static_assert(sizeof(Challenge) == 40 && sizeof(Introduction) == 56);

constexpr size_t kMostNewcomers = 256;
constexpr double kPatience = 10; // seconds until a newcomer must have answered

Digest proofOf(const std::string &token, const uint8_t (&nonce)[32],
               const Introduction &said, const char *side) {
  std::string message = side;
  message.append(reinterpret_cast<const char *>(nonce), sizeof(nonce));
  message.append(reinterpret_cast<const char *>(&said),
                 offsetof(Introduction, proof));
  return hmacSha256(token, message);
}

/// A proof as bytes of a message.
Digest digestOf(const uint8_t (&bytes)[32]) {
  Digest digest;
  std::copy(std::begin(bytes), std::end(bytes), digest.begin());
  return digest;
}
} // namespace

void introduce(Socket &socket, const std::string &token, Purpose purpose,
               int32_t rank, uint32_t index, Deadline deadline) {
  Challenge challenge;
  socket.readAll(&challenge, sizeof(challenge), deadline);
  if (std::memcmp(challenge.magic, kMagic, sizeof(challenge.magic)) != 0)
    throw Error(fmt::format("{} is no takt-run: it speaks another protocol",
                            socket.peerName()),
                ExitCode::Communication);
  Introduction said{};
  std::memcpy(said.magic, kMagic, sizeof(said.magic));
  said.purpose = uint32_t(purpose);
  said.rank = rank;
  said.index = index;
  Digest proof = proofOf(token, challenge.nonce, said, "visitor");
  std::copy(proof.begin(), proof.end(), said.proof);
  socket.writeAll(&said, sizeof(said), deadline);
  Welcome welcome;
  try {
    socket.readAll(&welcome, sizeof(welcome), deadline);
  } catch (const ConnectionReset &) {
    throw; // closed without having read what we said: no judgement of it
  } catch (const Error &error) {
    throw Error(fmt::format("not let in, does it have the same token? {}",
                            error.what()),
                error.code());
  }
  if (!equalInConstantTime(digestOf(welcome.proof),
                           proofOf(token, challenge.nonce, said, "host")))
    throw Error(
        fmt::format("{} does not know this run's token", socket.peerName()),
        ExitCode::Communication);
}

Doorkeeper::Doorkeeper(Socket listening, std::string token, Purpose purpose,
                       Log log)
    : listening(std::move(listening)), token(std::move(token)),
      purpose(purpose), log(std::move(log)) {}

void Doorkeeper::watched(std::vector<int> &fds) const {
  fds.push_back(listening.fd());
  for (const Newcomer &newcomer : newcomers)
    fds.push_back(newcomer.socket.fd());
}

void Doorkeeper::greet(Socket socket) {
  socket.prepare();
  if (newcomers.size() == kMostNewcomers) {
    turnAway(newcomers.front(), "too many that do not answer");
    newcomers.erase(newcomers.begin());
  }
  std::string name = socket.peerName();
  Newcomer newcomer{std::move(socket), std::move(name), randomDigest(), "",
                    deadlineIn(kPatience)};
  Challenge challenge;
  std::memcpy(challenge.magic, kMagic, sizeof(challenge.magic));
  std::copy(newcomer.nonce.begin(), newcomer.nonce.end(), challenge.nonce);
  // The empty buffer of a new connection takes it whole, or the other end has
  // gone.
  if (send(newcomer.socket.fd(), &challenge, sizeof(challenge),
           MSG_NOSIGNAL | MSG_DONTWAIT) == ssize_t(sizeof(challenge)))
    newcomers.push_back(std::move(newcomer));
}

std::vector<Visitor> Doorkeeper::look() {
  std::vector<Visitor> in;
  for (;;) {
    int fd =
        accept4(listening.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
      break; // nobody more, or no descriptor left: those who knock wait
    greet(Socket(fd));
  }
  for (size_t i = 0; i < newcomers.size();) {
    if (listenTo(newcomers[i], in) == Verdict::Waits)
      ++i;
    else
      newcomers.erase(newcomers.begin() + i);
  }
  return in;
}

Doorkeeper::Verdict Doorkeeper::listenTo(Newcomer &newcomer,
                                         std::vector<Visitor> &in) {
  char buffer[sizeof(Introduction)];
  size_t missing = sizeof(buffer) - newcomer.said.size();
  ssize_t got = recv(newcomer.socket.fd(), buffer, missing, MSG_DONTWAIT);
  if (got > 0)
    newcomer.said.append(buffer, size_t(got));
  bool gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK &&
                           errno != EINTR);
  if (newcomer.said.size() < sizeof(Introduction)) {
    bool late = std::chrono::steady_clock::now() > newcomer.patience;
    if (!gone && !late)
      return Verdict::Waits;
    turnAway(newcomer, gone ? "left without a word" : "did not answer");
    return Verdict::Leaves;
  }
  Introduction said;
  std::memcpy(&said, newcomer.said.data(), sizeof(said));
  uint8_t nonce[32];
  std::copy(newcomer.nonce.begin(), newcomer.nonce.end(), nonce);
  bool knows = equalInConstantTime(digestOf(said.proof),
                                   proofOf(token, nonce, said, "visitor")) &&
               std::memcmp(said.magic, kMagic, sizeof(said.magic)) == 0 &&
               said.purpose == uint32_t(purpose);
  if (!knows) {
    turnAway(newcomer, "does not know the token");
    return Verdict::Leaves;
  }
  Digest proof = proofOf(token, nonce, said, "host");
  Welcome welcome;
  std::copy(proof.begin(), proof.end(), welcome.proof);
  if (send(newcomer.socket.fd(), &welcome, sizeof(welcome),
           MSG_NOSIGNAL | MSG_DONTWAIT) != ssize_t(sizeof(welcome)))
    return Verdict::Leaves;
  in.push_back({std::move(newcomer.socket), said.rank, said.index});
  return Verdict::Enters;
}

void Doorkeeper::turnAway(const Newcomer &newcomer, const char *why) {
  ++turnedAway;
  if (log && (turnedAway & (turnedAway - 1)) == 0)
    log(fmt::format("turned away a stranger from {}: {}; {} so far",
                    newcomer.name, why, strangers()));
}

} // namespace takt::rt
