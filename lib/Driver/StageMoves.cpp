//===- StageMoves.cpp - what may cross a cut of a graph -------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A move is another order of the layers and a cut that lies elsewhere in it:
// both are valued as the assignment was, with everything else kept.
//
//===----------------------------------------------------------------------===//
#include "StageMoves.h"

#include "takt/Cost/GraphStages.h"
#include "takt/Layer/Order.h"
#include "takt/Support/Quantity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <set>

using namespace takt;

namespace {

constexpr size_t kMostLines = 6; ///< in each direction

using Layers = std::set<int32_t>;

class Moves {
public:
  Moves(const StagedProblem &staged, const Partition &partition, size_t cut)
      : staged(staged), partition(partition), cut(cut) {
    const Graph &graph = staged.graph;
    edges = fixedOrder(graph);
    for (size_t l = 0; l < graph.layers.size(); ++l)
      for (int32_t id : graph.layers[l].inputs)
        if (const int32_t from = graph.values[id].producer; from >= 0)
          edges.push_back({from, int32_t(l)});
    std::sort(edges.begin(), edges.end());
  }

  std::vector<StageMove> run() {
    for (const bool later : {false, true})
      for (const Layers &unit : units(later))
        moves.push_back(value(unit, later));
    std::stable_sort(moves.begin(), moves.end(),
                     [](const StageMove &a, const StageMove &b) {
                       return std::pair(!a.fault.empty(), a.difference) <
                              std::pair(!b.fault.empty(), b.difference);
                     });
    return std::move(moves);
  }

private:
  const StageChoice &stageOf(bool later) const {
    return partition.stages[later ? cut : cut + 1];
  }

  /// With everything in the stage that cannot stay without it.
  void close(Layers &unit, bool later, const StageChoice &stage) const {
    auto inside = [&](int32_t l) { return l >= stage.begin && l < stage.end; };
    auto add = [&](int32_t from, int32_t to) {
      if (unit.count(from) && inside(to))
        unit.insert(to);
    };
    // Every edge leads to a layer further down, so one pass is enough.
    if (later)
      for (const auto &[from, to] : edges)
        add(from, to);
    else
      for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge)
        add(edge->second, edge->first);
  }

  /// Sets of layers that may leave their stage: single ones and groups.
  std::vector<Layers> units(bool later) const {
    const StageChoice &stage = stageOf(later);
    std::set<Layers> found;
    for (int32_t l = int32_t(stage.begin); l < stage.end; ++l) {
      Layers unit{l};
      close(unit, later, stage);
      if (unit.size() == 1)
        found.insert(unit);
    }
    for (const ConstraintSpec &spec : staged.constraints) {
      if (spec.kind != ConstraintKind::KeepTogether)
        continue;
      Layers group;
      for (const std::string &name : spec.names)
        for (const int32_t l : layersNamed(staged.graph, name))
          group.insert(l);
      if (group.empty() || *group.begin() < stage.begin ||
          *group.rbegin() >= stage.end)
        continue;
      close(group, later, stage);
      found.insert(group);
    }
    return {found.begin(), found.end()};
  }

