# How lit finds and runs Takt's text tests. Each test file says in its RUN lines
# what to run; the tools of the build and LLVM's FileCheck, not and split-file
# are on its PATH.
import os
import sys

import lit.formats

config.name = "takt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".yaml", ".test"]
config.excludes = ["Inputs", "unit", "data", "integration"]
config.test_source_root = os.path.dirname(__file__)
# Every file runs in a lit of its own, and side by side: each has a room, or they
# would write the same file of times at once.
config.test_exec_root = os.path.join(
    config.takt_build_dir, "test", "rooms", lit_config.params.get("room", "all")
)

bin_dir = os.path.join(config.takt_build_dir, "bin")
config.environment["PATH"] = os.pathsep.join(
    [bin_dir, config.llvm_tools_dir, config.environment["PATH"]]
)

# %examples are the files people start from, %data what several tests read.
config.substitutions += [
    ("%examples", os.path.join(config.takt_source_dir, "examples")),
    ("%data", os.path.join(config.test_source_root, "data")),
    ("%python", sys.executable),
]

# Tools are features too: a build of the runtime alone has no compiler.
for tool in ("takt-opt", "taktc", "takt-run", "takt-plan"):
    if os.path.exists(os.path.join(bin_dir, tool)):
        config.available_features.add(tool)
if config.takt_z3.upper() in ("ON", "1", "TRUE", "YES"):
    config.available_features.add("z3")
if config.takt_mpi.upper() in ("ON", "1", "TRUE", "YES"):
    config.available_features.add("mpi")
