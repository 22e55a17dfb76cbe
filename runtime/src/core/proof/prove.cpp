//===- prove.cpp - the proof, rule after rule -------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Each rule may rely on those before it: memory is checked along an order that
// exists, and the order is sought among messages that match.
//
//===----------------------------------------------------------------------===//
#include "program.h"

#include "takt-rt/core/clock.h"
#include "takt-rt/core/error.h"

#include <fmt/format.h>

namespace takt::rt {

using namespace proof;

namespace {

/// When the ends are predicted to run, where the plan runs at all.
void addTimes(const Plan &plan, ProofFailure &failure) {
  if (failure.ends.empty())
    return;
  Simulation run;
  try {
    run = simulate(plan);
  } catch (const Error &) {
    return;
  }
  for (const Record &record : run.records)
    for (ProofEnd &end : failure.ends) {
      const Role &role = plan.roles[plan.roleOf(record.rank)];
      if (record.rank == end.rank && record.instr == end.instr &&
          role.lanes[record.lane].name == end.lane) {
        end.begin = record.begin;
        end.end = record.end;
      }
    }
}

Proof count(const Plan &plan) {
  Proof proof;
  proof.ranks = plan.numRanks();
  for (const Role &role : plan.roles)
    for (const Lane &lane : role.lanes)
      proof.actions += static_cast<int64_t>(lane.instrs.size()) * role.replicas;
  return proof;
}

/// The proof of a plan; its order goes to `levels` if it holds.
Proof run(const Plan &plan, Order &order) {
  Faults faults = findFaults(plan);
  if (!faults.list.empty()) {
    Proof proof;
    proof.failure = explainStructure(plan, faults);
    return proof;
  }
  Proof proof = count(plan);
  Program program(plan);
  proof.failure = program.match();
  if (proof.failure)
    return proof;
  proof.messages = program.countMessages();
  order = findOrder(program);
  proof.failure = order.failure;
  if (!proof.failure)
    proof.failure = checkCalls(program);
  if (!proof.failure)
    proof.failure = checkParams(program);
  if (!proof.failure) {
    GradientProof gradients = checkGradients(program);
    if (!gradients.failure || gradients.isVague)
      proof.failure = checkMemory(program, order);
    if (!proof.failure)
      proof.failure = gradients.failure;
  }
  if (!proof.failure)
    proof.failure = checkCapacity(plan);
  if (proof.failure)
    addTimes(plan, *proof.failure);
  proof.warnings = findWarnings(program);
  return proof;
}

} // namespace

Proof prove(const Plan &plan) {
  Order order;
  return run(plan, order);
}

Proof certify(Plan &plan) {
  Order order;
  Proof proof = run(plan, order);
  if (!proof.holds())
    return proof;
  size_t next = 0;
  for (Role &role : plan.roles)
    for (Lane &lane : role.lanes) {
      auto first = order.levels.begin() + static_cast<int64_t>(next);
      lane.order.assign(first,
                        first + static_cast<int64_t>(lane.instrs.size()));
      next += lane.instrs.size();
    }
  return proof;
}

bool hasCertificate(const Plan &plan) {
  bool any = false;
  for (const Role &role : plan.roles)
    for (const Lane &lane : role.lanes) {
      if (lane.order.size() != lane.instrs.size())
        return false;
      any |= !lane.order.empty();
    }
  return any;
}

namespace {

/// The first edge that the places of the certificate do not follow.
std::optional<ProofFailure> checkPlaces(const Program &program) {
  auto place = [&](Node node) {
    return program.lane(node).order[program.sites[node].instr];
  };
  auto refuse = [&](Node earlier, Node later) {
    return program.failure(
        ProofRule::Order,
        fmt::format("the certificate puts {} at {} and {} at {}, against their "
                    "order",
                    program.text(earlier), place(earlier), program.text(later),
                    place(later)),
        earlier, later);
  };
  for (Node node = 0; node < program.size(); ++node) {
    const Site &site = program.sites[node];
    const Lane &lane = program.lane(node);
    const Instr &instr = lane.instrs[site.instr];
    uint32_t own = lane.order[site.instr];
    if (site.instr > 0 && lane.order[site.instr - 1] >= own)
      return refuse(node - 1, node);
    for (uint32_t w = instr.waitBegin; w < instr.waitEnd; ++w) {
      const Wait &wait = lane.waits[w];
      if (wait.count > 0 &&
          program.role(node).lanes[wait.lane].order[wait.count - 1] >= own)
        return refuse(program.node(site.role, wait.lane, wait.count - 1), node);
    }
    if (Node mate = program.mates[node]; mate != kNoNode && place(mate) != own)
      return refuse(mate, node);
  }
  return std::nullopt;
}

} // namespace

Proof checkCertificate(const Plan &plan) {
  Proof proof = count(plan);
  Program program(plan);
  std::optional<ProofFailure> places;
  bool holds = !program.match() && !(places = checkPlaces(program)) &&
               !checkCalls(program) && !checkParams(program) &&
               !checkGradients(program).failure && !checkCapacity(plan) &&
               recheckMemory(program);
  if (holds) {
    proof.messages = program.countMessages();
    proof.byCertificate = true;
    return proof;
  }
  // The whole proof says what is wrong with the plan, and follows messages
  // where lanes and waits alone do not decide.
  Proof whole = prove(plan);
  if (whole.holds() && places)
    whole.failure = std::move(places);
  return whole;
}

} // namespace takt::rt