  StageMove value(const Layers &unit, bool later) const {
    const Graph &graph = staged.graph;
    const StageChoice &stage = stageOf(later);
    StageMove move;
    move.later = later;
    for (const int32_t l : unit)
      move.layers.push_back(graph.layers[l].name);
    if (int64_t(unit.size()) == stage.end - stage.begin) {
      move.fault = "would empty a stage";
      return move;
    }
    std::vector<int32_t> order(graph.layers.size());
    std::iota(order.begin(), order.end(), 0);
    const auto first = order.begin() + stage.begin,
               last = order.begin() + stage.end;
    std::stable_partition(
        first, last, [&](int32_t l) { return (unit.count(l) > 0) != later; });
    const int64_t by = int64_t(unit.size()) * (later ? -1 : 1);
    Partition moved = partition;
    moved.bound = 0; // that of the answer need not hold for the order
    moved.stages[cut].end += by;
    moved.stages[cut + 1].begin += by;
    const StagedGraph other = stagedGraph(graph, staged.costs, order);
    const std::vector<Segment> segments = layerSegments(other.graph);
    PartitionProblem problem = staged.problem;
    problem.cuts.reset();
    problem.segments = partitionProblem(other.graph, segments, staged.training,
                                        other.costs, staged.problem.cluster)
                           .segments;
    evaluate(problem, moved);
    std::string error;
    // Headroom is in the memory of the problem already.
    std::vector<ConstraintSpec> specs = staged.constraints;
    specs.erase(
        std::remove_if(specs.begin(), specs.end(),
                       [](const ConstraintSpec &spec) {
                         return spec.kind == ConstraintKind::HeadroomBytes ||
                                spec.kind == ConstraintKind::HeadroomPpm;
                       }),
        specs.end());
    const auto kept = sideConstraints(other.graph, segments, specs, error);
    // Pairs and pins of the problem count layers of the old order.
    problem.apart.clear();
    problem.pins.clear();
    if (!kept)
      move.fault = error;
    else if (auto fault = verify(problem, *kept, moved))
      move.fault = *fault;
    move.difference = moved.objective - partition.objective;
    move.before = moved.stages[cut].memory - partition.stages[cut].memory;
    move.behind =
        moved.stages[cut + 1].memory - partition.stages[cut + 1].memory;
    return move;
  }

  const StagedProblem &staged;
  const Partition &partition;
  const size_t cut;
  std::vector<std::pair<int32_t, int32_t>> edges; ///< ascending by the first
  std::vector<StageMove> moves;
};

std::string signedBytes(Bytes bytes) {
  return (bytes < 0 ? "-" : "+") + formatBytes(std::abs(bytes));
}

std::string lineOf(const StageMove &move, Nanos objective) {
  std::string line = fmt::format("'{}' {}: ", fmt::join(move.layers, "', '"),
                                 move.later ? "later" : "earlier");
  if (!move.fault.empty())
    return line + move.fault;
  const double percent =
      objective > 0 ? 100.0 * double(move.difference) / double(objective) : 0;
  return line + fmt::format("{} {} ({:+.2f} %), memory before the cut {}, "
                            "behind it {}",
                            formatTime(std::abs(move.difference)),
                            move.difference < 0 ? "faster" : "slower", percent,
                            signedBytes(move.before), signedBytes(move.behind));
}

} // namespace

std::vector<StageMove> takt::movesOver(const StagedProblem &staged,
                                       const Partition &partition, size_t cut) {
  return Moves(staged, partition, cut).run();
}

std::vector<std::string> takt::moveLines(const std::vector<StageMove> &moves,
                                         Nanos objective) {
  std::vector<std::string> lines;
  const bool better =
      std::any_of(moves.begin(), moves.end(), [](const StageMove &move) {
        return move.fault.empty() && move.difference < 0;
      });
  lines.push_back(better ? "a move over it is faster: the order of the layers "
                           "comes from the period alone"
                         : "here because no move over it is faster");
  for (const bool later : {false, true}) {
    size_t shown = 0, more = 0;
    for (const StageMove &move : moves)
      if (move.later == later && shown < kMostLines) {
        lines.push_back(lineOf(move, objective));
        ++shown;
      } else if (move.later == later) {
        ++more;
      }
    if (more > 0)
      lines.push_back(fmt::format("and {} more {}, none of them faster than "
                                  "these",
                                  more, later ? "later" : "earlier"));
  }
  return lines;
}

nlohmann::ordered_json takt::moveJson(const StageMove &move) {
  nlohmann::ordered_json json;
  json["layers"] = move.layers;
  json["direction"] = move.later ? "later" : "earlier";
  if (!move.fault.empty()) {
    json["fault"] = move.fault;
    return json;
  }
  json["difference_ns"] = move.difference;
  json["memory_before"] = move.before;
  json["memory_behind"] = move.behind;
  return json;
}
