//===- env_torchrun.cpp - ranks as torchrun gives them --------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// torch/distributed/run.py: a program that is no Python needs --no-python. Its
// own store may listen at MASTER_PORT for as long as the job runs.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/identity.h"

#include <fmt/format.h>

namespace takt::rt {

std::optional<Claim> claimOfTorchrun(const Environment &environment) {
  std::optional<int32_t> rank = environment.number("RANK");
  std::optional<int32_t> world = environment.number("WORLD_SIZE");
  if (!rank || !world)
    return std::nullopt;
  Claim claim;
  claim.launcher = "torchrun";
  claim.rankFrom = "RANK";
  claim.worldFrom = "WORLD_SIZE";
  claim.rank = *rank;
  claim.world = *world;
  claim.localRank = environment.number("LOCAL_RANK").value_or(-1);
  claim.localWorld = environment.number("LOCAL_WORLD_SIZE").value_or(-1);
  claim.node = environment.number("GROUP_RANK").value_or(-1);
  std::string host = environment.text("MASTER_ADDR").value_or("");
  int32_t port = environment.number("MASTER_PORT").value_or(0);
  if (environment.text("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True")
    port = port < 65535 ? port + 1 : 1024;
  if (!host.empty() && port > 0 && port < 65536)
    claim.rendezvous = fmt::format(
        "{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]",
        port);
  else
    claim.noRendezvous = "MASTER_ADDR and MASTER_PORT name no address";
  // A restarted job must not meet what is left of the attempt before.
  claim.job = environment.text("TORCHELASTIC_RUN_ID").value_or("") + "/" +
              environment.text("TORCHELASTIC_RESTART_COUNT").value_or("0");
  return claim;
}

} // namespace takt::rt
