"""Measures the promises of the service: overload, noisy neighbours, restarts, crashes.

make promises                                  # all of them, into docs/promises.md
python -m promises overload neighbour          # some, printed
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from . import crashes, floods, neighbour, overload, replicas, report, restarts, workers
from .ground import Ground, ground
from .promise import Promise

Measure = Callable[[Ground, argparse.Namespace], Promise]

SCENARIOS: dict[str, Measure] = {
    "overload": lambda on, asked: overload.measure(on, asked.seconds),
    "neighbour": lambda on, asked: neighbour.measure(on, asked.seconds),
    "restarts": lambda on, asked: restarts.measure(on, asked.restarts),
    "floods": lambda on, asked: floods.measure(on, asked.seconds),
    "workers": lambda _, asked: workers.measure(asked.worker_calls),
    "kills": lambda on, asked: crashes.measure_kills(on, asked.kills),
    "replicas": lambda on, asked: replicas.measure_following(on, asked.changes),
    "outage": lambda on, asked: replicas.measure_outage(on, asked.outage),
    "full-disk": lambda on, _: crashes.measure_full_disk(on),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m promises",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--seconds", type=int, default=20, help="of each load (default 20)")
    parser.add_argument("--restarts", type=int, default=100, help="of replicas (default 100)")
    parser.add_argument(
        "--worker-calls", type=int, default=2_000, help="through each fault (default 2,000)"
    )
    parser.add_argument("--changes", type=int, default=100, help="of a catalog (default 100)")
    parser.add_argument(
        "--outage", type=int, default=60, help="seconds of the load around it (default 60)"
    )
    parser.add_argument("--kills", type=int, default=50, help="during registrations (default 50)")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="write a page, with plots beside"
    )
    asked = parser.parse_args()
    unknown = [name for name in asked.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"no such scenario: {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    with ground(_binary("TOOLGATE_BIN"), _binary("TOOLGATE_LOAD_BIN")) as on:
        promises = []
        for name in asked.scenarios or SCENARIOS:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            promises.append(SCENARIOS[name](on, asked))
    if asked.write:
        report.write(asked.write, promises)
    else:
        print(report.render(promises, "promises"))
    short = [f"{p.title}: {f.what}" for p in promises for f in p.figures if not f.held]
    print(
        "\n".join(["short of what is promised:", *short] if short else ["all held"]),
        file=sys.stderr,
    )


def _binary(variable: str) -> Path:
    path = Path(os.environ.get(variable, "")).resolve()
    if not path.is_file():
        sys.exit(f"{variable} must name a binary, or use `make promises`")
    return path


if __name__ == "__main__":
    main()
