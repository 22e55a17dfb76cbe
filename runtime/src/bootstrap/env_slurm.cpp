//===- env_slurm.cpp - ranks as srun gives them ---------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A batch script, and the shell of salloc, have the variables of the job too,
// rank 0 among them; only what srun started is a rank. Their steps have numbers
// from 0xfffffff0 on.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/identity.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <charconv>

namespace takt::rt {

static constexpr uint64_t kFirstSpecialStep = 0xfffffff0;

std::string firstSlurmHost(const std::string &list) {
  std::string host;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == ',')
      break;
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    size_t end = list.find_first_of(",-]", i + 1);
    size_t close = list.find(']', i);
    if (end == std::string::npos || close == std::string::npos)
      return "";
    host += list.substr(i + 1, end - i - 1);
    i = close;
  }
  return host;
}

/// Numbers of jobs and steps, the special ones among them.
static std::optional<uint64_t> slurmNumber(const std::string &text) {
  uint64_t number = 0;
  const char *last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last)
    return std::nullopt;
  return number;
}

/// A port that the job's number decides, away from the system's own ones.
static uint16_t portOfJob(uint64_t job) {
  constexpr uint64_t kFirst = 20000, kCount = 12000;
  return uint16_t(kFirst + job % kCount);
}

/// Whether srun started this process.
static bool isOfSrun(const std::string &step) {
  std::optional<uint64_t> number = slurmNumber(step);
  if (!number)
    throw Error(fmt::format("the environment has SLURM_STEP_ID='{}', which is "
                            "no step's number",
                            step),
                ExitCode::Usage);
  return *number < kFirstSpecialStep;
}

static void meetOnFirstHost(Claim &claim, const std::string &nodes,
                            const std::string &job) {
  std::string host = firstSlurmHost(nodes);
  std::optional<uint64_t> number = slurmNumber(job);
  if (host.empty() || job.empty())
    claim.noRendezvous = "SLURM_JOB_NODELIST and SLURM_JOB_ID name no address";
  else if (!number)
    claim.noRendezvous =
        fmt::format("SLURM_JOB_ID='{}' is no job's number", job);
  else
    claim.rendezvous = fmt::format("{}:{}", host, portOfJob(*number));
}

std::optional<Claim> claimOfSlurm(const Environment &environment) {
  std::optional<int32_t> rank = environment.number("SLURM_PROCID");
  std::optional<std::string> step = environment.text("SLURM_STEP_ID");
  if (!rank || !step || !isOfSrun(*step))
    return std::nullopt;
  Claim claim;
  claim.launcher = "slurm";
  claim.rankFrom = "SLURM_PROCID";
  claim.rank = *rank;
  for (const char *name : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})
    if (claim.world < 0) {
      claim.world = environment.count(name).value_or(-1);
      claim.worldFrom = name;
    }
  claim.localRank = environment.number("SLURM_LOCALID").value_or(-1);
  claim.node = environment.number("SLURM_NODEID").value_or(-1);
  std::string job = environment.text("SLURM_JOB_ID").value_or("");
  claim.job = job + "." + *step;
  meetOnFirstHost(
      claim,
      environment.text("SLURM_STEP_NODELIST")
          .value_or(environment.text("SLURM_JOB_NODELIST").value_or("")),
      job);
  return claim;
}

} // namespace takt::rt
