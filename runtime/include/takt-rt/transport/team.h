//===- team.h - what the processes of a run agree on ------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Between steps the processes of a run exchange losses, times, tensors and
// decisions over the team's mailboxes, through rank 0. All call the same
// functions in the same order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/core/error.h"
#include "takt-rt/transport/exchange.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace takt::rt {

/// Set once, by any thread, when this process has to stop because of what
/// happened elsewhere.
class Interrupt {
public:
  /// The first reason counts.
  void raise(const Error &reason);
  bool isRaised() const { return raised.load(std::memory_order_acquire); }
  /// Throws the reason if there is one.
  void check() const;

private:
  std::atomic<bool> raised{false};
  mutable std::mutex mutex;
  std::optional<Error> reason;
};

class Team {
public:
  virtual ~Team() = default;
  /// Rank of this process; 0 for one that has all ranks.
  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;
  /// At rank 0 the texts of all by rank; nothing elsewhere.
  virtual std::vector<std::string> gather(const std::string &mine) = 0;
  /// Rank 0's text, everywhere.
  virtual std::string broadcast(const std::string &text) = 0;
};

/// One process that has all ranks.
class TeamOfOne final : public Team {
public:
  int32_t rank() const override { return 0; }
  int32_t size() const override { return 1; }
  std::vector<std::string> gather(const std::string &mine) override {
    return {mine};
  }
  std::string broadcast(const std::string &text) override { return text; }
};

/// Processes of one rank each.
class TeamOfMany final : public Team {
public:
  /// Everything must outlive the team. A wait longer than `patience()` seconds
  /// ends with `Error` (Timeout) that names the ranks waited for.
  TeamOfMany(Exchange &exchange, int32_t rank, int32_t size,
             const Interrupt &interrupt, std::function<double()> patience);

  int32_t rank() const override { return ownRank; }
  int32_t size() const override { return count; }
  std::vector<std::string> gather(const std::string &mine) override;
  std::string broadcast(const std::string &text) override;

private:
  class Transfer;
  void finish(std::vector<Transfer> &transfers, double seconds,
              const char *what);

  Exchange &exchange;
  int32_t ownRank, count;
  const Interrupt &interrupt;
  std::function<double()> patience;
};

} // namespace takt::rt
