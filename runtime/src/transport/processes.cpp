//===- processes.cpp - mailboxes of one rank among processes --------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Shared memory first: the lowest rank of a node makes the segment, or says
// that there is no room for it. What is not connected then goes over TCP. Each
// rank lets others in from one thread while it connects from another, so that
// no two wait for each other.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/transport/processes.h"

#include "takt-rt/core/error.h"
#include "takt-rt/transport/shared_memory.h"
#include "takt-rt/transport/sockets.h"

#include <fmt/format.h>

#include <algorithm>
#include <poll.h>
#include <set>
#include <sys/statvfs.h>

namespace takt::rt {

namespace {

class Connected final : public Exchange {
public:
  Connected(const Plan &plan, Session &session, TransportKind kind);
  Bell &bell(int32_t) override { return *ownBell; }
  void ringAll() override { ownBell->ring(); }
  void quiesce() override { thread.reset(); }
  std::string summary() const;

private:
  bool shareMemory(TransportKind kind);
  Segment makeSegment(int32_t leader, uint64_t &window, bool mayFail);
  void connectSockets();
  void letIn(Doorkeeper &door, std::set<size_t> expected);
  void add(size_t index, Socket socket, SocketMailbox::End end, int32_t peer);

  const Plan &plan;
  Session &session;
  std::vector<BoxSpec> specs; ///< of all ranks
  Segment segment;
  Bell heapBell;
  Bell *ownBell = &heapBell;
  std::set<int32_t> byMemory, bySocket; ///< peers
  std::unique_ptr<SocketThread> thread; ///< ends before the mailboxes

