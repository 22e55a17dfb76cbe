//===- store.cpp - what processes share of any store ----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Waiting is asking again: it works over every kind of store, and a process
// that waits still sees that the run has failed.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/store.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace takt::rt {

std::string Abort::text() const {
  return fmt::format("{} {} {}", rank, code, what);
}

std::optional<Abort> Abort::parse(const std::string &text) {
  Abort abort;
  const char *end = text.data() + text.size();
  auto first = std::from_chars(text.data(), end, abort.rank);
  if (first.ec != std::errc() || first.ptr == end)
    return std::nullopt;
  auto second = std::from_chars(first.ptr + 1, end, abort.code);
  if (second.ec != std::errc() || second.ptr == end)
    return std::nullopt;
  abort.what = std::string(second.ptr + 1, end);
  return abort;
}

RankFailed::RankFailed(const Abort &abort)
    : Error(fmt::format("rank {} failed: {}", abort.rank, abort.what),
            ExitCode::PeerFailed),
      failedRank(abort.rank) {}

std::string leftKey(int32_t rank) { return fmt::format("left/{}", rank); }

std::string rankList(const std::vector<int32_t> &ranks) {
  constexpr size_t kMost = 16;
  if (ranks.size() > kMost)
    return fmt::format("ranks {}, {}, {} and {} more", ranks[0], ranks[1],
                       ranks[2], ranks.size() - 3);
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += fmt::format("{}{}",
                        i == 0                  ? ""
                        : i + 1 == ranks.size() ? " and "
                                                : ", ",
                        ranks[i]);
  return text;
}

/// Whoever has left in order without a word will not say it any more.
static void refuseThoseWhoLeft(Store &store, const std::string &prefix,
                               const std::vector<int32_t> &ranks,
                               const std::string &what) {
  std::vector<int32_t> gone;
  for (int32_t rank : ranks)
    // In this order: it may have said it just before it left.
    if (store.get(leftKey(rank)) &&
        !store.get(fmt::format("{}/{}", prefix, rank)))
      gone.push_back(rank);
  if (!gone.empty())
    throw Error(
        fmt::format("{}: {} left without a word of it", what, rankList(gone)),
        ExitCode::Communication);
}

std::vector<std::string> waitForAll(Store &store, const std::string &prefix,
                                    const std::vector<int32_t> &ranks,
                                    Deadline deadline,
                                    const std::string &what) {
  std::vector<std::string> values(ranks.size());
  std::vector<bool> has(ranks.size());
  constexpr auto kLongest = std::chrono::microseconds(50'000);
  auto pause = std::chrono::microseconds(500);
  for (;;) {
    std::vector<int32_t> missing;
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (has[i])
        continue;
      if (auto value = store.get(fmt::format("{}/{}", prefix, ranks[i]))) {
        values[i] = std::move(*value);
        has[i] = true;
      } else {
        missing.push_back(ranks[i]);
      }
    }
    if (missing.empty())
      return values;
    if (auto text = store.get(kAbortKey))
      if (auto abort = Abort::parse(*text))
        throw RankFailed(*abort);
    if (pause == kLongest)
      refuseThoseWhoLeft(store, prefix, missing, what);
    if (std::chrono::steady_clock::now() > deadline)
      throw Error(
          fmt::format("{}: {} did not come in time", what, rankList(missing)),
          ExitCode::Timeout);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongest);
  }
}

} // namespace takt::rt
