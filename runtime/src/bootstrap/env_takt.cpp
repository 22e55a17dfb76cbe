//===- env_takt.cpp - ranks as takt-run itself gives them -----------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The variables that takt-run -n sets for its children, and people in scripts.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/identity.h"

namespace takt::rt {

std::optional<Claim> claimOfTakt(const Environment &environment) {
  std::optional<int32_t> rank = environment.number("TAKT_RANK");
  if (!rank)
    return std::nullopt;
  Claim claim;
  claim.launcher = "takt";
  claim.rankFrom = "TAKT_RANK";
  claim.rank = *rank;
  claim.world = environment.number("TAKT_WORLD_SIZE").value_or(-1);
  if (claim.world >= 0)
    claim.worldFrom = "TAKT_WORLD_SIZE";
  claim.localRank = environment.number("TAKT_LOCAL_RANK").value_or(-1);
  claim.localWorld = environment.number("TAKT_LOCAL_WORLD_SIZE").value_or(-1);
  claim.node = environment.number("TAKT_NODE").value_or(-1);
  return claim;
}

} // namespace takt::rt