  std::mutex mutex; ///< while connecting: boxes are added by two threads
  std::atomic<bool> stop{false};
  std::exception_ptr failure;
};

Connected::Connected(const Plan &plan, Session &session, TransportKind kind)
    : plan(plan), session(session), specs(boxesOf(plan, true)) {
  if (kind == TransportKind::SharedMemory && !session.isOneNode())
    throw Error(fmt::format("'--transport=shm': only {} of {} ranks are on "
                            "this node",
                            session.nodeRanks().size(), session.size()),
                ExitCode::DoesNotFit);
  if (kind != TransportKind::Tcp && session.nodeRanks().size() > 1)
    shareMemory(kind);
  connectSockets();
}

std::string Connected::summary() const {
  if (bySocket.empty())
    return "shared memory";
  if (byMemory.empty())
    return "TCP";
  return fmt::format("shared memory within the node, TCP across");
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

static uint64_t freeSharedMemory() {
  struct statvfs status {};
  if (statvfs("/dev/shm", &status) != 0)
    return 0;
  return uint64_t(status.f_bavail) * status.f_frsize;
}

/// The lowest rank makes the segment and says its name and windows; the others
/// open it. Empty when there is no room and that may be.
Segment Connected::makeSegment(int32_t leader, uint64_t &window, bool mayFail) {
  Store &store = session.store();
  std::string key = fmt::format("shm/{}", leader);
  if (session.rank() != leader) {
    std::string said = waitForAll(store, "shm", {leader},
                                  session.startDeadline(), "shared memory")[0];
    size_t space = said.find(' ');
    if (space == std::string::npos)
      return Segment();
    window = std::stoull(said.substr(space + 1));
    Segment opened = Segment::open(said.substr(0, space));
    store.set(fmt::format("mapped/{}", session.rank()), "");
    return opened;
  }
  const std::vector<int32_t> &ranks = session.nodeRanks();
  // Some is left to others of this machine.
  window = fittingWindow(specs, ranks, freeSharedMemory() / 4 * 3);
  NodeLayout layout(specs, ranks, window);
  const std::string prefix = "/takt-";
  Segment::removeAbandoned(prefix);
  std::string name = prefix + hex(randomDigest()).substr(0, 16);
  Segment made;
  try {
    made = Segment::create(name, layout.bytes());
  } catch (const Error &error) {
    if (!mayFail)
      throw;
    if (session.settings().log)
      session.settings().log(
          fmt::format("{}; this node goes over TCP", error.what()));
    store.set(key, "none");
    return Segment();
  }
  layout.makeIn(made);
  store.set(key, fmt::format("{} {}", name, window));
  std::vector<int32_t> others(ranks.begin() + 1, ranks.end());
  waitForAll(store, "mapped", others, session.startDeadline(), "shared memory");
  made.removeName();
  return made;
}

bool Connected::shareMemory(TransportKind kind) {
  uint64_t window = 0;
  const std::vector<int32_t> &ranks = session.nodeRanks();
  segment = makeSegment(ranks.front(), window, kind == TransportKind::Auto);
  if (!segment.begin())
    return false;
  NodeLayout layout(specs, ranks, window);
  layout.checkIn(segment);
  ownBell = layout.bell(segment, session.rank());
  for (size_t i = 0; i < layout.specs().size(); ++i) {
    const BoxKey &key = layout.specs()[i].key;
    if (key.from != session.rank() && key.to != session.rank())
      continue;
    boxes[key] = layout.mailbox(segment, i);
    byMemory.insert(key.from == session.rank() ? key.to : key.from);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// TCP
//===----------------------------------------------------------------------===//

void Connected::add(size_t index, Socket socket, SocketMailbox::End end,
                    int32_t peer) {
  auto box = std::make_unique<SocketMailbox>(
      std::move(socket), end, peer, boxName(plan, specs[index].key), ownBell);
  std::lock_guard<std::mutex> lock(mutex);
  thread->add(*box);
  boxes[specs[index].key] = std::move(box);
}

void Connected::letIn(Doorkeeper &door, std::set<size_t> expected) {
  constexpr int kLook = 20; // milliseconds
  while (!expected.empty() && !stop) {
    if (std::chrono::steady_clock::now() > session.startDeadline()) {
      std::set<int32_t> missing;
      for (size_t index : expected)
        missing.insert(specs[index].key.from);
      throw Error(fmt::format("{} did not connect in time",
                              rankList({missing.begin(), missing.end()})),
                  ExitCode::Timeout);
    }
    std::vector<int> fds;
    door.watched(fds);
    std::vector<pollfd> waits;
    for (int fd : fds)
      waits.push_back({fd, POLLIN, 0});
    poll(waits.data(), waits.size(), kLook);
    for (Visitor &visitor : door.look())
      // Once each, and only from the rank that it is for.
      if (expected.count(visitor.index) != 0 &&
          specs[visitor.index].key.from == visitor.rank) {
        expected.erase(visitor.index);
        add(visitor.index, std::move(visitor.socket),
            SocketMailbox::End::Receives, visitor.rank);
      }
  }
}

void Connected::connectSockets() {
  std::set<size_t> in, out;
  for (size_t i = 0; i < specs.size(); ++i) {
    const BoxKey &key = specs[i].key;
    if (boxes.count(key) != 0)
      continue;
    if (key.to == session.rank())
      in.insert(i);
    if (key.from == session.rank())
      out.insert(i);
  }
  if (in.empty() && out.empty())
    return;
  thread = std::make_unique<SocketThread>();
  Address here{session.isOneNode() ? "127.0.0.1" : "", 0};
  Doorkeeper door(Socket::listenOn(here), session.token(), Purpose::Mailbox,
                  session.settings().log);
  session.store().set(fmt::format("tcp/{}", session.rank()),
                      Address{session.address(), door.port()}.text());
  std::thread doorThread([&] {
    try {
      letIn(door, in);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  std::exception_ptr error;
  try {
    for (size_t index : out) {
      int32_t peer = specs[index].key.to;
      std::string address =
          waitForAll(session.store(), "tcp", {peer}, session.startDeadline(),
                     "addresses of the transport")[0];
      Socket socket =
          Socket::connectTo(Address::parse(address), session.startDeadline());
      introduce(socket, session.token(), Purpose::Mailbox, session.rank(),
                uint32_t(index), session.startDeadline());
      add(index, std::move(socket), SocketMailbox::End::Sends, peer);
      bySocket.insert(peer);
    }
  } catch (...) {
    error = std::current_exception();
    stop = true;
  }
  doorThread.join();
  if (error || failure)
    std::rethrow_exception(error ? error : failure);
  for (size_t index : in)
    bySocket.insert(specs[index].key.from);
}

} // namespace

ProcessExchange connectProcesses(const Plan &plan, Session &session,
                                 TransportKind kind) {
  auto connected = std::make_unique<Connected>(plan, session, kind);
  std::string summary = connected->summary();
  return {std::move(connected), std::move(summary)};
}

} // namespace takt::rt
