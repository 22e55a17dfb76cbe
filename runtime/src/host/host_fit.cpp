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

void checkFitsHost(const Plan &plan) {
  if (plan.roles.empty())
    doesNotFit("the plan has no roles");
  Bytes total = 0;
  for (const Role &role : plan.roles) {
    checkKernels(plan, role);
    if (plan.training.microBatchSize() < role.replicas)
      doesNotFit(fmt::format(
          "role '{}' has {} replicas for micro-batches of {} "
          "samples",
          role.name, role.replicas, plan.training.microBatchSize()));
    Bytes bytes = 0;
    if (__builtin_mul_overflow(role.arenaBytes, Bytes(role.replicas), &bytes) ||
        __builtin_add_overflow(total, bytes, &total))
      doesNotFit("the arenas of all ranks overflow");
  }
  double memory =
      double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  if (memory > 0 && double(total) > memory)
    doesNotFit(fmt::format("the {} ranks need {:.1f} GiB, this machine has "
                           "{:.1f} GiB",
                           plan.numRanks(), double(total) / (1 << 30),
                           memory / (1 << 30)));
}

} // namespace takt::rt
