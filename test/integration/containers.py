#!/usr/bin/env python3
"""Holds docs/guides/containers.md against the project, as far as that can be done
without docker or a cluster: the Dockerfile's paths, targets and packages, the
manifest's names, and its command line, which four ranks run.
"""
import re
import shlex
import shutil
import subprocess
import sys

import takt

PAGE = (takt.ROOT / "docs/guides/containers.md").read_text()
INSTRUCTIONS = {"FROM", "RUN", "COPY", "WORKDIR", "ENTRYPOINT"}
# What every image of Debian has.
BASE = {"libc6", "libgcc-s1", "libstdc++6"}


def block(language):
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)
    assert len(found) == 1, f"{len(found)} blocks of {language}"
    return found[0]


def stages():
    """Stages of the Dockerfile: lists of (instruction, rest)."""
    lines = block("dockerfile").replace("\\\n", " ").splitlines()
    stages = []
    for line in filter(str.strip, lines):
        word, rest = line.split(maxsplit=1)
        assert word in INSTRUCTIONS, line
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, rest))
    return stages


def rest_of(stage, instruction):
    return [rest for word, rest in stage if word == instruction]


def packages_of(stage):
    """Packages that its commands install."""
    names = []
    for command in rest_of(stage, "RUN"):
        for install in re.findall(r"apt-get install ([^&;]*)", command):
            names += [w for w in install.split() if not w.startswith("-")]
    return names


def dockerfile():
    setup = (takt.ROOT / "scripts/setup.sh").read_text()
    build, final = stages()
    assert (rest_of(build, "FROM")[0].split() ==
            [*rest_of(final, "FROM")[0].split(), "AS", "build"])
    assert "git" in packages_of(build)
    [folder] = rest_of(build, "WORKDIR")
    assert rest_of(build, "COPY") == [f". {folder}"]
    command = rest_of(build, "RUN")[-1]
    targets = re.fullmatch(r'TAKT_BUILD_TARGETS="(.*)" scripts/setup.sh', command)
    assert targets, command
    for target in targets.group(1).split():
        assert (takt.ROOT / "tools" / target).is_dir(), target
    for variable in ("TAKT_BUILD_TARGETS", "TAKT_BUILD_DIR:-build"):
        assert f"${{{variable}" in setup, variable
    [copied] = rest_of(final, "COPY")
    assert copied.split()[:2] == ["--from=build", f"{folder}/build/bin/"], copied
    assert rest_of(final, "ENTRYPOINT") == ['["takt-run"]']
    # The context must bring no build folder of another path.
    ignored = (takt.ROOT / ".dockerignore").read_text().splitlines()
    assert "build*/" in ignored, ignored
    return packages_of(final), setup


def packages(named, setup):
    """The final image has the libraries of the tools that it is for, and each
    belongs to what scripts/setup.sh builds with."""
    if not shutil.which("dpkg-query") or not shutil.which("ldd"):
        print("skipped: no dpkg and ldd here: packages were not compared")
        return
    if "mpi yes" in takt.run("takt-run", "--version").stdout:
        print("skipped: a build with MPI needs more packages than the image")
        return
    needed = set()
    for tool in ("takt-run", "takt-plan"):
        dynamic = subprocess.run(["objdump", "-p", takt.BIN / tool], check=True,
                                 capture_output=True, text=True).stdout
        libraries = re.findall(r"NEEDED +(\S+)", dynamic)
        paths = dict(re.findall(r"^\s*(\S+) => (\S+)",
                                subprocess.run(["ldd", takt.BIN / tool],
                                               check=True, capture_output=True,
                                               text=True).stdout, re.M))
        for library in libraries:
            if library.startswith("ld-linux"):
                continue
            path = str(takt.pathlib.Path(paths[library]).resolve())
            # Debian moved /lib into /usr/lib; its lists may say either.
            for place in (path, path.removeprefix("/usr")):
                owner = subprocess.run(["dpkg-query", "-S", place],
                                       capture_output=True, text=True)
                if owner.returncode == 0:
                    needed.add(owner.stdout.split(":")[0])
                    break
            else:
                print(f"skipped: {path} is of no package")
                return
    assert needed - BASE == set(named), (needed, named)
    array = re.search(r"^packages=\((.*?)^\)", setup, re.M | re.S).group(1)
    for name in named:
        of = [dev for dev in array.split() if name in subprocess.run(
            ["dpkg-query", "-W", "-f=${Depends}", dev], capture_output=True,
            text=True).stdout.replace(",", " ").replace("(", " ").split()]
        assert of, f"{name} comes with no package of scripts/setup.sh"
    print(f"the image has {', '.join(sorted(named))} beside its base")


