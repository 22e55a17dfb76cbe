#!/usr/bin/env python3
"""Plans of layers known by costs alone are proven too: sizes that fill no
aligned slot, replicas, one stage and several."""
import sys

import takt

MODEL = """schema_version: 1
model:
  name: profiled
  layers:
    - profiled: {{name: a, forward: 3 ms, backward: 6 ms, activation: {0} B, parameters: 400 B, samples: 8}}
    - profiled: {{name: b, forward: 2 ms, backward: 4 ms, activation: {0} B, parameters: 4000 B, samples: 8}}
    - profiled: {{name: c, forward: 1 ms, backward: 2 ms, activation: 800 B, parameters: 40 B, samples: 8}}
training:
  global_batch: 32
  micro_batches: 4
  seed: 1
  optimizer: {{kind: sgd, learning_rate: 1e-2}}
"""


def main():
    with takt.temporary_folder() as folder:
        for size in (4000, 4096, 32, 100000):
            model = f"{folder}/model{size}.yaml"
            with open(model, "w") as out:
                out.write(MODEL.format(size))
            for options in ([], ["--stages=1"], ["--stages=2"],
                            ["--stages=3", "--schedule=gpipe"],
                            ["--stages=2", "--replicas=4"]):
                plan = takt.compile_plan(folder, "job", model, "a100-8", *options)
                takt.run("takt-plan", "check", plan)
            print(f"{size} B: proven")
    sys.exit(0)


if __name__ == "__main__":
    main()
