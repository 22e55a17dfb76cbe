//===- store_server.cpp - serving the store over TCP ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Requests and answers are u32 length, u32 CRC-32C of what follows, and then
// that many bytes: a request is a letter ('s' set, 'f' set first, 'g' get, 'b'
// good-bye), u32 length of the key, key, value; an answer is a letter ('v'
// value, 'n' none, 'x' refused) and a value. One thread serves all; nobody who
// is slow holds up another.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/store.h"

#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

namespace takt::rt {

static constexpr size_t kMostFrame = kMostValue + kMostKey + 16;
static constexpr size_t kFrameHead = 2 * sizeof(uint32_t);
static constexpr size_t kMostStored = size_t(256) << 20;

static void addFrame(std::string &out, char letter, const std::string &value) {
  uint32_t length = uint32_t(value.size() + 1);
  std::string body = letter + value;
  uint32_t check = crc32c(0, body.data(), body.size());
  out.append(reinterpret_cast<const char *>(&length), sizeof(length));
  out.append(reinterpret_cast<const char *>(&check), sizeof(check));
  out += body;
}

StoreServer::StoreServer(Socket listening, const std::string &token,
                         Doorkeeper::Log log)
    : door(std::move(listening), token, Purpose::Store, log),
      listenPort(door.port()), log(std::move(log)),
      thread([this] { serve(); }) {}

StoreServer::~StoreServer() {
  quit = true;
  thread.join();
}

std::optional<std::string> StoreServer::get(const std::string &key) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = values.find(key);
  return found == values.end() ? std::nullopt
                               : std::optional<std::string>(found->second);
}

std::string StoreServer::setFirst(const std::string &key,
                                  const std::string &value) {
  std::lock_guard<std::mutex> lock(mutex);
  return values.try_emplace(key, value).first->second;
}

void StoreServer::serve() {
  constexpr int kLook = 20; // milliseconds
  while (!quit) {
    std::vector<pollfd> waits;
    for (const Client &client : clients)
      waits.push_back({client.socket.fd(),
                       short(POLLIN | (client.out.empty() ? 0 : POLLOUT)), 0});
    std::vector<int> fds;
    door.watched(fds);
    for (int fd : fds)
      waits.push_back({fd, POLLIN, 0});
    poll(waits.data(), waits.size(), kLook);
    for (size_t i = clients.size(); i-- > 0;) {
      Client &client = clients[i];
      bool lives = waits[i].revents == 0 || readFrom(client);
      if (lives && answer(client) && flush(client))
        continue;
      if (!client.saidGoodBye)
        setFirst(kAbortKey,
                 Abort{client.rank, int(ExitCode::PeerFailed),
                       "its process ended, or its connection was lost"}
                     .text());
      clients.erase(clients.begin() + i);
    }
    for (Visitor &visitor : door.look()) {
      clients.emplace_back();
      clients.back().socket = std::move(visitor.socket);
      clients.back().rank = visitor.rank;
      came.insert(visitor.rank);
    }
    open = clients.size() + door.waiting();
    seen = came.size();
  }
}

/// False once the connection has ended.
bool StoreServer::readFrom(Client &client) {
  char buffer[16384];
  for (;;) {
    ssize_t got =
        recv(client.socket.fd(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got > 0)
      client.in.append(buffer, size_t(got));
    else
      return got < 0 &&
             (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (client.in.size() > kMostFrame + kFrameHead)
      return true; // the rest when this has been answered
  }
}

bool StoreServer::answer(Client &client) {
  for (;;) {
    uint32_t head[2]; // length, checksum
    if (client.in.size() < kFrameHead)
      return true;
    std::memcpy(head, client.in.data(), kFrameHead);
    if (head[0] > kMostFrame)
      return false;
    if (client.in.size() < kFrameHead + head[0])
      return true;
    std::string request = client.in.substr(kFrameHead, head[0]);
    client.in.erase(0, kFrameHead + head[0]);
    if (head[1] != crc32c(0, request.data(), request.size())) {
      setFirst(kAbortKey, Abort{client.rank, int(ExitCode::Communication),
                                "damage on the way: a request to the "
                                "rendezvous has another checksum"}
                              .text());
      return false;
    }
    if (!handle(client, request))
      return false;
  }
}

/// False for a request that is none.
bool StoreServer::handle(Client &client, const std::string &request) {
  uint32_t keyLength = 0;
  constexpr size_t kHead = 1 + sizeof(keyLength);
  if (request.size() < kHead)
    return false;
  std::memcpy(&keyLength, request.data() + 1, sizeof(keyLength));
  if (keyLength > kMostKey || request.size() - kHead < keyLength)
    return false;
  std::string key = request.substr(kHead, keyLength);
  std::string value = request.substr(kHead + keyLength);
  std::lock_guard<std::mutex> lock(mutex);
  auto found = values.find(key);
  switch (request[0]) {
  case 's':
  case 'f': {
    size_t before = found == values.end() ? 0 : found->second.size();
    if (value.size() > kMostValue ||
        stored - before + value.size() + key.size() > kMostStored) {
      addFrame(client.out, 'x', "");
      return true;
    }
    if (found == values.end() || request[0] == 's') {
      stored +=
          value.size() - before + (found == values.end() ? key.size() : 0);
      values[key] = value;
    }
    addFrame(client.out, 'v', request[0] == 's' ? "" : values[key]);
    return true;
  }
  case 'g':
    if (found == values.end())
      addFrame(client.out, 'n', "");
    else
      addFrame(client.out, 'v', found->second);
    return true;
  case 'b':
    client.saidGoodBye = true;
    addFrame(client.out, 'v', "");
    return true;
  default:
    return false;
  }
}

bool StoreServer::flush(Client &client) {
  while (!client.out.empty()) {
    ssize_t sent = send(client.socket.fd(), client.out.data(),
                        client.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
      return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    client.out.erase(0, size_t(sent));
  }
  return true;
}

} // namespace takt::rt
