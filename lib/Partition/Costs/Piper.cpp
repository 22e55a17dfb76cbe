//===- Piper.cpp - Piper's planner ----------------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Whether any plan takes no more than a given time is a program over down-sets,
// from the last stage to the first: what a stage holds depends on the replicas
// behind it. For every down-set that is left it keeps those pairs of devices
// and replicas spent that no other pair beats. What is left must fit the
// devices that are left, which rules most down-sets out where the time is
// short; so the times asked for ascend from the bound before they close in on
// the best.
//
//===----------------------------------------------------------------------===//
#include "../Graph/Condensed.h"
#include "../Graph/Lattice.h"
#include "PiperCosts.h"
#include "PiperStage.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace takt {

namespace {

using namespace piper;
using graphcut::Lattice;

constexpr double kNever = std::numeric_limits<double>::infinity();
/// For sums that are taken in another order.
constexpr double kRounding = 1 + 1e-9;

struct Label {
  int64_t devices = 0, replicas = 0; ///< spent behind
  int32_t above = -1, label = -1;    ///< the down-set and label it came from
  int64_t tensor = 1, ownReplicas = 1;
};

class Search {
public:
  Search(const PiperProblem &problem, const Adjacency &adjacency,
         Lattice lattice, int64_t &work, int64_t workLimit)
      : problem(problem), adjacency(adjacency), lattice(std::move(lattice)),
        options(replicaChoices(problem)), maxReplicas(mostReplicas(problem)),
        work(work), workLimit(workLimit) {
    for (const PiperNode &node : problem.nodes)
      for (const auto &[degree, variants] : node.variants)
        if (!variants.empty() && degree <= problem.devices)
          degrees.insert(degree);
    sumUp();
  }

  /// Device seconds of a sample over all devices.
  double average() const { return least.back() / double(problem.devices); }

  /// A plan that takes `most` seconds at most.
  std::optional<PiperPlan> within(double most);

  bool unsure = false; ///< a stage was given up, or the work limit was met

private:
  /// Of one stage and degree.
  struct Layers {
    std::vector<int32_t> nodes;
    std::vector<std::vector<double>> crossing; ///< by variant
  };

  void sumUp();
  Layers layersOf(int32_t above, int32_t below, int64_t tensor) const;
  void choicesOf(const Layers &layers, int64_t tensor, int64_t replicas,
                 int64_t fromHere, StageChoices &choices) const;
  void extend(int32_t above, int32_t below, double most);
  void insert(int32_t set, const Label &label);
  PiperPlan planOf(double most, int32_t label);

