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

static constexpr int32_t kMostPort = 65535;
/// Below are ports that only root may listen at.
static constexpr int32_t kFirstFreePort = 1024;

std::optional<Claim> claimOfTorchrun(const Environment &environment) {
  std::optional<int32_t> rank = environment.number("RANK");
  std::optional<int32_t> world = environment.count("WORLD_SIZE");
  if (!rank && !world)
    return std::nullopt;
  Claim claim;
  claim.launcher = "torchrun";
  claim.rankFrom = "RANK";
  claim.worldFrom = "WORLD_SIZE";
  claim.rank = rank.value_or(-1);
  claim.world = world.value_or(-1);
  claim.localRank = environment.number("LOCAL_RANK").value_or(-1);
  claim.localWorld = environment.count("LOCAL_WORLD_SIZE").value_or(-1);
  claim.node = environment.number("GROUP_RANK").value_or(-1);
  std::string host = environment.text("MASTER_ADDR").value_or("");
  int32_t port = environment.number("MASTER_PORT").value_or(0);
  bool isPort = port > 0 && port <= kMostPort;
  if (environment.text("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True")
    port = port < kMostPort ? port + 1 : kFirstFreePort;
  if (!host.empty() && isPort)
    claim.rendezvous = fmt::format(
        "{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]",
        port);
  else if (!host.empty() && environment.has("MASTER_PORT"))
    claim.noRendezvous =
        fmt::format("MASTER_PORT='{}' is no port from 1 to {}",
                    *environment.text("MASTER_PORT"), kMostPort);
  else
    claim.noRendezvous = "MASTER_ADDR and MASTER_PORT name no address";
  // A restarted job must not meet what is left of the attempt before.
  claim.job = environment.text("TORCHELASTIC_RUN_ID").value_or("") + "/" +
              environment.text("TORCHELASTIC_RESTART_COUNT").value_or("0");
  return claim;
}

} // namespace takt::rt
