//===- DownSetProgram.cpp - the best chain of down-sets -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Larger down-sets first: all blocks above one are known when it is reached,
// and every block that ends there is found by taking nodes away, each down-set
// below once. Three things end such a walk early: work and memory of a block
// only grow (its transfers may shrink), and what lies below must still find
// devices.
//
//===----------------------------------------------------------------------===//

#include "DownSetProgram.h"

#include <algorithm>

namespace takt::graphcut {

Context::Context(const GraphProblem &problem)
    : problem(problem), graph(condense(problem)), rules(problem, graph),
      use(problem) {
  for (const GraphNode &node : graph.nodes) {
    Nanos least = kNever;
    for (const Choice &choice : use.choices()) {
      const Nanos time = node.time[choice.device];
      if (time != kCannotRun)
        least = std::min(least, time);
    }
    leastTime.push_back(least);
  }
}

namespace {

/// Whether `devices` can do the work, each within the limit.
bool within(Nanos work, Nanos limit, int64_t devices) {
  if (devices <= 0)
    return work == 0;
  return (work + devices - 1) / devices <= limit;
}

class Program {
public:
  Program(const Context &context, const Lattice &lattice, Nanos limit,
          Meter &meter)
      : context(context), problem(context.problem), lattice(lattice),
        use(context.use), words(lattice.words), states(use.size()),
        limit(limit), meter(meter),
        best(int64_t(lattice.size()) * states, kNever), from(best.size()),
        loads(lattice.size()), reached(lattice.size(), -1), block(words),
        rest(lattice.size(), 0) {
    widest.assign(problem.devices.size(), 0);
    for (const Choice &choice : use.choices())
      widest[choice.device] = std::max(widest[choice.device], choice.replicas);
    for (int32_t i = 1; i < lattice.size(); ++i) {
      const Lattice::Step &step = lattice.steps[lattice.firstStep[i]];
      const Nanos least = context.leastTime[step.node];
      rest[i] = least == kNever || rest[step.below] == kNever
                    ? kNever
                    : rest[step.below] + least;
    }
    if (problem.costModel == GraphCostModel::Relayed)
      for (int32_t i = 0; i < lattice.size(); ++i)
        cuts.push_back(context.rules.crossing(lattice.set(i)));
  }

  Answer run() {
    Answer answer;
    const int32_t full = lattice.size() - 1;
    if (rest[full] == kNever)
      return answer; // some node runs nowhere
    value(full, 0) = 0;
    for (int32_t above = full; above > 0; --above) {
      if (meter.exhausted()) {
        answer.finished = false;
        break;
      }
      findAlive(above);
      if (!alive.empty())
        walk(above);
    }
    if (finalState >= 0)
      answer.partition = build();
    return answer;
  }

private:
  struct Source {
    int32_t above = -1, state = -1;
    int32_t choice = -1;
  };

  Nanos &value(int32_t set, int32_t state) {
    return best[int64_t(set) * states + state];
  }

  /// States of `above` from which the rest may still be placed.
  void findAlive(int32_t above) {
    alive.clear();
    for (int32_t s = 0; s < states; ++s)
      if (value(above, s) <= limit && value(above, s) != kNever &&
          within(rest[above], limit, use.left(s)))
        alive.push_back(s);
  }

  /// Every block that ends at `above`.
  void walk(int32_t above) {
    queue.assign(1, above);
    loads[above] = BlockLoad();
    reached[above] = above;
    for (size_t at = 0; at < queue.size(); ++at) {
      const int32_t below = queue[at];
      const Word *lower = lattice.set(below), *upper = lattice.set(above);
      for (int32_t w = 0; w < words; ++w)
        block[w] = upper[w] & ~lower[w];
      if (below != above)
        place(below, above);
      for (int32_t e = lattice.firstStep[below];
           e < lattice.firstStep[below + 1]; ++e) {
        const Lattice::Step &step = lattice.steps[e];
        if (reached[step.below] == above)
          continue;
        reached[step.below] = above;
        ++meter.done;
        BlockLoad &load = loads[step.below];
        load = loads[below];
        context.rules.add(load, step.node, block.data());
        if (mayGrow(load))
          queue.push_back(step.below);
      }
    }
  }

  /// Whether this block or one that contains it may keep the limits.
  bool mayGrow(const BlockLoad &load) const {
    for (size_t kind = 0; kind < widest.size(); ++kind) {
      const Bytes memory = problem.devices[kind].memory;
      if (widest[kind] > 0 && !(load.cannotRun >> kind & 1) &&
          (memory == 0 || load.memory <= memory) &&
          within(load.work[kind], limit, widest[kind]))
        return true;
    }
    return false;
  }

  void place(int32_t below, int32_t above) {
    BlockLoad load = loads[below];
    if (!cuts.empty()) {
      load.in = cuts[below];
      load.out = cuts[above];
    }
    const int32_t choices = use.choices().size();
    for (int32_t c = 0; c < choices; ++c) {
      const Choice &choice = use.choices()[c];
      const Nanos period = periodOf(problem, load, choice);
      if (period > limit || period == kNever)
        continue;
      const Bytes memory = problem.devices[choice.device].memory;
      for (const int32_t s : alive) {
        const int32_t next = use.next(s, c);
        if (next < 0)
          continue;
        if (memory != 0 &&
            load.memory + load.saved * use.inFlight(next, choice) > memory)
          continue;
        const Nanos worst = std::max(period, value(above, s));
        if (worst > limit || worst >= value(below, next))
          continue;
        value(below, next) = worst;
        from[int64_t(below) * states + next] = {above, s, c};
        if (below == 0 && use.complete(next)) {
          finalState = next;
          limit = worst - 1; // only better ones from here
        }
      }
    }
  }

  GraphPartition build() const {
    GraphPartition partition;
    int32_t below = 0, state = finalState;
    while (below != lattice.size() - 1) {
      const Source &source = from[int64_t(below) * states + state];
      const Choice &choice = use.choices()[source.choice];
      GraphBlock made;
      made.device = choice.device;
      made.replicas = choice.replicas;
      Bits nodes(lattice.set(source.above), lattice.set(source.above) + words);
      for (int32_t w = 0; w < words; ++w)
        nodes[w] &= ~lattice.set(below)[w];
      forEach(nodes.data(), words, [&](int32_t v) {
        const std::vector<int32_t> &members = context.graph.members[v];
        made.nodes.insert(made.nodes.end(), members.begin(), members.end());
      });
      std::sort(made.nodes.begin(), made.nodes.end());
      partition.blocks.push_back(std::move(made));
      below = source.above;
      state = source.state;
    }
    evaluate(problem, partition);
    return partition;
  }

  const Context &context;
  const GraphProblem &problem;
  const Lattice &lattice;
  const DeviceUse &use;
  const int32_t words, states;
  Nanos limit;
  Meter &meter;
  std::vector<Nanos> best;      ///< of each down-set and state
  std::vector<Source> from;     ///< of each down-set and state
  std::vector<BlockLoad> loads; ///< of the block from a down-set to `above`
  std::vector<int32_t> reached; ///< the `above` whose walk reached it last
  Bits block;
  std::vector<Nanos> rest;     ///< least work inside each down-set
  std::vector<Nanos> cuts;     ///< under Relayed
  std::vector<int64_t> widest; ///< replicas, by kind of device
  std::vector<int32_t> alive, queue;
  int32_t finalState = -1;
};

} // namespace

Answer bestChain(const Context &context, const Lattice &lattice, Nanos limit,
                 Meter &meter) {
  return Program(context, lattice, limit, meter).run();
}

} // namespace takt::graphcut
