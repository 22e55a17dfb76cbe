//===- InterpreterBench.cpp - what an instruction costs -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Plans whose procedures have no kernels and whose samples cost nothing, so
// that what is left is the interpreter, the host device and, between ranks,
// messages. All ranks take turns on one thread: none ever waits for a peer that
// the machine has not let run. Over TCP it waits for the thread of the sockets,
// and waiting is polling there.
//
//===----------------------------------------------------------------------===//

#include "CountedNew.h"
#include "Member.h"
#include "TinyPlan.h"

#include "takt-rt/host/host_device.h"
#include "takt-rt/transport/threads.h"

#include <benchmark/benchmark.h>

#include <thread>

using namespace takt::rt;
using namespace takt::rt::test;

namespace {

class NoSamples final : public Source {
public:
  void fill(const InputInfo &, int64_t, int64_t, void *) const override {}
};

Plan emptyPlan(const benchmark::State &state) {
  TinyOptions options;
  options.stages = int32_t(state.range(0));
  options.replicas = int32_t(state.range(1));
  options.microBatches = 64;
  Plan plan = tinyPlan(options);
  for (Role &role : plan.roles)
    for (Procedure &procedure : role.procedures)
      procedure.kernels.clear();
  return plan;
}

/// All ranks of a plan, on one thread.
class Ranks {
public:
  /// `exchanges[r]` has the mailboxes of rank r.
  Ranks(const Plan &plan, const std::vector<Exchange *> &exchanges) {
    for (int32_t r = 0; r < plan.numRanks(); ++r) {
      devices.push_back(
          std::make_unique<HostDevice>(plan, r, *exchanges[r], source));
      interpreters.emplace_back(plan, r, *devices.back());
      for (const Lane &lane : plan.roles[plan.roleOf(r)].lanes)
        instructions += lane.instrs.size();
    }
  }

  void step() {
    auto now = std::chrono::steady_clock::now();
    for (size_t r = 0; r < devices.size(); ++r) {
      devices[r]->beginStep(stepsDone, now);
      interpreters[r].reset(stepsDone);
    }
    for (bool finished = false; !finished;) {
      finished = true;
      for (Interpreter &interpreter : interpreters) {
        interpreter.advance();
        finished = finished && interpreter.finished();
      }
    }
    for (const std::unique_ptr<HostDevice> &device : devices)
      device->endStep();
    ++stepsDone;
  }

  uint64_t instructions = 0; ///< of a step, of all ranks

private:
  NoSamples source;
  std::vector<std::unique_ptr<HostDevice>> devices;
  std::vector<Interpreter> interpreters;
  int64_t stepsDone = 0;
};

void measure(benchmark::State &state, Ranks &ranks) {
  ranks.step(); // what is allocated once is allocated here
  uint64_t before = allocationsHere();
  for (auto _ : state)
    ranks.step();
  state.counters["allocations"] = double(allocationsHere() - before);
  state.counters["per_instruction"] = benchmark::Counter(
      double(state.iterations()) * double(ranks.instructions),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void threads(benchmark::State &state) {
  Plan plan = emptyPlan(state);
  ThreadExchange exchange(plan);
  Ranks ranks(plan, std::vector<Exchange *>(plan.numRanks(), &exchange));
  measure(state, ranks);
}

/// Each rank with the session and the transport it has as a process.
void processes(benchmark::State &state, TransportKind kind) {
  Plan plan = emptyPlan(state);
  std::string where = freeAddress();
  std::vector<std::unique_ptr<Member>> members(plan.numRanks());
  std::vector<std::thread> meeting;
  for (int32_t rank = 0; rank < plan.numRanks(); ++rank)
    meeting.emplace_back([&, rank] {
      members[rank] =
          std::make_unique<Member>(plan, rank, where, kind, false, 600);
    });
  for (std::thread &thread : meeting)
    thread.join();
  std::vector<Exchange *> exchanges;
  for (const std::unique_ptr<Member> &member : members)
    exchanges.push_back(member->connected.exchange.get());
  {
    Ranks ranks(plan, exchanges);
    measure(state, ranks);
  }
  std::vector<std::thread> leaving;
  for (const std::unique_ptr<Member> &member : members)
    leaving.emplace_back([&member] { member->session.leave(); });
  for (std::thread &thread : leaving)
    thread.join();
}

} // namespace

BENCHMARK(threads)
    ->ArgNames({"stages", "replicas"})
    ->Args({1, 1})
    ->Args({2, 1})
    ->Args({1, 2})
    ->Args({2, 2});
BENCHMARK_CAPTURE(processes, shm, TransportKind::SharedMemory)
    ->ArgNames({"stages", "replicas"})
    ->Args({2, 1})
    ->Args({1, 2});
BENCHMARK_CAPTURE(processes, tcp, TransportKind::Tcp)
    ->ArgNames({"stages", "replicas"})
    ->Args({2, 1});

BENCHMARK_MAIN();