def one(text, pattern):
    found = re.findall(pattern, text, re.M)
    assert len(found) == 1, (pattern, found)
    return found[0]


def manifest():
    """Names that must be the same; returns the command line and variables."""
    text = block("yaml")
    try:
        import yaml
        assert len(list(yaml.safe_load_all(text))) == 2
    except ImportError:
        print("skipped: no python3-yaml: the manifest was read by its lines")
    service, job = text.split("---\n")
    name = one(job, r"^metadata: \{name: ([\w-]+)\}")
    subdomain = one(job, r"subdomain: ([\w-]+)$")
    assert one(service, r"^metadata: \{name: ([\w-]+)\}") == subdomain
    assert one(service, r"selector: \{job-name: ([\w-]+)\}") == name
    assert "clusterIP: None" in service
    assert one(job, r"completionMode: (\w+)") == "Indexed"
    assert one(job, r"restartPolicy: (\w+)") == "Never"
    ranks = int(one(job, r"completions: (\d+)"))
    assert ranks == int(one(job, r"parallelism: (\d+)"))
    known = takt.run("takt-run", "--env").stdout
    variables = re.findall(r"- \{name: (TAKT_\w+), value", job)
    assert set(variables) == {"TAKT_RENDEZVOUS", "TAKT_TOKEN", "TAKT_ADDRESS"}
    for variable in variables:
        assert re.search(rf"^{variable} ", known, re.M), variable
    host, port = one(job, r'TAKT_RENDEZVOUS, value: "(.*)"').split(":")
    assert host == f"{name}-0.{subdomain}" and 0 < int(port) < 65536
    secret, key = one(job, r"secretKeyRef: \{name: (\w+), key: (\w+)\}")
    assert f"create secret generic {secret} --from-literal={key}=" in PAGE
    arguments = one(job, r"args: \[(.*)\]").split(", ")
    mounted = one(job, r"mountPath: (/\w+)")
    volume = one(job, r"\{name: (\w+), mountPath")
    assert re.search(rf"volumes:\n +- \{{name: {volume}, ", job)
    for argument in arguments:
        assert argument[0] != "/" or argument.startswith(mounted + "/"), argument
    return ranks, arguments, mounted


def here(arguments, mounted, folder):
    return [re.sub(rf"^{mounted}/", f"{folder}/", word) for word in arguments]


def ranks_run(folder, ranks, arguments, mounted):
    """The manifest's command line, twice: it starts, and it goes on."""
    plan, *options = here(arguments, mounted, folder)
    for steps in (2, 3):
        environments = [{"JOB_COMPLETION_INDEX": rank,
                         "TAKT_ADDRESS": "127.0.0.1", "TAKT_TOKEN": "secret",
                         "TAKT_RENDEZVOUS": f"file:{folder}/meet-{steps}"}
                        for rank in range(ranks)]
        ends = takt.end_ranks(takt.start_ranks(
            plan, environments, *options, "--steps", steps,
            "--start-timeout=100"))
        assert all(code == 0 for code, _ in ends), ends
        assert (folder / "ckpt" / f"step-{steps:08}").is_dir()


def container_runs(folder, mounted):
    """'docker run ... image ARGUMENTS', which the entry point gets."""
    line = re.search(rf"`docker run -v \$PWD:{mounted} image ([^`]*)`", PAGE)
    arguments = here(shlex.split(line.group(1)), mounted, folder)
    takt.run("takt-run", *arguments, "--steps", 1, "-q")


def main():
    named, setup = dockerfile()
    packages(named, setup)
    ranks, arguments, mounted = manifest()
    with takt.temporary_folder() as name:
        folder = takt.pathlib.Path(name)
        plan = takt.compile_plan(folder, "job", takt.INPUTS / "gpt-tiny.yaml",
                                 takt.INPUTS / "host-8.yaml", "--stages=2",
                                 f"--replicas={ranks // 2}")
        assert plan.name == "job.plan"
        shutil.copy(takt.TEXT, folder / "text.txt")
        ranks_run(folder, ranks, arguments, mounted)
        container_runs(folder, mounted)
    print(f"the manifest's command line runs on {ranks} ranks and goes on")
    sys.exit(0)


if __name__ == "__main__":
    main()
