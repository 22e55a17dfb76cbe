//===- sockets.cpp - messages over TCP ------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Sockets are watched by edges: whoever changes what a mailbox waits for tries
// to move at once, so that no edge is missed.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/transport/sockets.h"

#include "takt-rt/core/crc32c.h"
#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace takt::rt {

using Clock = std::chrono::steady_clock;

void MessageHead::seal() {
  check = crc32c(0, this, offsetof(MessageHead, check));
}

bool MessageHead::isSound() const {
  return check == crc32c(0, this, offsetof(MessageHead, check));
}

SocketMailbox::SocketMailbox(Socket socket, End end, int32_t peer,
                             std::string name, Bell *bell)
    : socket(std::move(socket)), end(end), peer(peer), name(std::move(name)),
      bell(bell) {}

void SocketMailbox::rethrow() const {
  if (failure)
    std::rethrow_exception(failure);
}

//===----------------------------------------------------------------------===//
// Reading and writing what is possible
//===----------------------------------------------------------------------===//

size_t SocketMailbox::read(void *to, size_t count) {
  for (;;) {
    ssize_t got = recv(socket.fd(), to, count, MSG_DONTWAIT);
    if (got > 0)
      return size_t(got);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return 0;
    std::string why = got == 0 ? "closed" : std::strerror(errno);
    throw Error(fmt::format("the connection with rank {} has ended ({}), {}",
                            peer, why, name),
                ExitCode::PeerFailed);
  }
}

