//===- params.cpp - kernels and the parameters they are given ---*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Weights persist, so no write tells which of them a read means. The layer
// does: its kernels must use the same parameters in the same places forward and
// backward, accumulate into accumulators of just these, and an update must take
// weight, gradient and state of one parameter.
//
//===----------------------------------------------------------------------===//
#include "program.h"

#include "../check.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

namespace takt::rt::proof {

namespace {

bool same(const BufferRef &a, const BufferRef &b) {
  return a.pool == b.pool && a.offset == b.offset && a.bytes == b.bytes;
}

class ParamChecker {
public:
  explicit ParamChecker(const Role &role) : role(role) {}
  /// What is wrong with a kernel of a procedure, or nothing.
  std::string check(const Kernel &kernel, size_t procedure);
  /// The procedure that the last fault is a contradiction to, if any.
  std::optional<size_t> against;

private:
  int32_t owner(const BufferRef &ref, PoolKind kind) const;
  std::string checkUpdate(const Kernel &kernel) const;

  const Role &role;
  /// The parameter, and the procedure that was the first to take it, by layer
  /// and place among its parameters.
  std::map<std::pair<int32_t, size_t>, std::pair<int32_t, size_t>> paramOf;
};

/// The parameter of the role whose weight or accumulator the buffer is; -1 if
/// it is neither.
int32_t ParamChecker::owner(const BufferRef &ref, PoolKind kind) const {
  for (size_t p = 0; p < role.params.size(); ++p) {
    if (kind == PoolKind::Weights && same(role.params[p].weight, ref))
      return static_cast<int32_t>(p);
    if (kind == PoolKind::Gradients)
      for (const BufferRef &grad : role.params[p].grads)
        if (same(grad, ref))
          return static_cast<int32_t>(p);
  }
  return -1;
}

/// An update may cover several parameters that lie one after the other: the
/// first decides, and the others are at the same distances.
std::string ParamChecker::checkUpdate(const Kernel &kernel) const {
  for (const RoleParam &param : role.params) {
    auto begins = [](const BufferRef &a, const BufferRef &b) {
      return a.pool == b.pool && a.offset == b.offset;
    };
    if (!begins(param.weight, kernel.operands[0]))
      continue;
    for (size_t i = 2; i < kernel.operands.size(); ++i)
      if (i - 2 >= param.state.size() ||
          !begins(param.state[i - 2], kernel.operands[i]))
        return "takes a state that is not the parameter's";
    return "";
  }
  return "updates what is no parameter";
}

std::string ParamChecker::check(const Kernel &kernel, size_t procedure) {
  switch (kernel.kind) {
  case KernelKind::SgdUpdate:
  case KernelKind::MomentumUpdate:
  case KernelKind::AdamWUpdate:
    return checkUpdate(kernel);
  case KernelKind::Profiled: // its parameters have no names
    return "";
  default:
    break;
  }
  size_t weights = 0, sums = 0;
  for (const BufferRef &ref : kernel.operands) {
    PoolKind kind = role.pools[ref.pool].kind;
    if (kind == PoolKind::OptimizerState)
      return "touches the optimizer's state";
    if (kind != PoolKind::Weights && kind != PoolKind::Gradients)
      continue;
    int32_t param = owner(ref, kind);
    if (param < 0)
      return fmt::format("takes {} bytes at {} of pool {} that are no "
                         "parameter's",
                         ref.bytes, ref.offset,
                         quoted(role.pools[ref.pool].name));
    if (kernel.phase == Phase::Update)
      continue;
    size_t place = kind == PoolKind::Weights ? weights++ : sums++;
    auto entry =
        paramOf.insert({{kernel.layer, place}, {param, procedure}}).first;
    if (entry->second.first == param)
      continue;
    against = entry->second.second;
    return "takes another parameter than the layer's other kernels";
  }
  return "";
}

} // namespace

std::optional<ProofFailure> checkParams(const Program &program) {
  const Plan &plan = program.plan;
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    const Role &role = plan.roles[r];
    ParamChecker checker(role);
    for (size_t p = 0; p < role.procedures.size(); ++p)
      for (const Kernel &kernel : role.procedures[p].kernels) {
        std::string fault = checker.check(kernel, p);
        if (fault.empty())
          continue;
        ProofFailure failure =
            program.kernelFailure(ProofRule::StaleRead, r, p, &kernel, fault);
        Node other = program.firstCall(r, checker.against.value_or(p));
        if (checker.against && *checker.against != p && other != kNoNode)
          failure.ends.push_back(program.end(other));
        return failure;
      }
  }
  return std::nullopt;
}

} // namespace takt::rt::proof
