"""Encoder workers killed, hung, lying and cut off: what tests/e2e checks, with its figures."""

import os
import re
import subprocess
import sys
from pathlib import Path

from .promise import Figure, Promise

FAULTS = {
    "test_a_worker_that_is_killed_is_started_again": ("killed", 1.0),
    "test_a_worker_that_hangs_is_not_waited_for": ("hung", 1.0),
    "test_workers_that_answer_nonsense_are_out_of_use": ("returning wrong numbers", 5.0),
    "test_a_worker_behind_a_cut_network_is_not_waited_for": ("behind a cut network", 1.0),
}
SAID = re.compile(r"::(test_\w+)\S* (\d+) calls; moved after ([\d.]+) s, back ([\d.]+) s")


def measure(calls: int) -> Promise:
    """Needs a debug binary: only those take faults."""
    tests = Path(__file__).resolve().parent.parent / "e2e" / "test_workers.py"
    binary = os.environ.get("TOOLGATE_DEBUG_BIN")
    if not binary:
        raise SystemExit("TOOLGATE_DEBUG_BIN must name a debug binary, or use `make promises`")
    environment = {**os.environ, "TOOLGATE_BIN": binary, "TOOLGATE_E2E_CALLS": str(calls)}
    command = [sys.executable, "-m", "pytest", "-sv", "-p", "no:cacheprovider", str(tests)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = {said[1]: said for said in SAID.finditer(ran.stdout)}
    figures = []
    for test, (what, within) in FAULTS.items():
        said = found.get(test)
        if said is None:
            figures.append(
                Figure(f"a worker {what}", f"out of use in <= {within:g} s", "failed", False)
            )
            continue
        moved = float(said[3])
        figures.append(
            Figure(
                f"a worker {what}",
                f"out of use in <= {within:g} s, 0 failed Route calls",
                f"{moved:.2f} s, 0 of {said[2]} calls failed; back {float(said[4]):.1f} s later",
                moved <= within,
                "the canary goes round every 400 ms, and half a second is waited for it",
            )
        )
    how = (
        f"Two workers on the CPU behind one server, four callers without a pause, {calls} Route "
        "calls "
        "at least through each fault. The time is from the fault to the server's metric saying so; "
        "calls meanwhile are answered by the other worker or by the server itself. On GPUs: not "
        "run."
    )
    return Promise("Encoder workers", how, figures)