size_t SocketMailbox::write(const void *head, size_t headBytes,
                            const void *data, size_t dataBytes) {
  iovec parts[2] = {{const_cast<void *>(head), headBytes},
                    {const_cast<void *>(data), dataBytes}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  for (;;) {
    ssize_t sent = sendmsg(socket.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
      return size_t(sent);
    if (errno == EINTR)
      continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
      return 0;
    throw Error(fmt::format("the connection with rank {} has ended ({}), {}",
                            peer, std::strerror(errno), name),
                ExitCode::PeerFailed);
  }
}

void SocketMailbox::move() {
  bool news = false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (failure)
      return;
    try {
      news = moveOut();
      news |= moveIn();
    } catch (...) {
      failure = std::current_exception();
      news = true;
    }
  }
  if (news && bell)
    bell->ring();
}

/// Writes more of the message under way; nobody needs to know.
bool SocketMailbox::moveOut() {
  while (end == End::Sends && outSent < outSize) {
    size_t head = sizeof(out) - std::min(outSent, sizeof(out));
    size_t data = outSize - outSent - head;
    size_t sent =
        write(reinterpret_cast<const char *>(&out) + (sizeof(out) - head), head,
              outData + (outSize - sizeof(out) - data), data);
    if (sent == 0)
      break;
    outSent += sent;
  }
  return false;
}

bool SocketMailbox::moveIn() {
  bool news = false;
  for (;;) {
    if (state == State::Head) {
      size_t got =
          read(reinterpret_cast<char *>(&in) + inRead, sizeof(in) - inRead);
      if (got == 0)
        return news;
      inRead += got;
      if (inRead < sizeof(in))
        continue;
      inRead = 0;
      if (end == End::Sends)
        answerCame();
      else
        headCame();
      news = true;
    } else if (state == State::Data && dataRead < in.size) {
      std::byte *to = inTake == Take::Copy ? inData : summand.data();
      // In pieces that stay in the cache for the checksum.
      constexpr size_t kPiece = 128 << 10;
      size_t got = read(to + dataRead, std::min(kPiece, in.size - dataRead));
      if (got == 0)
        return news;
      dataCrc = crc32c(dataCrc, to + dataRead, got);
      dataRead += got;
    } else if (state == State::Data) {
      checkData();
      state = State::Whole;
      news = true;
    } else {
      return news;
    }
  }
}

//===----------------------------------------------------------------------===//
// The sending end
//===----------------------------------------------------------------------===//

void SocketMailbox::answerCame() {
  if (in.kind != MessageHead::kAnswer || !in.isSound() || in.turn != taken ||
      taken >= offered)
    throw Error(fmt::format("damage on the way: rank {} answers message {} of "
                            "{} with something else",
                            peer, taken + 1, name),
                ExitCode::Communication);
  ++taken;
  lastMoved = std::max(
      outBegan, Clock::now() - std::chrono::nanoseconds(int64_t(
                                   std::min<uint64_t>(in.size, 1u << 31))));
}

bool SocketMailbox::send(uint64_t turn, const std::byte *data, Bytes bytes,
                         MoveTime &moved) {
  std::lock_guard<std::mutex> lock(mutex);
  if (taken > turn) {
    moved = lastMoved;
    return true;
  }
  rethrow();
  if (taken < turn || offered > turn)
    return false;
  out = MessageHead();
  out.kind = MessageHead::kData;
  out.turn = turn;
  out.size = uint64_t(bytes);
  out.dataCrc = crc32c(0, data, size_t(bytes));
  out.seal();
  outData = data;
  outSent = 0;
  outSize = sizeof(out) + size_t(bytes);
  outBegan = Clock::now();
  offered = turn + 1;
  moveOut();
  return false;
}

//===----------------------------------------------------------------------===//
// The receiving end
//===----------------------------------------------------------------------===//

void SocketMailbox::headCame() {
  if (in.kind != MessageHead::kData || !in.isSound() || in.turn != received)
    throw Error(fmt::format("damage on the way: rank {} sends something that "
                            "is not message {} of {}",
                            peer, received + 1, name),
                ExitCode::Communication);
  state = State::Waits;
  headAt = Clock::now();
}

void SocketMailbox::checkData() {
  if (dataCrc != in.dataCrc)
    throw Error(fmt::format("damage on the way: message {} of {} bytes from "
                            "rank {}, {}, has the checksum {:08x} and not "
                            "{:08x}",
                            received + 1, in.size, peer, name, dataCrc,
                            in.dataCrc),
                ExitCode::Communication);
}

bool SocketMailbox::arrives(uint64_t turn, std::byte *data, Bytes bytes,
                            Take take) {
  std::lock_guard<std::mutex> lock(mutex);
  rethrow();
  if (turn != received)
    return false;
  moveIn();
  if (state == State::Waits && !isPosted) {
    if (in.size != uint64_t(bytes))
      throw Error(fmt::format("a message of {} bytes meets a receive of {} "
                              "bytes, {}",
                              in.size, bytes, name),
                  ExitCode::Communication);
    isPosted = true;
    inData = data;
    inTake = take;
    if (take == Take::AddFloats)
      summand.resize(std::max(summand.size(), size_t(bytes)));
    dataRead = 0;
    dataCrc = 0;
    inBegan = Clock::now();
    state = State::Data;
    moveIn();
  }
  return isPosted;
}

bool SocketMailbox::receive(uint64_t turn, std::byte *data, Bytes bytes,
                            Take take, MoveTime &moved) {
  std::lock_guard<std::mutex> lock(mutex);
  rethrow();
  if (state != State::Whole)
    return false;
  if (take == Take::AddFloats)
    takeBytes(take, summand.data(), data, bytes);
  moved = inBegan;
  MessageHead answer;
  answer.kind = MessageHead::kAnswer;
  answer.turn = turn;
  answer.size =
      uint64_t((Clock::now() - inBegan) / std::chrono::nanoseconds(1));
  answer.seal();
  // The sender reads every answer before it sends again, so there is room.
  if (write(&answer, sizeof(answer), nullptr, 0) != sizeof(answer))
    throw Error(fmt::format("rank {} does not take the answer to message {}, "
                            "{}",
                            peer, turn + 1, name),
                ExitCode::Communication);
  ++received;
  isPosted = false;
  state = State::Head;
  return true;
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

static void watchFor(int epoll, int fd, uint32_t events, void *what) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = what;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    throw Error(
        fmt::format("cannot watch a connection: {}", std::strerror(errno)),
        ExitCode::Internal);
}

SocketThread::SocketThread()
    : epoll(epoll_create1(EPOLL_CLOEXEC)), wake(eventfd(0, EFD_CLOEXEC)) {
  watchFor(epoll, wake, EPOLLIN, nullptr);
  thread = std::thread([this] { loop(); });
}

void SocketThread::stop() {
  uint64_t one = 1;
  if (thread.joinable() && ::write(wake, &one, sizeof(one)) == sizeof(one))
    thread.join();
}

SocketThread::~SocketThread() {
  stop();
  close(epoll);
  close(wake);
}

void SocketThread::add(SocketMailbox &box) {
  watchFor(epoll, box.fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &box);
}

void SocketThread::loop() {
  epoll_event events[64];
  for (;;) {
    int count = epoll_wait(epoll, events, std::size(events), -1);
    for (int i = 0; i < count; ++i) {
      if (!events[i].data.ptr)
        return;
      static_cast<SocketMailbox *>(events[i].data.ptr)->move();
    }
  }
}

} // namespace takt::rt
