//===- IdentityTests.cpp - which rank this process is ---------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The environments of launchers as they set them, what they leave out, and what
// contradicts itself.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/identity.h"
#include "takt-rt/core/error.h"

#include <gtest/gtest.h>

#include <tuple>

namespace takt::rt {
namespace {

using Variables = std::map<std::string, std::string>;

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"GROUP_RANK", "1"},
                             {"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "job"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_NAMESPACE", "prterun-7@1"}};
const Variables kMpich = {{"PMI_RANK", "1"},
                          {"PMI_SIZE", "4"},
                          {"MPI_LOCALRANKID", "1"},
                          {"MPI_LOCALNRANKS", "4"}};
const Variables kSlurm = {{"SLURM_PROCID", "5"},
                          {"SLURM_NTASKS", "8"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_NODEID", "2"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_JOB_ID", "1234"},
                          {"SLURM_JOB_NODELIST", "gpu[07-09,12],login1"}};
const Variables kKubernetes = {{"JOB_COMPLETION_INDEX", "2"},
                               {"TAKT_RENDEZVOUS", "job-0.svc:29600"}};

std::optional<Identity> of(const Variables &variables,
                           const IdentityFlags &flags = {}, int32_t ranks = 4) {
  return identify(Environment(variables), flags, ranks);
}

Variables both(Variables a, const Variables &b) {
  a.insert(b.begin(), b.end());
  return a;
}

/// The message with which it is refused, as wrong usage.
std::string refused(const Variables &variables,
                    const IdentityFlags &flags = {}) {
  try {
    of(variables, flags);
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitCode::Usage);
    return error.what();
  }
  return "it was not refused";
}

#define EXPECT_SAYS(text, part)                                                \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << text

