//===- measure.cpp - what links and processors of this machine do ---------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Medians of repeats: what another program takes away in between is not in
// them.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/calibrate/measure.h"

#include "../host/blas.h"

#include "takt-rt/core/error.h"
#include "takt-rt/host/kernels.h"
#include "takt-rt/transport/threads.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <sched.h>
#include <thread>
#include <unistd.h>

namespace takt::rt {

namespace {
using Clock = std::chrono::steady_clock;

double nanosSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// The channels of `messagePlan` between rank 0 and a peer.
uint16_t channelTo(int32_t peer) { return uint16_t(2 * (peer - 1)); }
uint16_t channelFrom(int32_t peer) { return uint16_t(2 * (peer - 1) + 1); }

/// Polls and sleeps as a rank at work does.
class End {
public:
  End(Exchange &exchange, int32_t rank, int32_t ranksHere,
      const Interrupt &interrupt)
      : exchange(exchange), bell(exchange.bell(rank)), interrupt(interrupt),
        spin(ranksHere <= coresHere() ? 100'000 : 0) {}

  template <typename Message>
  void finish(Message message) {
    constexpr auto kLook = std::chrono::milliseconds(200);
    constexpr auto kPatience = std::chrono::seconds(60);
    Clock::time_point begin = Clock::now();
    for (;;) {
      uint32_t rings = bell.rings(); // read first, so that no ring is missed
      interrupt.check();
      if (message.poll())
        return;
      if (Clock::now() - begin > kPatience)
        throw Error("no message came or was taken in 60 s while links were "
                    "measured",
                    ExitCode::Timeout);
      bell.wait(rings, spin, exchange.lookBy(Clock::now() + kLook));
    }
  }

private:
  Exchange &exchange;
  Bell &bell;
  const Interrupt &interrupt;
  Nanos spin;
};

/// Median nanoseconds of some runs of `what`, after one that does not count.
template <typename What>
double medianTime(int repeats, const What &what) {
  std::vector<double> times;
  for (int i = 0; i <= repeats; ++i) {
    Clock::time_point start = Clock::now();
    what();
    if (i > 0)
      times.push_back(nanosSince(start));
  }
  return median(times);
}

int repeatsOf(Bytes bytes) {
  constexpr Bytes kTogether = 256 << 20;
  return int(std::clamp<Bytes>(kTogether / std::max<Bytes>(bytes, 1), 15, 301));
}
} // namespace

const std::vector<Bytes> &messageSizes() {
  static const std::vector<Bytes> sizes = {
      64,       256,       1 << 10, 4 << 10, 16 << 10,
      64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
  return sizes;
}

Plan messagePlan(int32_t ranks) {
  Plan plan;
  plan.model = "messages";
  plan.cluster = "calibrated";
  for (int32_t r = 0; r < ranks; ++r) {
    Role role;
    role.name = "rank" + std::to_string(r);
    role.firstRank = r;
    role.replicas = 1;
    role.stages = {r};
    role.devices = {r};
    plan.roles.push_back(role);
  }
  for (int32_t peer = 1; peer < ranks; ++peer) {
    std::string name = std::to_string(peer);
    plan.channels.push_back({"to" + name, ChannelKind::Activation, 0,
                             uint16_t(peer), messageSizes().back(), Link()});
    plan.channels.push_back({"from" + name, ChannelKind::Activation,
                             uint16_t(peer), 0, messageSizes().back(), Link()});
  }
  return plan;
}

std::vector<TransferTime> exchangeMessages(Exchange &exchange, int32_t rank,
                                           int32_t peer, int32_t ranksHere,
                                           const Interrupt &interrupt) {
  Mailbox &there = exchange.channelBox(channelTo(peer), 0, peer);
  Mailbox &back = exchange.channelBox(channelFrom(peer), peer, 0);
  End end(exchange, rank, ranksHere, interrupt);
  std::vector<std::byte> data(messageSizes().back());
  std::vector<TransferTime> times;
  for (Bytes bytes : messageSizes()) {
    double both = medianTime(repeatsOf(bytes), [&] {
      if (rank == 0) {
        end.finish(Sending(there, data.data(), bytes));
        end.finish(Receiving(back, data.data(), bytes, Take::Copy));
      } else {
        end.finish(Receiving(there, data.data(), bytes, Take::Copy));
        end.finish(Sending(back, data.data(), bytes));
      }
    });
    if (rank == 0)
      times.push_back({bytes, both / 2});
  }
  return times;
}

std::vector<TransferTime> exchangeBetweenThreads() {
  Plan plan = messagePlan(2);
  ThreadExchange exchange(plan);
  Interrupt interrupt;
  std::thread peer([&] {
    try {
      exchangeMessages(exchange, 1, 1, 2, interrupt);
    } catch (const Error &error) {
      interrupt.raise(error);
    }
  });
  std::vector<TransferTime> times;
  std::exception_ptr failure;
  try {
    times = exchangeMessages(exchange, 0, 1, 2, interrupt);
  } catch (const Error &error) {
    failure = std::current_exception();
    interrupt.raise(error);
  }
  peer.join();
  if (failure)
    std::rethrow_exception(failure);
  return times;
}

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

/// Products as of a linear layer, through the kernel that training runs.
static double measureProducts() {
  constexpr int64_t kRows = 256, kWidth = 512;
  Kernel kernel;
  kernel.kind = KernelKind::LinearForward;
  kernel.dims = {kRows, kWidth, kWidth, 0};
  std::vector<Pool> pools;
  Bytes total = 0;
  for (int64_t elements : {kRows * kWidth, kWidth * kWidth, kRows * kWidth}) {
    Pool pool;
    pool.base = total;
    pool.slotBytes = alignUp(elements * Bytes(sizeof(float)));
    total += pool.slotBytes;
    kernel.operands.push_back(
        {uint16_t(pools.size()), 0, elements * Bytes(sizeof(float))});
    pools.push_back(pool);
  }
  std::unique_ptr<std::byte, decltype(&std::free)> arena(
      static_cast<std::byte *>(std::aligned_alloc(kAlignment, total)),
      &std::free);
  if (!arena)
    throw std::bad_alloc();
  std::fill_n(reinterpret_cast<float *>(arena.get()),
              total / Bytes(sizeof(float)), 0.5f);
  SlotView<float> slots(arena.get(), pools);
  double nanos = medianTime(31, [&] { runKernel(kernel, slots, RunArgs()); });
  return 2.0 * kRows * kWidth * kWidth * 1e9 / nanos;
}

DeviceRates measureDevice() {
  constexpr size_t kCopied = 64 << 20; // beyond what caches hold
  DeviceRates rates;
  host::useOneBlasThread();
  rates.flops = measureProducts();
  std::vector<std::byte> from(kCopied, std::byte(1)), to(kCopied);
  double nanos =
      medianTime(15, [&] { std::memcpy(to.data(), from.data(), kCopied); });
  rates.bytesPerSecond = 2.0 * double(kCopied) * 1e9 / nanos;
  return rates;
}

int32_t coresHere() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return int32_t(std::max(1u, std::thread::hardware_concurrency()));
}

Bytes memoryHere() {
  return Bytes(sysconf(_SC_PHYS_PAGES)) * Bytes(sysconf(_SC_PAGESIZE));
}

} // namespace takt::rt
