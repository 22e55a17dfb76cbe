//===- sums.cpp - what has gone into the sums of gradients ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Accumulators start with their own use; messages and additions combine them.
//
//===----------------------------------------------------------------------===//
#include "sums.h"

#include "../check.h"

#include <fmt/format.h>

namespace takt::rt::proof {

Sums::Key Sums::keyOf(uint16_t role, const BufferRef &ref) const {
  return {role, ref.pool, touches[role].partOf(ref).value_or(0)};
}

/// An accumulator of the role holds its own use, until something is added to it
/// or put into it.
Sums::Contributions Sums::sumOf(uint16_t role, const BufferRef &ref) const {
  auto known = sums.find(keyOf(role, ref));
  if (known != sums.end())
    return known->second;
  const Role &own = plan.roles[role];
  Contributions sum;
  if (own.pools[ref.pool].kind != PoolKind::Gradients)
    return sum;
  for (size_t p = 0; p < own.params.size(); ++p)
    for (size_t use = 0; use < own.params[p].grads.size(); ++use) {
      const BufferRef &grad = own.params[p].grads[use];
      if (grad.pool == ref.pool && grad.offset == ref.offset)
        sum[{role, p, use}] = 1;
    }
  return sum;
}

/// Every use of the parameter by every role that has an accumulator for it.
Sums::Contributions Sums::wanted(int32_t param) const {
  Contributions all;
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    const Role &role = plan.roles[r];
    for (size_t p = 0; p < role.params.size(); ++p)
      for (size_t use = 0; use < role.params[p].grads.size(); ++use)
        if (role.params[p].param == param &&
            role.pools[role.params[p].grads[use].pool].kind ==
                PoolKind::Gradients)
          all[{static_cast<uint16_t>(r), p, use}] = 1;
  }
  return all;
}

void Sums::move(Node node) {
  const Instr &instr = program.instr(node);
  uint16_t role = program.sites[node].role;
  if (instr.kind != InstrKind::Send && instr.kind != InstrKind::Recv)
    return;
  auto bufferOf = [&](uint16_t r) {
    return findEndpoint(plan.roles[r].channels, instr.target)->buffer;
  };
  bool sends = instr.kind == InstrKind::Send;
  // Whichever end comes first in the walk, the sum is the sender's.
  Node send = sends ? node : program.mates[node];
  uint16_t source = program.sites[send].role;
  auto [entry, isNew] = messages.insert({send, {}});
  if (isNew)
    entry->second = sumOf(source, bufferOf(source));
  if (!sends)
    sums[keyOf(role, bufferOf(role))] = entry->second;
}

void Sums::add(uint16_t role, const Kernel &kernel) {
  Contributions sum = sumOf(role, kernel.operands[1]);
  for (const auto &[use, count] : sumOf(role, kernel.operands[0]))
    sum[use] += count;
  sums[keyOf(role, kernel.operands[1])] = std::move(sum);
}

/// What is set to zero holds nothing until the next step.
void Sums::clear(uint16_t role, const BufferRef &ref) {
  for (const RoleParam &param : plan.roles[role].params)
    for (const BufferRef &grad : param.grads)
      if (grad.pool == ref.pool && grad.offset >= ref.offset &&
          grad.offset + grad.bytes <= ref.offset + ref.bytes)
        sums[keyOf(role, grad)] = {};
}

std::optional<ProofFailure> Sums::call(Node node) {
  const Instr &instr = program.instr(node);
  uint16_t role = program.sites[node].role;
  std::optional<ProofFailure> failure;
  if (instr.kind != InstrKind::Call)
    return failure;
  for (const Kernel &kernel :
       plan.roles[role].procedures[instr.target].kernels) {
    if (kernel.kind == KernelKind::Accumulate)
      add(role, kernel);
    else if (kernel.kind == KernelKind::Zero)
      clear(role, kernel.operands[0]);
    else if (kernel.kind == KernelKind::SgdUpdate ||
             kernel.kind == KernelKind::MomentumUpdate ||
             kernel.kind == KernelKind::AdamWUpdate)
      failure = update(node, kernel);
    if (failure)
      break;
  }
  return failure;
}

std::optional<ProofFailure> Sums::update(Node node, const Kernel &kernel) {
  uint16_t role = program.sites[node].role;
  const Role &own = plan.roles[role];
  for (size_t p = 0; p < own.params.size(); ++p) {
    const RoleParam &param = own.params[p];
    const BufferRef &weight = kernel.operands[0];
    Bytes into = param.weight.offset - weight.offset;
    if (param.weight.pool != weight.pool || into < 0 ||
        into >= kernel.dims[0] * 4)
      continue;
    const std::string name = quoted(plan.params[param.param].name);
    if (!updated.insert({role, p}).second)
      return program.failure(
          ProofRule::Completeness,
          fmt::format("{} updates parameter {} a second time",
                      program.text(node), name),
          node);
    BufferRef grad = kernel.operands[1];
    grad.offset += into;
    if (param.grads.empty() || grad.offset != param.grads[0].offset ||
        grad.pool != param.grads[0].pool)
      return program.failure(
          ProofRule::Completeness,
          fmt::format("{} updates parameter {} from a buffer "
                      "that is not its gradient",
                      program.text(node), name),
          node);
    // The walk goes on: what went wrong may lie on another role.
    if (!incomplete && sumOf(role, grad) != wanted(param.param))
      incomplete = program.failure(
          ProofRule::Completeness,
          fmt::format("{} updates parameter {} without the sum of all its "
                      "uses, each once",
                      program.text(node), name),
          node);
    sums[keyOf(role, param.grads[0])] = {};
  }
  return std::nullopt;
}

std::optional<ProofFailure> Sums::visit(Node node) {
  move(node);
  return call(node);
}

std::optional<ProofFailure> Sums::finish() const {
  if (incomplete)
    return incomplete;
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    const Role &role = plan.roles[r];
    auto refuse = [&](const RoleParam &param, const char *what) {
      return ProofFailure{ProofRule::Completeness,
                          fmt::format("role {} never {} parameter {}",
                                      quoted(role.name), what,
                                      quoted(plan.params[param.param].name)),
                          {},
                          {}};
    };
    for (size_t p = 0; p < role.params.size(); ++p) {
      const RoleParam &param = role.params[p];
      auto index = static_cast<uint16_t>(r);
      if (!param.grads.empty() && !updated.count({index, p}))
        return refuse(param, "updates");
      for (const BufferRef &grad : param.grads)
        if (role.pools[grad.pool].kind == PoolKind::Gradients &&
            !sumOf(index, grad).empty())
          return refuse(param, "sets to zero a gradient of");
    }
  }
  return std::nullopt;
}

} // namespace takt::rt::proof
