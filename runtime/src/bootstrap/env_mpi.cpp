//===- env_mpi.cpp - ranks as mpirun gives them ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Open MPI and, by the variables of Hydra, MPICH and Intel MPI. Neither gives
// an address; on one node a folder does.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unistd.h>

namespace takt::rt {

std::string meetingFolderPrefix() {
  return fmt::format("/tmp/takt-{}-", getuid());
}

/// Processes that are all of one node meet in a folder that the job names.
static void meetInFolder(Claim &claim) {
  if (claim.localWorld < 0 || claim.localWorld != claim.world) {
    claim.noRendezvous = "mpirun gives no address, and not all ranks are on "
                         "this node";
    return;
  }
  std::string name = claim.job;
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0; }, '-');
  claim.rendezvous = fmt::format("file:{}{}", meetingFolderPrefix(), name);
}

std::optional<Claim> claimOfOpenMpi(const Environment &environment) {
  std::optional<int32_t> rank = environment.number("OMPI_COMM_WORLD_RANK");
  std::optional<int32_t> world = environment.count("OMPI_COMM_WORLD_SIZE");
  if (!rank && !world)
    return std::nullopt;
  Claim claim;
  claim.launcher = "openmpi";
  claim.rankFrom = "OMPI_COMM_WORLD_RANK";
  claim.worldFrom = "OMPI_COMM_WORLD_SIZE";
  claim.rank = rank.value_or(-1);
  claim.world = world.value_or(-1);
  claim.localRank =
      environment.number("OMPI_COMM_WORLD_LOCAL_RANK").value_or(-1);
  claim.localWorld =
      environment.count("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(-1);
  claim.job = environment.text("PMIX_NAMESPACE")
                  .value_or(fmt::format("mpirun-{}", getppid()));
  meetInFolder(claim);
  return claim;
}

std::optional<Claim> claimOfMpich(const Environment &environment) {
  std::optional<int32_t> rank = environment.number("PMI_RANK");
  std::optional<int32_t> world = environment.count("PMI_SIZE");
  if (!rank && !world)
    return std::nullopt;
  Claim claim;
  claim.launcher = "mpich";
  claim.rankFrom = "PMI_RANK";
  claim.worldFrom = "PMI_SIZE";
  claim.rank = rank.value_or(-1);
  claim.world = world.value_or(-1);
  claim.localRank = environment.number("MPI_LOCALRANKID").value_or(-1);
  claim.localWorld = environment.count("MPI_LOCALNRANKS").value_or(-1);
  // Hydra's proxy is the parent of all processes of a node.
  claim.job = fmt::format("hydra-{}", getppid());
  meetInFolder(claim);
  return claim;
}

} // namespace takt::rt
