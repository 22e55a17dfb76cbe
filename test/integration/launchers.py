#!/usr/bin/env python3
"""Started by others: under the variables of torchrun, srun, mpirun and Kubernetes
as they set them, and under torchrun and mpirun themselves where they are there, a
run has the losses that it has as threads.
"""
import os
import shutil
import subprocess
import sys

import takt

STEPS = 10
RANKS = range(4)


def losses_of(path):
    return path.read_text() if path.exists() else "none"


def under(name, plan, folder, environments, *options):
    """Runs all ranks under the variables and compares the losses."""
    log = folder / f"{name}.losses"
    ends = takt.end_ranks(takt.start_ranks(
        plan, environments, "--data", takt.TEXT, "--steps", STEPS,
        "--start-timeout=60", "--log-losses", log, *options))
    assert all(code == 0 for code, _ in ends), (name, ends)
    assert losses_of(log) == losses_of(folder / "threads.losses"), name
    assert f"rank 0 of 4 by {name}" in ends[0][1], ends[0]
    assert all("met at" not in said for _, said in ends[1:]), ends
    print(f"{name}: {ends[0][1].strip().splitlines()[0]}")


def variables(plan, folder):
    port = takt.free_port()
    under("torchrun", plan, folder, [
        {"RANK": r, "WORLD_SIZE": 4, "LOCAL_RANK": r, "LOCAL_WORLD_SIZE": 4,
         "GROUP_RANK": 0, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
         "TORCHELASTIC_RUN_ID": "none"} for r in RANKS])
    # Two nodes by name, both this machine: TCP between them.
    under("slurm", plan, folder, [
        {"SLURM_PROCID": r, "SLURM_NTASKS": 4, "SLURM_STEP_NUM_TASKS": 4,
         "SLURM_LOCALID": r % 2, "SLURM_NODEID": r // 2, "SLURM_STEP_ID": 0,
         "SLURM_JOB_ID": port, "SLURM_JOB_NODELIST": "localhost,node[2-3]"}
        for r in RANKS])
    under("openmpi", plan, folder, [
        {"OMPI_COMM_WORLD_RANK": r, "OMPI_COMM_WORLD_SIZE": 4,
         "OMPI_COMM_WORLD_LOCAL_RANK": r, "OMPI_COMM_WORLD_LOCAL_SIZE": 4,
         "PMIX_NAMESPACE": f"test-{os.getpid()}"} for r in RANKS])
    under("mpich", plan, folder, [
        {"PMI_RANK": r, "PMI_SIZE": 4, "MPI_LOCALRANKID": r,
         "MPI_LOCALNRANKS": 4} for r in RANKS])
    under("kubernetes", plan, folder, kubernetes())


def kubernetes():
    """Pods have no memory in common and an address each."""
    where = f"localhost:{takt.free_port()}"
    return [{"JOB_COMPLETION_INDEX": r, "TAKT_ADDRESS": "127.0.0.1",
             "TAKT_TOKEN": "secret", "TAKT_RENDEZVOUS": where} for r in RANKS]


def not_a_rank(plan):
    """In a batch script SLURM_ variables are there without srun: threads."""
    batch = {"SLURM_PROCID": 0, "SLURM_NTASKS": 4, "SLURM_JOB_ID": 7,
             "SLURM_NODEID": 0, "SLURM_JOB_NODELIST": "localhost"}
    [(code, said)] = takt.end_ranks(takt.start_ranks(
        plan, [batch], "--data", takt.TEXT, "--steps", 2, "-q"))
    assert code == 0, said
    [(code, said)] = takt.end_ranks(takt.start_ranks(
        plan, [{**batch, "SLURM_STEP_ID": 0, "RANK": 1, "WORLD_SIZE": 4,
                "MASTER_ADDR": "localhost", "MASTER_PORT": 1}],
        "--data", takt.TEXT))
    assert code == 2 and "torchrun says rank 1 (RANK)" in said, said
    assert "slurm says rank 0 (SLURM_PROCID)" in said, said


def itself(name, plan, folder, command, *options):
    """Under the launcher; what it says where it is not there."""
    starts = shutil.which(command[0]) and subprocess.run(
        [*command, "true"], capture_output=True, timeout=300).returncode == 0
    if not starts:
        print(f"skipped: {name} is not there or starts nothing here; its "
              "variables were tested")
        return
    log = folder / f"{name}-itself.losses"
    log.unlink(missing_ok=True)
    done = subprocess.run(
        [*command, takt.BIN / "takt-run", plan, "--data", takt.TEXT, "--steps",
         str(STEPS), "-q", "--log-losses", log, *options],
        capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (name, done.stdout, done.stderr)
    assert losses_of(log) == losses_of(folder / "threads.losses"), name
    print(f"{' '.join((name, 'itself', *options))}: the same losses")


def main():
    with takt.temporary_folder() as name:
        folder = takt.pathlib.Path(name)
        plan = takt.compile_plan(folder, "threads",
                                 takt.INPUTS / "gpt-tiny.yaml",
                                 takt.INPUTS / "host-8.yaml", "--stages=2",
                                 "--replicas=2")
        takt.train(plan, STEPS)
        variables(plan, folder)
        not_a_rank(plan)
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]
        itself("mpirun", plan, folder, mpirun)
        if "mpi yes" in takt.run("takt-run", "--version").stdout:
            itself("mpirun", plan, folder, mpirun, "--transport=mpi")
        else:
            print("skipped: this build has no MPI transport (TAKT_ENABLE_MPI)")
            takt.run("takt-run", plan, "--data", takt.TEXT, "-n", 4,
                     "--transport=mpi", expect=10)
        itself("torchrun", plan, folder,
               ["torchrun", "--no_python", "--nproc_per_node=4",
                f"--master_port={takt.free_port()}"])
    sys.exit(0)


if __name__ == "__main__":
    main()
