//===- Problem.cpp - questions as plain data ------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Building, checking and verifying without any solver.
//
//===----------------------------------------------------------------------===//
#include "takt/Solver/Solver.h"

#include <fmt/format.h>

#include <utility>

using namespace takt::solver;

namespace {

/// Sums of many gaps stay far inside int64.
constexpr int64_t kLargestGap = int64_t(1) << 40;

std::string text(const Problem &problem, const Literal &literal) {
  switch (literal.kind) {
  case Literal::Kind::AtLeast:
    return fmt::format("{} >= {} + {}", problem.integers[literal.x],
                       problem.integers[literal.y], literal.gap);
  case Literal::Kind::Holds:
    return problem.truths[literal.x];
  case Literal::Kind::Fails:
    return "not " + problem.truths[literal.x];
  }
  return {};
}

bool isTrue(const Literal &literal, const Values &values) {
  switch (literal.kind) {
  case Literal::Kind::AtLeast:
    return values.integers[literal.x] - values.integers[literal.y] >=
           literal.gap;
  case Literal::Kind::Holds:
    return values.truths[literal.x];
  case Literal::Kind::Fails:
    return !values.truths[literal.x];
  }
  return false;
}

} // namespace

Integer Problem::addInteger(std::string name) {
  integers.push_back(std::move(name));
  return {int32_t(integers.size()) - 1};
}

Truth Problem::addTruth(std::string name) {
  truths.push_back(std::move(name));
  return {int32_t(truths.size()) - 1};
}

int32_t Problem::addRule(std::string name) {
  rules.push_back(std::move(name));
  return int32_t(rules.size()) - 1;
}

void Problem::require(Clause clause, int32_t rule) {
  constraints.push_back({std::move(clause), rule});
}

void Problem::limitWeight(std::vector<Term> terms, int64_t limit) {
  weightLimits.push_back({std::move(terms), limit});
}

std::optional<std::string> Problem::check() const {
  if (integers.empty())
    return "a problem has at least the integer 'zero'";
  auto known = [](int32_t id, size_t count) {
    return id >= 0 && size_t(id) < count;
  };
  for (size_t c = 0; c < constraints.size(); ++c) {
    const Constraint &constraint = constraints[c];
    if (constraint.clause.empty())
      return fmt::format("constraint {} has no alternatives", c);
    if (constraint.rule != kNoRule && !known(constraint.rule, rules.size()))
      return fmt::format("constraint {} belongs to rule {}, there are {}", c,
                         constraint.rule, rules.size());
    for (const Literal &literal : constraint.clause) {
      const bool difference = literal.kind == Literal::Kind::AtLeast;
      const size_t count = difference ? integers.size() : truths.size();
      if (!known(literal.x, count) || (difference && !known(literal.y, count)))
        return fmt::format("constraint {} names a variable that is not there",
                           c);
      if (literal.gap > kLargestGap || literal.gap < -kLargestGap)
        return fmt::format("constraint {} has a gap of {}, beyond 2^40", c,
                           literal.gap);
    }
  }
  for (size_t w = 0; w < weightLimits.size(); ++w) {
    int64_t sum = 0;
    if (weightLimits[w].limit < 0 || weightLimits[w].limit > kLargestWeight)
      return fmt::format("weight limit {} is {}, not 0 to 2^31 - 1", w,
                         weightLimits[w].limit);
    for (const Term &term : weightLimits[w].terms) {
      if (term.literal.kind == Literal::Kind::AtLeast ||
          !known(term.literal.x, truths.size()))
        return fmt::format("weight limit {} names a truth value that is not "
                           "there",
                           w);
      if (term.weight < 0 || term.weight > kLargestWeight ||
          (sum += term.weight) > kLargestWeight)
        return fmt::format("weight limit {} has weights beyond 2^31 - 1", w);
    }
  }
  return std::nullopt;
}

std::optional<std::string> takt::solver::verify(const Problem &problem,
                                                const Values &values) {
  if (auto fault = problem.check())
    return fault;
  if (values.integers.size() != problem.integers.size() ||
      values.truths.size() != problem.truths.size())
    return "the values are not those of the problem's variables";
  if (values.integers[kOrigin.id] != 0)
    return "the origin is not 0";
  for (const Problem::Constraint &constraint : problem.constraints) {
    bool any = false;
    std::string alternatives;
    for (const Literal &literal : constraint.clause) {
      any |= isTrue(literal, values);
      alternatives +=
          (alternatives.empty() ? "'" : ", '") + text(problem, literal) + "'";
    }
    if (!any)
      return fmt::format("none of {} is true", alternatives);
  }
  for (const WeightLimit &limit : problem.weightLimits) {
    int64_t sum = 0;
    for (const Term &term : limit.terms)
      sum += isTrue(term.literal, values) ? term.weight : 0;
    if (sum > limit.limit)
      return fmt::format("weights add up to {}, beyond {}", sum, limit.limit);
  }
  return std::nullopt;
}
