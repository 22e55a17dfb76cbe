//===- environment.cpp - the environment variables of takt-run ------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The table, and reading of variables.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/bootstrap/environment.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <charconv>
#include <unistd.h>

namespace takt::rt {

Environment Environment::ofThisProcess() {
  std::map<std::string, std::string> variables;
  for (char **at = environ; at && *at; ++at) {
    std::string entry = *at;
    size_t equals = entry.find('=');
    if (equals != std::string::npos)
      variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return Environment(std::move(variables));
}

std::optional<std::string> Environment::text(const std::string &name) const {
  auto found = variables.find(name);
  if (found == variables.end() || found->second.empty())
    return std::nullopt;
  return found->second;
}

std::optional<int32_t> Environment::number(const std::string &name) const {
  std::optional<std::string> value = text(name);
  if (!value)
    return std::nullopt;
  int32_t number = 0;
  const char *last = value->data() + value->size();
  auto [end, error] = std::from_chars(value->data(), last, number);
  if (error != std::errc() || end != last || number < 0)
    throw Error(fmt::format("the environment has {}='{}', which is no whole "
                            "number from 0 on",
                            name, *value),
                ExitCode::Usage);
  return number;
}

std::optional<int32_t> Environment::count(const std::string &name) const {
  std::optional<int32_t> value = number(name);
  if (value && *value == 0)
    throw Error(fmt::format("the environment has {}='0', which is no number of "
                            "processes: there is at least 1",
                            name),
                ExitCode::Usage);
  return value;
}

const std::vector<VariableInfo> &environmentTable() {
  static const std::vector<VariableInfo> table = {
      {"TAKT_RANK", "rank of this process, from 0"},
      {"TAKT_WORLD_SIZE", "number of processes"},
      {"TAKT_LOCAL_RANK", "rank among the processes of this node"},
      {"TAKT_LOCAL_WORLD_SIZE", "number of processes of this node"},
      {"TAKT_NODE", "number of this node; ranks of one node share memory"},
      {"TAKT_LAUNCHER", "whose variables count: auto, takt, torchrun, openmpi, "
                        "mpich, slurm, kubernetes, none"},
      {"TAKT_RENDEZVOUS", "where processes meet: HOST:PORT or file:/FOLDER"},
      {"TAKT_TOKEN", "secret that lets a process into the run"},
      {"TAKT_ADDRESS", "address of this machine for the other nodes"},
      {"TAKT_STORE", "'launcher' or 'rank0': who serves the store of a process "
                     "that takt-run started"},
      {"TAKT_LOG", "what is said: error, warn, info or debug, and TOPIC=LEVEL "
                   "of start, comm, checkpoint, run; with commas"},
      {"TAKT_LOG_FILE", "file for it, with %r the rank, %h the host, %p the "
                        "process"},
      {"RANK", "torchrun: rank"},
      {"WORLD_SIZE", "torchrun: number of processes"},
      {"LOCAL_RANK", "torchrun: rank in the node"},
      {"LOCAL_WORLD_SIZE", "torchrun: processes of the node"},
      {"GROUP_RANK", "torchrun: node"},
      {"MASTER_ADDR", "torchrun: host of rank 0"},
      {"MASTER_PORT", "torchrun: port; the next one where torchrun uses it"},
      {"TORCHELASTIC_RUN_ID", "torchrun: name of the job"},
      {"TORCHELASTIC_RESTART_COUNT", "torchrun: attempt of the job"},
      {"TORCHELASTIC_USE_AGENT_STORE",
       "torchrun: it listens at the port itself"},
      {"OMPI_COMM_WORLD_RANK", "Open MPI: rank"},
      {"OMPI_COMM_WORLD_SIZE", "Open MPI: number of processes"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "Open MPI: rank in the node"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "Open MPI: processes of the node"},
      {"OMPI_COMM_WORLD_NODE_RANK", "Open MPI: told by its presence only"},
      {"PMIX_NAMESPACE", "Open MPI: name of the job"},
      {"PMI_RANK", "MPICH, Intel MPI: rank"},
      {"PMI_SIZE", "MPICH, Intel MPI: number of processes"},
      {"MPI_LOCALRANKID", "MPICH, Intel MPI: rank in the node"},
      {"MPI_LOCALNRANKS", "MPICH, Intel MPI: processes of the node"},
      {"SLURM_PROCID", "srun: rank"},
      {"SLURM_NTASKS", "srun: number of processes, where the step's is not "
                       "given"},
      {"SLURM_STEP_NUM_TASKS", "srun: number of processes"},
      {"SLURM_LOCALID", "srun: rank in the node"},
      {"SLURM_NODEID", "srun: node"},
      {"SLURM_STEP_ID", "srun: tells a step of srun from a batch script"},
      {"SLURM_JOB_ID", "srun: name of the job, and its port"},
      {"SLURM_STEP_NODELIST", "srun: nodes, rank 0 on the first"},
      {"SLURM_JOB_NODELIST", "srun: the same where the step's is not given"},
      {"JOB_COMPLETION_INDEX", "Kubernetes indexed job: rank"},
  };
  return table;
}

} // namespace takt::rt
