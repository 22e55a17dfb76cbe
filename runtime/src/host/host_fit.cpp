//===- host_fit.cpp - can this machine run the plan -----------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Everything the host can refuse is refused here, before any memory is taken
// and any step begun.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/host/host_device.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <unistd.h>

namespace takt::rt {

[[noreturn]] static void doesNotFit(const std::string &why) {
  throw Error(why, ExitCode::DoesNotFit);
}

static void checkKernels(const Plan &plan, const Role &role) {
  for (const Procedure &procedure : role.procedures)
    for (const Kernel &kernel : procedure.kernels)
      if (std::optional<std::string> why = checkKernel(kernel))
        doesNotFit(fmt::format(
            "the host cannot run role '{}': layer '{}' {}", role.name,
            kernel.layer >= 0 ? plan.layers[kernel.layer].name
                              : "of procedure " + procedure.name,
            *why));
}

/// Sum of the arenas of some ranks.
static Bytes arenasOf(const Plan &plan, const std::vector<int32_t> &ranks) {
  Bytes total = 0;
  for (int32_t rank : ranks)
    if (__builtin_add_overflow(total, plan.roles[plan.roleOf(rank)].arenaBytes,
                               &total))
      doesNotFit("the arenas of all ranks overflow");
  return total;
}

void checkFitsHost(const Plan &plan, const std::vector<int32_t> &ranksHere) {
  if (plan.roles.empty())
    doesNotFit("the plan has no roles");
  for (const Role &role : plan.roles) {
    checkKernels(plan, role);
    if (plan.training.microBatchSize() < role.replicas)
      doesNotFit(fmt::format(
          "role '{}' has {} replicas for micro-batches of {} "
          "samples",
          role.name, role.replicas, plan.training.microBatchSize()));
  }
  Bytes total = arenasOf(plan, ranksHere);
  double memory =
      double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  if (memory > 0 && double(total) > memory)
    doesNotFit(fmt::format("the {} ranks of this machine need {:.1f} GiB, it "
                           "has {:.1f} GiB",
                           ranksHere.size(), double(total) / (1 << 30),
                           memory / (1 << 30)));
}

} // namespace takt::rt
