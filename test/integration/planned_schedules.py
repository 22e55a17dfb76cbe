"""As plans, searched schedules are never longer than 1F1B's or GPipe's where those
fit, and the bound printed lies below the step: random profiled models."""
import json
import pathlib
import random
import re
import sys

from takt import run, temporary_folder

MODELS = 6
CLUSTER = """schema_version: 1
cluster:
  name: c4
  devices:
    d: {{flops: 1 TFLOP/s, memory_bandwidth: 1 TB/s, memory: {memory} MB}}
  nodes:
    - {{count: 1, device: d, devices: 4, link: l}}
  links:
    l: {{latency: 1 us, bandwidth: 10 GB/s}}
"""

#: A long forward on the way down fills every buffer of those who run ahead.
RUNNING_AHEAD = [(2, 9, 9), (4, 1, 0), (7, 7, 7)]


def model_of(times, activation, micro_batches):
    lines = ["schema_version: 1", "model:", "  name: m", "  layers:"]
    for i, (forward, input_grad, weight_grad) in enumerate(times):
        backward = (f"input_grad: {input_grad} ms, weight_grad: {weight_grad} ms"
                    if weight_grad else f"backward: {input_grad} ms")
        lines.append(f"    - profiled: {{name: l{i}, samples: 1, "
                     f"forward: {forward} ms, {backward}, "
                     f"activation: {activation} MB, parameters: 1 MB}}")
    lines.append(f"training: {{global_batch: {micro_batches}, "
                 f"micro_batches: {micro_batches}}}")
    return "\n".join(lines) + "\n"


def compile_with(folder, schedule, stages):
    done = run("taktc", folder / "m.yaml", folder / "c.yaml",
               f"--stages={stages}", f"--schedule={schedule}",
               "--format=json", "-o", folder / "job.plan", expect=None)
    if done.returncode == 3 and schedule == "gpipe":
        return None  # does not fit
    if done.returncode != 0:
        sys.exit(f"{schedule}: exit {done.returncode}\n{done.stderr}\n"
                 f"{(folder / 'm.yaml').read_text()}")
    return json.loads(done.stdout)["step_time_ns"]


def main():
    draw = random.Random(4)
    shorter = 0
    with temporary_folder() as name:
        folder = pathlib.Path(name)
        for number in range(MODELS):
            stages = draw.randint(2, 4)
            times = [[draw.randint(1, 90) for _ in range(3)]
                     for _ in range(stages)]
            activation, memory = draw.choice([10, 30]), draw.choice([700, 1000])
            if number == 0:
                times, activation, memory, stages = RUNNING_AHEAD, 30, 1000, 3
            (folder / "m.yaml").write_text(
                model_of(times, activation, 6 if number else 8))
            (folder / "c.yaml").write_text(CLUSTER.format(memory=memory))
            steps = {name: compile_with(folder, name, stages)
                     for name in ("1f1b", "gpipe", "optimal", "optimal-split")}
            least = min(step for name, step in steps.items()
                        if step and not name.startswith("optimal"))
            for name in ("optimal", "optimal-split"):
                if steps[name] > least:
                    sys.exit(f"{name} takes {steps[name]} ns, a generator {least}\n"
                             f"{(folder / 'm.yaml').read_text()}")
            shorter += steps["optimal"] < least
        report = run("taktc", folder / "m.yaml", folder / "c.yaml",
                     f"--stages={stages}", "--schedule=optimal").stderr
    if not re.search(r"^schedule optimal: [\d.]+ \S+, bound [\d.]+ \S+, gap ",
                     report, re.M):
        sys.exit(f"the line of the search speaks of another step\n{report}")
    if shorter == 0:
        sys.exit("no searched schedule is shorter than the generators'")
    print(f"{MODELS} models: no searched schedule longer than 1f1b or gpipe, "
          f"{shorter} shorter")


if __name__ == "__main__":
    main()
