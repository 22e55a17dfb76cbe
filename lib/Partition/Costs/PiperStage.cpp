//===- PiperStage.cpp - variants of a stage -------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Starting from the fastest variants, a step of a node goes to the next variant
// on the lower hull of its times over its bytes. In order of the time they cost
// for a byte they save, steps are the relaxation's answer: all whole but the
// last.
//
//===----------------------------------------------------------------------===//
#include "PiperStage.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace takt::piper {

namespace {

/// Fronts above this are given up.
constexpr size_t kMostFront = 20000;
constexpr double kNever = std::numeric_limits<double>::infinity();

struct Step {
  int32_t node = 0, to = 0; ///< variant
  double seconds = 0, saved = 0;

  double rate() const { return seconds / saved; }
};

/// Indices of the variants on the lower hull, from the fastest.
std::vector<int32_t> hullOf(const std::vector<Choice> &variants) {
  std::vector<int32_t> order(variants.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = int32_t(i);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::tie(variants[a].seconds, variants[a].bytes, a) <
           std::tie(variants[b].seconds, variants[b].bytes, b);
  });
  std::vector<int32_t> hull;
  auto rate = [&](int32_t from, int32_t to) {
    return (variants[to].seconds - variants[from].seconds) /
           (variants[from].bytes - variants[to].bytes);
  };
  for (const int32_t next : order) {
    if (!hull.empty() && variants[next].bytes >= variants[hull.back()].bytes)
      continue;
    while (hull.size() > 1 &&
           rate(hull[hull.size() - 2], hull.back()) >= rate(hull.back(), next))
      hull.pop_back();
    hull.push_back(next);
  }
  return hull;
}

/// The relaxation of some of the nodes.
struct Relaxed {
  double seconds = 0, bytes = 0; ///< of the fastest variants
  std::vector<Step> steps;       ///< by ascending rate
  std::vector<double> savedBy,
      secondsBy; ///< sums of steps before each, and all

  void sum() {
    std::sort(steps.begin(), steps.end(), [](const Step &a, const Step &b) {
      const double left = a.rate(), right = b.rate();
      return std::tie(left, a.node, a.to) < std::tie(right, b.node, b.to);
    });
    savedBy.assign(1, 0);
    secondsBy.assign(1, 0);
    for (const Step &step : steps) {
      savedBy.push_back(savedBy.back() + step.saved);
      secondsBy.push_back(secondsBy.back() + step.seconds);
    }
  }

  /// Steps that a budget of bytes needs, the last perhaps in part; one more
  /// than there are: too few.
  size_t stepsFor(double most) const {
    return std::lower_bound(savedBy.begin(), savedBy.end(), bytes - most) -
           savedBy.begin();
  }

  double least(double most) const {
    const size_t whole = stepsFor(most);
    if (whole > steps.size())
      return kNever;
    if (whole == 0)
      return seconds;
    const double rest = bytes - most - savedBy[whole - 1];
    return seconds + secondsBy[whole - 1] + rest * steps[whole - 1].rate();
  }
};

struct State {
  double bytes = 0, seconds = 0;
  int32_t before = -1, variant = 0; ///< the state that it came from
};

/// States that no other one beats, by ascending bytes.
void keepFront(std::vector<State> &states) {
  std::sort(states.begin(), states.end(), [](const State &a, const State &b) {
    return std::tie(a.bytes, a.seconds, a.before, a.variant) <
           std::tie(b.bytes, b.seconds, b.before, b.variant);
  });
  size_t kept = 0;
  for (const State &state : states)
    if (kept == 0 || state.seconds < states[kept - 1].seconds)
      states[kept++] = state;
  states.resize(kept);
}

} // namespace

double StageChoices::fastest() const {
  double sum = 0;
  for (const std::vector<Choice> &variants : nodes) {
    double least = kNever;
    for (const Choice &variant : variants)
      least = std::min(least, variant.seconds);
    sum += least;
  }
  return sum;
}

Outcome StageChoices::choose(double mostSeconds, double mostBytes,
                             std::vector<int32_t> *picked) const {
  Relaxed all;
  std::vector<int32_t> now;
  std::vector<std::vector<int32_t>> hulls;
  for (size_t n = 0; n < nodes.size(); ++n) {
    hulls.push_back(hullOf(nodes[n]));
    const std::vector<int32_t> &hull = hulls.back();
    now.push_back(hull.front());
    all.seconds += nodes[n][hull.front()].seconds;
    all.bytes += nodes[n][hull.front()].bytes;
    for (size_t i = 1; i < hull.size(); ++i) {
      const Choice &from = nodes[n][hull[i - 1]], &to = nodes[n][hull[i]];
      all.steps.push_back({int32_t(n), hull[i], to.seconds - from.seconds,
                           from.bytes - to.bytes});
    }
  }
  all.sum();
  const size_t whole = all.stepsFor(mostBytes);
  if (whole > all.steps.size() || all.least(mostBytes) > mostSeconds)
    return Outcome::None;
  for (size_t i = 0; i < whole; ++i)
    now[all.steps[i].node] = all.steps[i].to;
  if (all.seconds + all.secondsBy[whole] <= mostSeconds) {
    if (picked)
      *picked = std::move(now);
    return Outcome::Found;
  }

  std::vector<std::vector<State>> fronts{{State()}};
  for (size_t n = 0; n < nodes.size(); ++n) {
    Relaxed rest;
    for (size_t later = n + 1; later < nodes.size(); ++later) {
      rest.seconds += nodes[later][hulls[later].front()].seconds;
      rest.bytes += nodes[later][hulls[later].front()].bytes;
    }
    for (const Step &step : all.steps)
      if (size_t(step.node) > n)
        rest.steps.push_back(step);
    rest.sum();
    std::vector<State> next;
    for (size_t s = 0; s < fronts.back().size(); ++s)
      for (size_t v = 0; v < nodes[n].size(); ++v) {
        const State &from = fronts.back()[s];
        const State state{from.bytes + nodes[n][v].bytes,
                          from.seconds + nodes[n][v].seconds, int32_t(s),
                          int32_t(v)};
        if (state.seconds + rest.least(mostBytes - state.bytes) <= mostSeconds)
          next.push_back(state);
      }
    keepFront(next);
    if (next.size() > kMostFront)
      return Outcome::Unknown;
    fronts.push_back(std::move(next));
  }
  // Sums that are rounded in another order may let a choice through that is
  // over the limits by a rounding.
  const State *found = nullptr;
  for (const State &state : fronts.back())
    if (state.bytes <= mostBytes && state.seconds <= mostSeconds &&
        (!found || state.seconds < found->seconds))
      found = &state;
  if (!found)
    return Outcome::None;
  for (size_t n = nodes.size(); n-- > 0;) {
    now[n] = found->variant;
    found = &fronts[n][found->before];
  }
  if (picked)
    *picked = std::move(now);
  return Outcome::Found;
}

} // namespace takt::piper
