#!/usr/bin/env python3
"""Part 3: many processes, and what goes wrong with them."""
from common import finish, integration, report


def line_2_checkpoint_faults():
    """50 kills while checkpoints are written, failed writes, a full disk."""
    passed, said = integration("checkpoint_faults", "50")
    report("2b", passed, said)


def line_2_faults():
    """Ranks killed and stopped: codes, why-hang, and the losses after."""
    passed, said = integration("hangs", "100")
    report("2a", passed, said and said.split("; ", said.count("; ") - 1)[-1])


def line_3_other_layouts():
    """From 4 ranks to 2 and 8, from 2 stages to 4."""
    passed, said = integration("checkpoints")
    report("3", passed, said)


line_2_faults()
line_2_checkpoint_faults()
line_3_other_layouts()
finish()
