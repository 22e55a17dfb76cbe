//===- socket.cpp - TCP sockets with deadlines ----------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Sockets never block: every wait is a poll(2) with what is left of a deadline.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/socket.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace takt::rt {

using Clock = std::chrono::steady_clock;

[[noreturn]] static void fail(const std::string &what, int error,
                              ExitCode code = ExitCode::Communication) {
  std::string words = fmt::format("{}: {}", what, std::strerror(error));
  if (error == ECONNRESET || error == EPIPE)
    throw ConnectionReset(words, code);
  throw Error(words, code);
}

int pollTime(Deadline deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(deadline - Clock::now(), Clock::duration(0)));
  return int(std::min<int64_t>(left.count(), INT_MAX / 2));
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

std::string Address::text() const {
  bool six = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", six ? "[" : "", host, six ? "]" : "", port);
}

Address Address::parse(const std::string &text) {
  size_t colon = text.rfind(':');
  Address address;
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    if (address.host.size() > 1 && address.host.front() == '[' &&
        address.host.back() == ']')
      address.host = address.host.substr(1, address.host.size() - 2);
    const char *last = text.data() + text.size();
    auto [end, error] =
        std::from_chars(text.data() + colon + 1, last, address.port);
    if (error == std::errc() && end == last && address.port > 0 &&
        !address.host.empty())
      return address;
  }
  throw Error(fmt::format("'{}' is no address: give HOST:PORT", text),
              ExitCode::Usage);
}

namespace {
/// What getaddrinfo(3) returns.
class Resolved {
public:
  Resolved(const Address &address, bool toListen) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = toListen ? AI_PASSIVE : 0;
    error = getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                        std::to_string(address.port).c_str(), &hints, &list);
  }
  ~Resolved() {
    if (list)
      freeaddrinfo(list);
  }
  Resolved(const Resolved &) = delete;

  int error = 0;
  addrinfo *list = nullptr;
};
} // namespace

//===----------------------------------------------------------------------===//
// Sockets
//===----------------------------------------------------------------------===//

Socket::Socket(Socket &&other) noexcept
    : handle(std::exchange(other.handle, -1)) {}

Socket &Socket::operator=(Socket &&other) noexcept {
  std::swap(handle, other.handle);
  return *this;
}

Socket::~Socket() {
  if (handle >= 0)
    close(handle);
}

Socket Socket::listenOn(const Address &address) {
  Resolved resolved(address, true);
  if (resolved.error)
    throw Error(fmt::format("cannot listen at '{}': {}", address.text(),
                            gai_strerror(resolved.error)),
                ExitCode::Communication);
  int error = EADDRNOTAVAIL;
  // An interface for IPv4 first: it is the one that every machine has.
  for (int family : {AF_INET, AF_INET6})
    for (addrinfo *at = resolved.list; at; at = at->ai_next) {
      if (at->ai_family != family)
        continue;
      Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      int on = 1;
      if (socket.isValid())
        setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      if (socket.isValid() &&
          bind(socket.fd(), at->ai_addr, at->ai_addrlen) == 0 &&
          listen(socket.fd(), SOMAXCONN) == 0) {
        fcntl(socket.fd(), F_SETFL, O_NONBLOCK);
        return socket;
      }
      error = errno;
    }
  fail(fmt::format("cannot listen at '{}'", address.text()), error);
}

/// One attempt; an invalid socket and `error` if it fails.
static Socket tryToConnect(const addrinfo &at, Deadline deadline, int &error) {
  Socket socket(
      ::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  error = errno;
  if (!socket.isValid())
    return socket;
  if (connect(socket.fd(), at.ai_addr, at.ai_addrlen) == 0)
    return socket;
  error = errno;
  if (error != EINPROGRESS)
    return Socket();
  pollfd wait{socket.fd(), POLLOUT, 0};
  int ready = poll(&wait, 1, pollTime(deadline));
  socklen_t size = sizeof(error);
  if (ready <= 0)
    error = ETIMEDOUT;
  else
    getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? std::move(socket) : Socket();
}

Socket Socket::connectTo(const Address &address, Deadline deadline) {
  std::string why = "nobody listens there";
  auto pause = std::chrono::milliseconds(5);
  do {
    Resolved resolved(address, false);
    if (resolved.error)
      why = gai_strerror(resolved.error);
    for (addrinfo *at = resolved.list; at; at = at->ai_next) {
      int error = 0;
      Deadline attempt = std::min(deadline, deadlineIn(5));
      Socket socket = tryToConnect(*at, attempt, error);
      if (socket.isValid()) {
        socket.prepare();
        return socket;
      }
      why = std::strerror(error);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(500));
  } while (Clock::now() < deadline);
  throw Error(
      fmt::format("cannot connect to '{}' in time: {}", address.text(), why),
      ExitCode::Timeout);
}

void Socket::prepare() {
  int on = 1, idle = 10, interval = 5, count = 3;
  unsigned unanswered = 30'000; // milliseconds
  fcntl(handle, F_SETFL, O_NONBLOCK);
  setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(handle, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(handle, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  setsockopt(handle, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  setsockopt(handle, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
  setsockopt(handle, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered,
             sizeof(unanswered));
}

static std::string hostOf(const sockaddr_storage &address, socklen_t size) {
  char host[NI_MAXHOST] = "";
  if (getnameinfo(reinterpret_cast<const sockaddr *>(&address), size, host,
                  sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0)
    return "an unknown address";
  return host;
}

uint16_t Socket::localPort() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(handle, reinterpret_cast<sockaddr *>(&address), &size) != 0)
    fail("cannot ask a socket for its port", errno);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6 &>(address).sin6_port
                   : reinterpret_cast<sockaddr_in &>(address).sin_port);
}

std::string Socket::localHost() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(handle, reinterpret_cast<sockaddr *>(&address), &size) != 0)
    fail("cannot ask a socket for its address", errno);
  return hostOf(address, size);
}

std::string Socket::peerName() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(handle, reinterpret_cast<sockaddr *>(&address), &size) != 0)
    return "a closed connection";
  return hostOf(address, size);
}

static void awaitSocket(int fd, short events, Deadline deadline) {
  pollfd wait{fd, events, 0};
  int ready = poll(&wait, 1, pollTime(deadline));
  if (ready == 0)
    throw Error("the other end does not answer in time", ExitCode::Timeout);
  if (ready < 0 && errno != EINTR)
    fail("cannot wait for a connection", errno);
}

void Socket::writeAll(const void *bytes, size_t count, Deadline deadline) {
  const char *at = static_cast<const char *>(bytes);
  while (count > 0) {
    ssize_t sent = ::send(handle, at, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      at += sent;
      count -= size_t(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      awaitSocket(handle, POLLOUT, deadline);
    } else if (errno != EINTR) {
      fail("cannot write to " + peerName(), errno);
    }
  }
}

void Socket::readAll(void *bytes, size_t count, Deadline deadline) {
  char *at = static_cast<char *>(bytes);
  while (count > 0) {
    ssize_t got = recv(handle, at, count, MSG_DONTWAIT);
    if (got > 0) {
      at += got;
      count -= size_t(got);
    } else if (got == 0) {
      throw Error(fmt::format("{} closed the connection", peerName()),
                  ExitCode::Communication);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      awaitSocket(handle, POLLIN, deadline);
    } else if (errno != EINTR) {
      fail("cannot read from " + peerName(), errno);
    }
  }
}

} // namespace takt::rt