  const PiperProblem &problem;
  const Adjacency &adjacency;
  const Lattice lattice;
  const std::vector<int64_t> options;
  const int64_t maxReplicas;
  int64_t &work;
  const int64_t workLimit;
  std::set<int64_t> degrees;
  std::vector<double> least; ///< device seconds of each down-set, at least
  /// Of each down-set and degree: seconds at least, nodes without a variant.
  std::map<int64_t, std::vector<double>> seconds;
  std::map<int64_t, std::vector<int32_t>> lacking;
  std::vector<std::vector<Label>> labels; ///< of each down-set
};

void Search::sumUp() {
  auto fill = [&](auto &sums, auto &&ofNode) {
    sums.assign(lattice.size(), 0);
    for (int32_t set = 1; set < lattice.size(); ++set) {
      const Lattice::Step &step = lattice.steps[lattice.firstStep[set]];
      sums[set] = sums[step.below] + ofNode(problem.nodes[step.node]);
    }
  };
  auto fastest = [](const PiperNode &node, int64_t degree) {
    double best = kNever;
    const auto found = node.variants.find(degree);
    if (found != node.variants.end())
      for (const PiperVariant &variant : found->second)
        best = std::min(best, variant.seconds);
    return best;
  };
  for (const int64_t degree : degrees) {
    fill(seconds[degree], [&](const PiperNode &node) {
      const double own = fastest(node, degree);
      return own == kNever ? 0 : own;
    });
    fill(lacking[degree], [&](const PiperNode &node) {
      return fastest(node, degree) == kNever ? 1 : 0;
    });
  }
  fill(least, [&](const PiperNode &node) {
    double best = kNever;
    for (const int64_t degree : degrees)
      best = std::min(best, fastest(node, degree) * double(degree));
    return best;
  });
}

Search::Layers Search::layersOf(int32_t above, int32_t below,
                                int64_t tensor) const {
  Layers layers;
  graphcut::Bits stage(lattice.set(above), lattice.set(above) + lattice.words);
  for (int32_t w = 0; w < lattice.words; ++w)
    stage[w] &= ~lattice.set(below)[w];
  graphcut::forEach(stage.data(), lattice.words, [&](int32_t node) {
    layers.nodes.push_back(node);
    layers.crossing.emplace_back();
    for (const PiperVariant &variant : problem.nodes[node].variants.at(tensor))
      layers.crossing.back().push_back(
          crossingBytes(problem, adjacency, node, variant, [&](int32_t other) {
            return graphcut::has(stage.data(), other);
          }));
  });
  return layers;
}

void Search::choicesOf(const Layers &layers, int64_t tensor, int64_t replicas,
                       int64_t fromHere, StageChoices &choices) const {
  choices.clear();
  for (size_t i = 0; i < layers.nodes.size(); ++i) {
    const auto &variants = problem.nodes[layers.nodes[i]].variants.at(tensor);
    std::vector<Choice> ways;
    for (size_t v = 0; v < variants.size(); ++v)
      ways.push_back(
          {nodeSeconds(problem, variants[v], layers.crossing[i][v], replicas),
           nodeBytes(variants[v], replicas, fromHere)});
    choices.add(std::move(ways));
  }
}

void Search::insert(int32_t set, const Label &label) {
  std::vector<Label> &front = labels[set];
  for (const Label &other : front)
    if (other.devices <= label.devices && other.replicas <= label.replicas)
      return;
  const auto beaten = [&](const Label &other) {
    return label.devices <= other.devices && label.replicas <= other.replicas;
  };
  front.erase(std::remove_if(front.begin(), front.end(), beaten), front.end());
  front.push_back(label);
}

/// Stages of what lies between two down-sets, before every label of the upper.
void Search::extend(int32_t above, int32_t below, double most) {
  for (const int64_t tensor : degrees) {
    if (lacking[tensor][above] != lacking[tensor][below])
      continue;
    const double compute = seconds[tensor][above] - seconds[tensor][below];
    std::optional<Layers> layers;
    for (const int64_t replicas : options) {
      if (compute / double(replicas) > most * kRounding)
        continue;
      StageChoices choices;
      // More micro-batches in flight never fit better.
      int64_t fits = 0, fails = std::numeric_limits<int64_t>::max();
      for (size_t l = 0; l < labels[above].size(); ++l) {
        const Label from = labels[above][l];
        Label to{from.devices + tensor * replicas,
                 from.replicas + replicas,
                 above,
                 int32_t(l),
                 tensor,
                 replicas};
        const int64_t left = problem.devices - to.devices;
        if (left < 0 || to.replicas > maxReplicas ||
            (below != 0 &&
             (left == 0 || least[below] > most * double(left) * kRounding)))
          continue;
        const int64_t held = (to.replicas + replicas - 1) / replicas;
        if (held >= fails)
          continue;
        if (held > fits) {
          if (!layers)
            layers = layersOf(above, below, tensor);
          choicesOf(*layers, tensor, replicas, to.replicas, choices);
          ++work;
          const Outcome outcome =
              choices.fastest() > most
                  ? Outcome::None
                  : choices.choose(most, problem.memoryBytes, nullptr);
          unsure |= outcome == Outcome::Unknown;
          if (outcome != Outcome::Found) {
            fails = std::min(fails, held);
            continue;
          }
          fits = held;
        }
        insert(below, to);
      }
    }
  }
}

PiperPlan Search::planOf(double most, int32_t label) {
  PiperPlan plan;
  for (int32_t below = 0; below != lattice.size() - 1;) {
    const Label &own = labels[below][label];
    const Layers layers = layersOf(own.above, below, own.tensor);
    StageChoices choices;
    choicesOf(layers, own.tensor, own.ownReplicas, own.replicas, choices);
    PiperStage stage;
    stage.nodes = layers.nodes;
    stage.replicas = own.ownReplicas;
    stage.tensor = own.tensor;
    choices.choose(most, problem.memoryBytes, &stage.variants);
    for (size_t i = 0; i < stage.nodes.size(); ++i) {
      const int32_t v = stage.variants[i];
      const PiperVariant &variant =
          problem.nodes[stage.nodes[i]].variants.at(own.tensor)[v];
      stage.seconds +=
          nodeSeconds(problem, variant, layers.crossing[i][v], stage.replicas);
      stage.bytes += nodeBytes(variant, stage.replicas, own.replicas);
    }
    plan.seconds = std::max(plan.seconds, stage.seconds);
    plan.stages.push_back(std::move(stage));
    below = own.above;
    label = own.label;
  }
  return plan;
}

std::optional<PiperPlan> Search::within(double most) {
  const int32_t full = lattice.size() - 1;
  labels.assign(lattice.size(), {});
  labels[full].push_back({});
  std::vector<int32_t> seen(lattice.size(), -1), stack;
  for (int32_t above = full; above > 0; --above) {
    if (labels[above].empty())
      continue;
    int64_t spent = problem.devices;
    for (const Label &label : labels[above])
      spent = std::min(spent, label.devices);
    const double share = most * double(problem.devices - spent) * kRounding;
    stack.assign(1, above);
    while (!stack.empty()) {
      const int32_t set = stack.back();
      stack.pop_back();
      for (int32_t s = lattice.firstStep[set]; s < lattice.firstStep[set + 1];
           ++s) {
        const int32_t below = lattice.steps[s].below;
        if (seen[below] == above || least[above] - least[below] > share)
          continue;
        seen[below] = above;
        stack.push_back(below);
        if (++work > workLimit) {
          unsure = true;
          return std::nullopt;
        }
        extend(above, below, most);
      }
    }
  }
  if (labels[0].empty())
    return std::nullopt;
  return planOf(most, 0);
}

/// Closes in on the best plan from both sides; `best` may hold one already.
/// Returns what is proven.
double closeIn(Search &search, std::optional<PiperPlan> &best) {
  double bound = search.average();
  auto ask = [&](double most) {
    search.unsure = false;
    if (std::optional<PiperPlan> found = search.within(most)) {
      best = std::move(found);
      return true;
    }
    if (!search.unsure)
      bound = std::max(bound, most);
    return false;
  };
  if (!best && !ask(kNever))
    return bound;
  double part = 1.0 / 64; // of the way from the bound to the best
  bool below = false;     // ask for a little less than the best
  double reached = bound; // nothing was found up to here
  while (reached < best->seconds * (1 - 1e-9)) {
    const double most = below ? best->seconds * (1 - 1e-9)
                              : reached + (best->seconds - reached) * part;
    if (ask(most)) {
      below = false;
      part = 0.5;
      continue;
    }
    reached = std::max(reached, most);
    if (search.unsure)
      break;
    below = !below && part == 0.5;
    part = std::min(2 * part, 0.5);
  }
  return bound;
}

graphcut::Condensed condensedOf(const PiperProblem &problem) {
  graphcut::Condensed graph;
  graph.size = int32_t(problem.nodes.size());
  graph.words = graphcut::wordsFor(graph.size);
  graph.before.resize(graph.size);
  graph.after.resize(graph.size);
  for (const PiperEdge &edge : problem.edges) {
    graph.before[edge.to].push_back(edge.from);
    graph.after[edge.from].push_back(edge.to);
  }
  for (auto *lists : {&graph.before, &graph.after})
    for (std::vector<int32_t> &list : *lists) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  return graph;
}

} // namespace

