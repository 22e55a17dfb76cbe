#!/usr/bin/env python3
"""Part 3: many processes, and what goes wrong with them."""
import predictions
from common import finish, integration, report, unit


def line_1_processes():
    """The same losses as threads, over everything and under every launcher."""
    for name in ("processes", "launchers", "two_hosts"):
        passed, said = integration(name)
        report("1", passed, f"{name}: {said}")


def line_4_strangers():
    """10,000 strangers at the rendezvous, and at a door of the transport."""
    passed, said = integration("process_failures", "10000")
    report("4", passed, said)
    passed, said = unit("BootstrapTests", "Doorkeeper.*")
    report("4", passed, said)


def line_2_checkpoint_faults():
    """50 kills while checkpoints are written, failed writes, a full disk."""
    passed, said = integration("checkpoint_faults", "50")
    report("2b", passed, said)


def line_2_faults():
    """Ranks killed and stopped, links cut, silent and damaged, full disks:
    codes, why-hang, and the losses after."""
    passed, said = integration("hangs", "100")
    report("2a", passed, said and said.split("; ", said.count("; ") - 1)[-1])


def line_3_other_layouts():
    """From 4 ranks to 2 and 8, from 2 stages to 4."""
    passed, said = integration("checkpoints")
    report("3", passed, said)


line_1_processes()
line_2_faults()
line_2_checkpoint_faults()
line_3_other_layouts()
line_4_strangers()
predictions.line_5_overhead()
predictions.lines_5_and_6()
finish()
