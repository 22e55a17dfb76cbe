"""The proof as users meet it: in the report, in takt-plan check, and where a
plan that deadlocks is refused, or run all the same and ended by the watchdog."""
import json
import re

from takt import ROOT, compile_plan, run, temporary_folder


def main():
    with temporary_folder() as folder:
        plan = compile_plan(folder, "job", ROOT / "examples/mlp.yaml",
                            "host-2core", "--stages=2", "--replicas=1")
        shown = json.loads(run("takt-plan", "show", plan, "--format=json").stdout)
        assert re.match(r"proved: \d+ actions, \d+ messages, 2 ranks$",
                        shown["proof"]), shown["proof"]
        checked = json.loads(
            run("takt-plan", "check", plan, "--format=json").stdout)
        assert checked["holds"] and checked["failure"] is None
        assert checked["proof"] == shown["proof"]

        text = run("takt-plan", "dump", plan).stdout
        again = plan.with_suffix(".again")
        (plan.with_suffix(".txt")).write_text(text)
        run("takt-plan", "assemble", plan.with_suffix(".txt"), "-o", again)
        assert again.read_bytes() == plan.read_bytes(), "text loses something"

        # The first stage awaits the first gradient before its first message.
        broken = plan.with_suffix(".broken.txt")
        bare = re.sub(r" at \d+( *#)", r"\1", text)
        first = re.search(r"    send act0 0 after [^#]*", bare).group(0).rstrip()
        broken.write_text(bare.replace(first, first + ", recv_grad:1", 1))
        failed = json.loads(run("takt-plan", "check", broken, "--format=json",
                                expect=1).stdout)["failure"]
        assert failed["rule"] == "order", failed
        ends = [(end["rank"], end["lane"], end["action"])
                for end in failed["ends"]]
        assert len(ends) == 2, failed
        assert "order: " in run("takt-run", broken, expect=1).stderr
        hung = run("takt-run", broken, "--unproven", "--synthetic", "--steps=1",
                   "--timeout=0.3", expect=12).stderr
        assert "UNPROVEN" in hung
        for rank, lane, action in ends:
            assert re.search(rf"end: rank {rank} lane '{lane}' instruction \d+: "
                             rf"{action}\n", hung), hung

        # A certificate that does not fit its plan is a damaged file.
        broken.write_text(text.replace(" at 1 ", " at 0 ", 1))
        assert "certificate" in run("takt-plan", "show", broken, expect=1).stderr

        schedule = plan.with_suffix(".csv")
        schedule.write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
        run("takt-plan", "check", schedule)
        schedule.write_text("0F0,0F1,0B0,0B1\n1B0,1F0,1F1,1B1\n")
        run("takt-plan", "check", schedule, expect=1)
    print("proved, refused and ended as they should be")


main()
