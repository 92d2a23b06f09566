"""Peers who mean harm beside honest callers: what those notice."""

import json
import subprocess
import sys

from .attack import KINDS
from .ground import PEOPLE, Ground, on, peak_mib, register
from .overload import _ceiling
from .promise import Figure, Promise

ATTACK = [sys.executable, "-m", "promises.attack"]
TENANT = "tenant-0"
MOVED = 2.0
OF_CEILING = 0.5


def measure(ground: Ground, seconds: int) -> Promise:
    with ground.server({"encoder.cache_memory": "0B"}) as server:
        register(server, *(f"tenant-{number}" for number in range(8)), servers=3)
        ceiling = _ceiling(ground, server, seconds)
        honest = (
            "--stream",
            f"{TENANT}={ceiling * OF_CEILING:.2f}",
            "--seconds",
            str(seconds),
            *PEOPLE,
        )
        calm = ground.load([server.target], *honest)["all"]
        figures = []
        for kind in KINDS:
            with on(ground.generator_cores):
                asked = [*ATTACK, kind, server.target, str(seconds + 3)]
                attack = subprocess.Popen(asked, stdout=subprocess.PIPE)
            found = ground.load([server.target], *honest)["all"]
            sent = json.loads(attack.communicate()[0])
            moved = found["answer_ms"]["p99"] / calm["answer_ms"]["p99"]
            failed = found["refused"] + found["unsent"] + sum(found["failed"].values())
            figures.append(
                Figure(
                    f"honest p99 beside {kind}",
                    f"<= {MOVED:g}x",
                    f"{moved:.2f}x ({found['answer_ms']['p99']:.1f} ms; "
                    f"{failed} of {found['offered']} failed; {sent['frames']} frames over "
                    f"{sent['connections']} connections; {peak_mib(server):.0f} MiB)",
                    moved <= MOVED and failed == 0,
                    "the flood is read by the core that embeds as well",
                )
            )
    how = (
        f"Honest callers at half of the ceiling ({ceiling * OF_CEILING:.0f}/s), whose p99 is "
        f"{calm['answer_ms']['p99']:.1f} ms alone; beside them one peer that sends frames "
        "as fast as it can, and connects again whenever it is cut off. It shares the load "
        "generator's core, behind it."
    )
    return Promise("HTTP/2 floods", how, figures)