TEST(Identity, AloneWithoutALauncher) {
  EXPECT_FALSE(of({}));
  EXPECT_FALSE(of({{"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(of({{"TAKT_RANK", ""}})); // empty is as not set
}

TEST(Identity, Torchrun) {
  Identity identity = *of(kTorchrun);
  EXPECT_EQ(identity.rank, 3);
  EXPECT_EQ(identity.world, 4);
  EXPECT_EQ(identity.localRank, 1);
  EXPECT_EQ(identity.localWorld, 2);
  EXPECT_EQ(identity.node, 1);
  EXPECT_EQ(identity.rendezvous, "node0:29500");
  EXPECT_EQ(identity.source, "torchrun (RANK, WORLD_SIZE)");
}

// The agent's store has the port itself; a restarted job is another job.
TEST(Identity, TorchrunBesideItsOwnStore) {
  Variables agent = both(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(of(agent)->rendezvous, "node0:29501");
  agent["MASTER_PORT"] = "65535";
  EXPECT_EQ(of(agent)->rendezvous, "node0:1024");
  Variables again = both(kTorchrun, {{"TORCHELASTIC_RESTART_COUNT", "1"}});
  EXPECT_NE(of(again)->job, of(kTorchrun)->job);
}

TEST(Identity, OpenMpiOfOneNodeMeetsInAFolder) {
  Identity identity = *of(kOpenMpi);
  EXPECT_EQ(identity.rank, 2);
  EXPECT_EQ(identity.world, 4);
  EXPECT_EQ(identity.rendezvous.rfind("file:/tmp/takt-", 0), 0u);
  EXPECT_SAYS(identity.rendezvous, "prterun-7-1");
  Variables two = kOpenMpi;
  two["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_SAYS(refused(two), "not all ranks are on this node");
  two["TAKT_RENDEZVOUS"] = "node0:29600";
  EXPECT_EQ(of(two)->rendezvous, "node0:29600");
}

TEST(Identity, Mpich) {
  Identity identity = *of(kMpich);
  EXPECT_EQ(identity.rank, 1);
  EXPECT_EQ(identity.source, "mpich (PMI_RANK, PMI_SIZE)");
}

TEST(Identity, Slurm) {
  Identity identity = *of(kSlurm, {}, 8);
  EXPECT_EQ(identity.rank, 5);
  EXPECT_EQ(identity.world, 8);
  EXPECT_EQ(identity.node, 2);
  EXPECT_EQ(identity.rendezvous, "gpu07:21234");
  // The step's own size counts before the job's.
  EXPECT_EQ(of(both(kSlurm, {{"SLURM_STEP_NUM_TASKS", "6"}}), {}, 6)->world, 6);
}

// The variables of a batch script and of salloc's shell are no rank.
TEST(Identity, SlurmWithoutSrun) {
  Variables batch = kSlurm;
  for (const char *step : {"4294967291", "4294967290"}) {
    batch["SLURM_STEP_ID"] = step;
    EXPECT_FALSE(of(batch)) << step;
  }
  batch.erase("SLURM_STEP_ID");
  EXPECT_FALSE(of(batch));
}

TEST(Identity, SlurmHosts) {
  EXPECT_EQ(firstSlurmHost("n1"), "n1");
  EXPECT_EQ(firstSlurmHost("n1,n2"), "n1");
  EXPECT_EQ(firstSlurmHost("n[3,5]"), "n3");
  EXPECT_EQ(firstSlurmHost("rack[1-2]-node[01-16],x"), "rack1-node01");
  EXPECT_EQ(firstSlurmHost("n[3-"), "");
  EXPECT_EQ(firstSlurmHost("n["), "");
  EXPECT_EQ(firstSlurmHost(""), "");
}

TEST(Identity, Kubernetes) {
  Identity identity = *of(kKubernetes);
  EXPECT_EQ(identity.rank, 2);
  EXPECT_EQ(identity.world, 4); // the plan's
  EXPECT_EQ(identity.rendezvous, "job-0.svc:29600");
  EXPECT_SAYS(refused({{"JOB_COMPLETION_INDEX", "2"}}), "TAKT_RENDEZVOUS");
}

TEST(Identity, FlagsCountFirst) {
  IdentityFlags flags;
  flags.rank = 1;
  flags.world = 2;
  flags.rendezvous = "here:1";
  Identity identity = *of(both(kTorchrun, kSlurm), flags);
  EXPECT_EQ(identity.rank, 1);
  EXPECT_EQ(identity.world, 2);
  EXPECT_EQ(identity.rendezvous, "here:1");
  EXPECT_EQ(identity.source, "flags (--rank, --world-size)");
}

TEST(Identity, LaunchersThatDisagreeAreNamed) {
  std::string said = refused(both(kTorchrun, kOpenMpi));
  EXPECT_SAYS(said, "torchrun says rank 3 (RANK)");
  EXPECT_SAYS(said, "openmpi says rank 2 (OMPI_COMM_WORLD_RANK)");
  EXPECT_SAYS(said, "--launcher");
  Variables sameRank = both(kTorchrun, kSlurm);
  sameRank["SLURM_PROCID"] = "3";
  EXPECT_SAYS(refused(sameRank), "slurm says 8 (SLURM_NTASKS)");
  IdentityFlags flags;
  flags.launcher = "slurm";
  EXPECT_EQ(of(both(kTorchrun, kSlurm), flags, 8)->rank, 5);
  EXPECT_EQ(of(both(kTorchrun, {{"TAKT_LAUNCHER", "openmpi"},
                                {"OMPI_COMM_WORLD_RANK", "2"},
                                {"OMPI_COMM_WORLD_SIZE", "4"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}))
                ->rank,
            2);
}

TEST(Identity, LaunchersThatAgreeAddUp) {
  Variables agree = both(kOpenMpi, {{"TAKT_RANK", "2"}});
  agree["TAKT_WORLD_SIZE"] = "4";
  Identity identity = *of(agree);
  EXPECT_EQ(identity.rank, 2);
  EXPECT_EQ(identity.localWorld, 4);
  EXPECT_SAYS(identity.rendezvous, "file:");
}

// "srun -n 1" and "mpirun -n 1" start a program with all its ranks inside.
TEST(Identity, ALauncherOfOneIsNone) {
  Variables one = kOpenMpi;
  one["OMPI_COMM_WORLD_RANK"] = "0";
  one["OMPI_COMM_WORLD_SIZE"] = "1";
  EXPECT_FALSE(of(one));
  EXPECT_EQ(of(both(one, kTorchrun))->rank, 3);
}

TEST(Identity, RefusesWhatCannotBe) {
  EXPECT_SAYS(refused({{"TAKT_RANK", "x"}}), "TAKT_RANK='x'");
  EXPECT_SAYS(refused({{"TAKT_RANK", "-1"}}), "TAKT_RANK='-1'");
  EXPECT_SAYS(refused({{"TAKT_RANK", "4"}, {"TAKT_WORLD_SIZE", "4"}}),
              "ranks go from 0 to 3");
  EXPECT_SAYS(refused({{"TAKT_RANK", "99999999999"}}), "no whole number");
  EXPECT_SAYS(refused({{"TAKT_RANK", "1"}, {"TAKT_WORLD_SIZE", "2"}}),
              "does not know where to meet");
  IdentityFlags flags;
  flags.launcher = "slurm";
  EXPECT_SAYS(refused({}, flags), "not in the environment");
  IdentityFlags half;
  half.world = 4;
  EXPECT_SAYS(refused({}, half), "'--world-size' needs '--rank'");
}

// Going by half, every process would train alone and none say so.
TEST(Identity, RefusesLaunchersThatSayHalf) {
  const std::tuple<Variables, const char *, const char *> launchers[] = {
      {kTorchrun, "RANK", "WORLD_SIZE"},
      {kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {kMpich, "PMI_RANK", "PMI_SIZE"},
      {kSlurm, "SLURM_PROCID", "SLURM_NTASKS"}};
  IdentityFlags all;
  all.rank = 1;
  all.world = 4;
  all.rendezvous = "here:1";
  for (const auto &[whole, rank, world] : launchers) {
    Variables half = whole;
    half.erase(world);
    std::string lacks = std::string(rank) + " without " + world;
    EXPECT_SAYS(refused(half), lacks);
    EXPECT_EQ(of(half, all)->rank, 1);
    half["TAKT_LAUNCHER"] = "none";
    EXPECT_FALSE(of(half));
    if (rank == std::string("SLURM_PROCID"))
      continue; // a batch script has the size without a rank
    half = whole;
    half.erase(rank);
    EXPECT_SAYS(refused(half), std::string(world) + " without " + rank);
  }
  EXPECT_SAYS(refused({{"TAKT_WORLD_SIZE", "4"}}),
              "TAKT_WORLD_SIZE without TAKT_RANK");
  // What one leaves out another may say.
  EXPECT_EQ(of({{"RANK", "2"},
                {"TAKT_RANK", "2"},
                {"TAKT_WORLD_SIZE", "4"},
                {"TAKT_RENDEZVOUS", "here:1"}})
                ->world,
            4);
}

TEST(Identity, RefusesNoProcesses) {
  for (const char *name : {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                           "SLURM_NTASKS", "TAKT_WORLD_SIZE"}) {
    Variables none = both({{name, "0"}, {"TAKT_RANK", "0"}}, kTorchrun);
    none = both(none, kSlurm);
    EXPECT_SAYS(refused(none), std::string(name) + "='0', which is no number");
  }
}

TEST(Identity, FlagsOfRanksNeedARank) {
  IdentityFlags meet;
  meet.rendezvous = "here:1";
  EXPECT_SAYS(refused({}, meet), "'--rendezvous' is for ranks");
  IdentityFlags node;
  node.node = 0;
  EXPECT_SAYS(refused({}, node), "'--node' is for ranks");
  IdentityFlags transport;
  transport.ofProcesses = "--transport=tcp";
  EXPECT_SAYS(refused({}, transport), "'--transport=tcp' is for ranks");
  // A launcher of one, whose job script is as those of others.
  EXPECT_FALSE(of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}, transport));
}

TEST(Identity, NumbersOfSlurmAreNumbers) {
  Variables job = kSlurm;
  job["SLURM_JOB_ID"] = "abc";
  EXPECT_SAYS(refused(job), "SLURM_JOB_ID='abc' is no job's number");
  job["TAKT_RENDEZVOUS"] = "here:1";
  EXPECT_EQ(of(job, {}, 8)->rank, 5);
  Variables step = kSlurm;
  step["SLURM_STEP_ID"] = "first";
  EXPECT_SAYS(refused(step), "SLURM_STEP_ID='first'");
}

TEST(Identity, TorchrunsPortIsOne) {
  for (const char *port : {"0", "65536", "2147483647"}) {
    Variables far = kTorchrun;
    far["MASTER_PORT"] = port;
    EXPECT_SAYS(refused(far), "is no port from 1 to 65535");
    far["TORCHELASTIC_USE_AGENT_STORE"] = "True";
    EXPECT_SAYS(refused(far), "is no port from 1 to 65535");
  }
}

TEST(Identity, UnknownLauncherNamesAreRefusedWithTheKnownOnes) {
  EXPECT_SAYS(refused({{"TAKT_LAUNCHER", "bogus"}}),
              "TAKT_LAUNCHER='bogus', which is none of auto, takt, torchrun, "
              "openmpi, mpich, slurm, kubernetes, none");
}

TEST(Environment, TheTableNamesEveryVariableOnce) {
  std::map<std::string, int> seen;
  for (const VariableInfo &variable : environmentTable()) {
    EXPECT_EQ(++seen[variable.name], 1) << variable.name;
    EXPECT_STRNE(variable.meaning, "");
  }
  for (const Variables &some :
       {kTorchrun, kOpenMpi, kMpich, kSlurm, kKubernetes})
    for (const auto &[name, value] : some)
      EXPECT_EQ(seen.count(name), 1u) << name;
}

} // namespace
} // namespace takt::rt