std::optional<PiperPlan> solvePiper(const PiperProblem &problem,
                                    const PiperSettings &settings,
                                    bool *ruledOut) {
  if (ruledOut)
    *ruledOut = false;
  if (problem.check())
    return std::nullopt;
  const Adjacency adjacency(problem);
  const graphcut::Condensed graph = condensedOf(problem);
  const std::vector<uint64_t> keys(graph.size, 0);
  int64_t work = 0, counted = 0;
  Search chain(problem, adjacency,
               prefixes(graph, graphcut::orderByKeys(graph.after, keys)), work,
               settings.workLimit);
  std::optional<PiperPlan> best;
  double bound = closeIn(chain, best);
  std::optional<Lattice> all =
      allDownSets(graph, settings.maxDownSets, counted);
  if (all && all->size() > graph.size + 1) {
    Search search(problem, adjacency, std::move(*all), work,
                  settings.workLimit);
    bound = closeIn(search, best);
    if (ruledOut)
      *ruledOut = !best && !search.unsure;
  } else if (all) {
    if (ruledOut)
      *ruledOut = !best && !chain.unsure;
  } else {
    bound = chain.average(); // the order's own bound holds for it alone
    counted = graph.size + 1;
  }
  if (best) {
    best->bound = std::min(bound, best->seconds);
    best->downSets = counted;
    best->work = work;
  }
  return best;
}

} // namespace takt
