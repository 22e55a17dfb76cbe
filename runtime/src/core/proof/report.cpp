//===- report.cpp - a proof in words ----------------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The same things as text for people and as JSON for programs.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/core/proof.h"

#include "../check.h"

#include "takt-rt/core/error.h"
#include "takt-rt/core/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace takt::rt {

const char *ruleName(ProofRule rule) {
  switch (rule) {
  case ProofRule::Structure:
    return "structure";
  case ProofRule::Matching:
    return "matching";
  case ProofRule::Order:
    return "order";
  case ProofRule::Completeness:
    return "completeness";
  case ProofRule::StaleRead:
    return "stale-read";
  case ProofRule::Lifetime:
    return "lifetime";
  case ProofRule::Capacity:
    return "capacity";
  case ProofRule::MixedStreams:
    return "mixed-streams";
  case ProofRule::Figures:
    return "figures";
  }
  return "?";
}

static std::string endText(const ProofEnd &end) {
  std::string text =
      fmt::format("rank {} ({}), lane {}, instruction {}: {}", end.rank,
                  end.role, quoted(end.lane), end.instr, end.action);
  if (end.begin && end.end)
    text += fmt::format(", predicted {} to {}", formatNanos(*end.begin),
                        formatNanos(*end.end));
  return text;
}

static std::string failureText(const ProofFailure &failure) {
  std::string text =
      fmt::format("{}: {}", ruleName(failure.rule), failure.text);
  for (const ProofEnd &end : failure.ends)
    text += "\n  " + endText(end);
  // The first links show what a long circle repeats.
  constexpr size_t kMost = 12;
  const std::vector<ProofEnd> &circle = failure.circle;
  if (!circle.empty())
    text += "\n  in a circle, each waits for the next and the last for the "
            "first:";
  for (size_t i = 0; i < circle.size() && i < kMost; ++i)
    text += "\n    " + endText(circle[i]);
  if (circle.size() > kMost)
    text += "\n    ...";
  return text;
}

std::string proofText(const Proof &proof) {
  std::string text =
      proof.failure ? failureText(*proof.failure)
                    : fmt::format("proved: {} actions, {} messages, {} ranks",
                                  proof.actions, proof.messages, proof.ranks);
  for (const ProofFailure &warning : proof.warnings)
    text += "\nwarning: " + failureText(warning);
  return text;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

using Json = nlohmann::ordered_json;

static Json endsJson(const std::vector<ProofEnd> &ends) {
  Json list = Json::array();
  for (const ProofEnd &end : ends) {
    Json one;
    one["rank"] = end.rank;
    one["role"] = end.role;
    one["lane"] = end.lane;
    one["instruction"] = end.instr;
    one["action"] = end.action;
    one["begin_ns"] = end.begin ? Json(*end.begin) : Json();
    one["end_ns"] = end.end ? Json(*end.end) : Json();
    list.push_back(std::move(one));
  }
  return list;
}

static Json failureJson(const ProofFailure &failure) {
  Json json;
  json["rule"] = ruleName(failure.rule);
  json["text"] = failure.text;
  json["ends"] = endsJson(failure.ends);
  json["circle"] = endsJson(failure.circle);
  return json;
}

std::string proofJson(const Proof &proof) {
  Json json;
  json["proof"] = proof.failure
                      ? std::string("failed: ") + ruleName(proof.failure->rule)
                      : fmt::format("proved: {} actions, {} messages, {} ranks",
                                    proof.actions, proof.messages, proof.ranks);
  json["holds"] = proof.holds();
  json["actions"] = proof.actions;
  json["messages"] = proof.messages;
  json["ranks"] = proof.ranks;
  json["failure"] = proof.failure ? failureJson(*proof.failure) : Json();
  json["warnings"] = Json::array();
  for (const ProofFailure &warning : proof.warnings)
    json["warnings"].push_back(failureJson(warning));
  // A damaged plan's names need not be text.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void requireProof(const Proof &proof, const std::string &name) {
  if (proof.failure)
    throw Error(fmt::format("{}: {}", name, failureText(*proof.failure)));
}

} // namespace takt::rt
