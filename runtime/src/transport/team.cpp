//===- team.cpp - what the processes of a run agree on --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A text goes as its length and then its bytes; the length is bounded by what a
// tensor of any plan can be, so that a damaged one is an error and not an
// allocation without end.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/transport/team.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace takt::rt {

using Clock = std::chrono::steady_clock;

void Interrupt::raise(const Error &why) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!reason)
    reason = why;
  raised.store(true, std::memory_order_release);
}

void Interrupt::check() const {
  if (!isRaised())
    return;
  std::lock_guard<std::mutex> lock(mutex);
  throw *reason;
}

/// One text on its way.
class TeamOfMany::Transfer {
public:
  /// Sends `text`, which must stay.
  Transfer(Mailbox &box, int32_t peer, const std::string &text)
      : peer(peer), box(&box), length(text.size()), text(&text) {}
  /// Receives into `into`, which must stay.
  Transfer(Mailbox &box, int32_t peer, std::string *into)
      : peer(peer), box(&box), into(into) {}

  /// True once all has arrived.
  bool poll() {
    for (; part < 2; ++part) {
      if (!sending && !receiving)
        begin();
      if (sending ? !sending->poll() : !receiving->poll())
        return false;
      sending.reset();
      receiving.reset();
    }
    return true;
  }

  int32_t peer;

private:
  void begin() {
    constexpr uint64_t kMost = uint64_t(1) << 40;
    if (text && part == 0)
      sending.emplace(*box, &length, sizeof(length));
    else if (text)
      sending.emplace(*box, text->data(), Bytes(length));
    else if (part == 0)
      receiving.emplace(*box, &length, sizeof(length), Take::Copy);
    else if (length > kMost)
      throw Error(fmt::format("rank {} announces {} bytes", peer, length),
                  ExitCode::Communication);
    else {
      into->resize(length);
      receiving.emplace(*box, into->data(), Bytes(length), Take::Copy);
    }
  }

  Mailbox *box;
  uint64_t length = 0;
  const std::string *text = nullptr;
  std::string *into = nullptr;
  int part = 0;
  std::optional<Sending> sending;
  std::optional<Receiving> receiving;
};

TeamOfMany::TeamOfMany(Exchange &exchange, int32_t rank, int32_t size,
                       const Interrupt &interrupt,
                       std::function<double()> patience)
    : exchange(exchange), ownRank(rank), count(size), interrupt(interrupt),
      patience(std::move(patience)) {}

void TeamOfMany::finish(std::vector<Transfer> &transfers, double seconds,
                        const char *what) {
  Bell &bell = exchange.bell(ownRank);
  std::vector<bool> done(transfers.size());
  Clock::time_point last = Clock::now();
  for (;;) {
    uint32_t rings = bell.rings();
    interrupt.check();
    std::vector<int32_t> missing;
    for (size_t i = 0; i < transfers.size(); ++i) {
      if (!done[i])
        done[i] = transfers[i].poll();
      if (!done[i])
        missing.push_back(transfers[i].peer);
    }
    if (missing.empty())
      return;
    if (std::chrono::duration<double>(Clock::now() - last).count() > seconds)
      throw Error(fmt::format("nothing came for {:g} s from rank{} {} while {}",
                              seconds, missing.size() > 1 ? "s" : "",
                              fmt::join(missing, ", "), what),
                  ExitCode::Timeout);
    bell.wait(rings, 0,
              exchange.lookBy(Clock::now() + std::chrono::milliseconds(100)));
    if (bell.rings() != rings)
      last = Clock::now();
  }
}

std::vector<std::string> TeamOfMany::gather(const std::string &mine) {
  std::vector<std::string> all(ownRank == 0 ? count : 0);
  std::vector<Transfer> transfers;
  if (ownRank != 0)
    transfers.emplace_back(exchange.box({BoxOwner::Team, 0, ownRank, 0}), 0,
                           mine);
  else
    for (int32_t r = 1; r < count; ++r)
      transfers.emplace_back(exchange.box({BoxOwner::Team, 0, r, 0}), r,
                             &all[r]);
  finish(transfers, patience(), "collecting what ranks have");
  if (ownRank == 0)
    all[0] = mine;
  return all;
}

std::string TeamOfMany::broadcast(const std::string &text) {
  std::string given;
  std::vector<Transfer> transfers;
  if (ownRank != 0)
    transfers.emplace_back(exchange.box({BoxOwner::Team, 0, 0, ownRank}), 0,
                           &given);
  else
    for (int32_t r = 1; r < count; ++r)
      transfers.emplace_back(exchange.box({BoxOwner::Team, 0, 0, r}), r, text);
  // Rank 0 may be waiting itself: who keeps it waiting is for it to say.
  constexpr double kLonger = 1.25;
  finish(transfers, patience() * (ownRank == 0 ? 1 : kLonger),
         "agreeing on the next step");
  return ownRank == 0 ? text : given;
}

} // namespace takt::rt
