//===- env_kubernetes.cpp - ranks as an indexed job gives them ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Kubernetes gives each pod of an indexed job its number; how many there are is
// the plan's number of ranks unless TAKT_WORLD_SIZE says it, and the address of
// pod 0 is the headless service's, which only the manifest knows.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/identity.h"

namespace takt::rt {

std::optional<Claim> claimOfKubernetes(const Environment &environment) {
  std::optional<int32_t> rank = environment.number("JOB_COMPLETION_INDEX");
  if (!rank)
    return std::nullopt;
  Claim claim;
  claim.launcher = "kubernetes";
  claim.rankFrom = "JOB_COMPLETION_INDEX";
  claim.rank = *rank;
  claim.world = environment.count("TAKT_WORLD_SIZE").value_or(-1);
  if (claim.world >= 0)
    claim.worldFrom = "TAKT_WORLD_SIZE";
  claim.node = *rank; // a pod has a network and a memory of its own
  claim.noRendezvous = "an indexed job gives no address, set TAKT_RENDEZVOUS "
                       "to JOB-0.SERVICE:PORT in its manifest";
  return claim;
}

} // namespace takt::rt
