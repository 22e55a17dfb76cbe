//===- tcp_store.cpp - a store served over TCP ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The client's side of the store's protocol: one request and its answer at a
// time.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/store.h"

#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <thread>

namespace takt::rt {

TcpStore::TcpStore(const Address &server, const std::string &token,
                   int32_t rank, Deadline deadline, double patience)
    : server(server.text()), patience(patience) {
  // A run that ends closes its door with some still before it: whoever is reset
  // there knocks again, until somebody listens or the time is over.
  constexpr auto kPause = std::chrono::milliseconds(20);
  for (;;) {
    try {
      socket = Socket::connectTo(server, deadline);
      introduce(socket, token, Purpose::Store, rank, 0, deadline);
      return;
    } catch (const Error &error) {
      bool reset = dynamic_cast<const ConnectionReset *>(&error) != nullptr;
      if (!reset || std::chrono::steady_clock::now() >= deadline)
        throw Error(
            fmt::format("rendezvous at '{}': {}", this->server, error.what()),
            reset ? ExitCode::Timeout : error.code());
    }
    std::this_thread::sleep_for(kPause);
  }
}

std::string TcpStore::ask(char what, const std::string &key,
                          const std::string &value) {
  if (key.size() > kMostKey || value.size() > kMostValue)
    throw Error(fmt::format("'{}' is too long for the rendezvous store", key),
                ExitCode::Internal);
  std::string frame(3 * sizeof(uint32_t) + 1, what);
  uint32_t keyLength = uint32_t(key.size());
  uint32_t length = uint32_t(1 + sizeof(keyLength) + key.size() + value.size());
  frame.replace(0, sizeof(length), reinterpret_cast<char *>(&length),
                sizeof(length));
  frame.replace(2 * sizeof(length) + 1, sizeof(keyLength),
                reinterpret_cast<char *>(&keyLength), sizeof(keyLength));
  frame += key;
  frame += value;
  uint32_t check = crc32c(0, frame.data() + 2 * sizeof(length), length);
  frame.replace(sizeof(length), sizeof(check), reinterpret_cast<char *>(&check),
                sizeof(check));
  std::lock_guard<std::mutex> lock(mutex);
  if (broken)
    throw Error(fmt::format("the rendezvous at '{}' is lost", server),
                ExitCode::PeerFailed);
  try {
    Deadline deadline = deadlineIn(patience);
    socket.writeAll(frame.data(), frame.size(), deadline);
    socket.readAll(&length, sizeof(length), deadline);
    socket.readAll(&check, sizeof(check), deadline);
    if (length < 1 || length > kMostValue + 1)
      throw Error("an answer that is none", ExitCode::Communication);
    std::string answer(length, ' ');
    socket.readAll(answer.data(), answer.size(), deadline);
    if (check != crc32c(0, answer.data(), answer.size()))
      throw Error("damage on the way: an answer has another checksum",
                  ExitCode::Communication);
    return answer;
  } catch (const Error &error) {
    broken = true; // the next answer would be taken for that of another
    throw Error(
        fmt::format("the rendezvous at '{}' is lost: {}", server, error.what()),
        ExitCode::PeerFailed);
  }
}

void TcpStore::set(const std::string &key, const std::string &value) {
  if (ask('s', key, value)[0] != 'v')
    throw Error("the rendezvous store is full", ExitCode::Communication);
}

std::string TcpStore::setFirst(const std::string &key,
                               const std::string &value) {
  std::string answer = ask('f', key, value);
  if (answer[0] != 'v')
    throw Error("the rendezvous store is full", ExitCode::Communication);
  return answer.substr(1);
}

std::optional<std::string> TcpStore::get(const std::string &key) {
  std::string answer = ask('g', key, "");
  return answer[0] == 'v' ? std::optional<std::string>(answer.substr(1))
                          : std::nullopt;
}

void TcpStore::leave() { ask('b', "", ""); }

} // namespace takt::rt
