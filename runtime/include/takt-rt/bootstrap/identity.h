//===- identity.h - which rank this process is ------------------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A process learns its rank from flags, from TAKT_ variables, or from those of
// the launcher that started it. Two launchers that disagree are an error, not a
// guess.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "takt-rt/bootstrap/environment.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace takt::rt {

/// What one source says; -1 and empty: it does not say.
struct Claim {
  std::string launcher; ///< as in TAKT_LAUNCHER
  /// The variables, for messages. One that is named without a value here is one
  /// that the launcher always sets: who went by the rest would train something
  /// else.
  std::string rankFrom, worldFrom;
  int32_t rank = -1, world = -1;
  int32_t localRank = -1, localWorld = -1, node = -1;
  std::string rendezvous; ///< "HOST:PORT" or "file:/FOLDER"
  std::string job;        ///< equal on all processes of a job and on no other's
  /// Why there is no rendezvous, for the message that asks for one.
  std::string noRendezvous;
};

/// Names of launchers, as '--launcher' and TAKT_LAUNCHER take them: "auto",
/// those below, and "none".
const std::vector<std::string> &launcherNames();

// One file a launcher. Nothing when it did not start this process.
std::optional<Claim> claimOfTakt(const Environment &environment);
std::optional<Claim> claimOfTorchrun(const Environment &environment);
std::optional<Claim> claimOfOpenMpi(const Environment &environment);
std::optional<Claim> claimOfMpich(const Environment &environment);
/// What the folders begin with in which the ranks of mpirun meet.
std::string meetingFolderPrefix();
std::optional<Claim> claimOfSlurm(const Environment &environment);
std::optional<Claim> claimOfKubernetes(const Environment &environment);

/// The first host of Slurm's short form: "n01" of "n[01-03,07],m2".
std::string firstSlurmHost(const std::string &list);

/// What the command line says.
struct IdentityFlags {
  int32_t rank = -1, world = -1, node = -1;
  std::string launcher = "auto";
  std::string rendezvous, token;
  /// Another option, as it was typed, that says nothing to a process that has
  /// all ranks.
  std::string ofProcesses;
};

struct Identity {
  int32_t rank = 0, world = 1;
  int32_t localRank = -1, localWorld = -1, node = -1; ///< -1: not known
  std::string rendezvous, token;
  bool servedByLauncher = false; ///< otherwise rank 0 serves the store
  std::string address;           ///< of this machine, if given
  std::string job;
  std::string source; ///< "torchrun (RANK, WORLD_SIZE)"
};

/// Nothing when this process was started alone. `planRanks`: the number of
/// processes where a launcher does not say it. Throws `Error` (Usage): sources
/// that disagree or say half, a rank out of range, no rendezvous, flags that
/// mean ranks where nothing says which one this is.
std::optional<Identity> identify(const Environment &environment,
                                 const IdentityFlags &flags, int32_t planRanks);

} // namespace takt::rt
