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
  std::optional<int32_t> world = environment.count("TAKT_WORLD_SIZE");
  if (!rank && !world)
    return std::nullopt;
  Claim claim;
  claim.launcher = "takt";
  claim.rankFrom = "TAKT_RANK";
  claim.rank = rank.value_or(-1);
  // Where it is not said, it is the plan's.
  claim.world = world.value_or(-1);
  if (world)
    claim.worldFrom = "TAKT_WORLD_SIZE";
  claim.localRank = environment.number("TAKT_LOCAL_RANK").value_or(-1);
  claim.localWorld = environment.count("TAKT_LOCAL_WORLD_SIZE").value_or(-1);
  claim.node = environment.number("TAKT_NODE").value_or(-1);
  return claim;
}

} // namespace takt::rt
