"""Measures the promises of the service: overload, noisy neighbours, restarts, crashes.

make promises                                  # all of them, into docs/promises.md
python -m promises overload neighbour          # some, printed
"""

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from . import (
    crashes,
    floods,
    neighbour,
    overload,
    peers,
    replicas,
    report,
    restarts,
    tenants,
    workers,
)
from .ground import Ground, ground
from .promise import Promise

# Each takes how much: the value of the option beside it.
SCENARIOS: dict[str, tuple[str, Callable[[Ground, int], Promise]]] = {
    "overload": ("seconds", overload.measure),
    "cheap-overload": ("seconds", overload.measure_cheap),
    "neighbour": ("seconds", neighbour.measure),
    "restarts": ("restarts", restarts.measure),
    "floods": ("seconds", floods.measure),
    "peers": ("seconds", peers.measure),
    "workers": ("worker-calls", lambda _, calls: workers.measure(calls)),
    "kills": ("kills", crashes.measure_kills),
    "replicas": ("changes", replicas.measure_following),
    "outage": ("outage", replicas.measure_outage),
    "full-disk": ("disk-mib", crashes.measure_full_disk),
    "tenants": ("tenant-calls", tenants.measure),
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
        "--outage", type=int, default=40, help="seconds without the store (default 40)"
    )
    parser.add_argument("--kills", type=int, default=50, help="during registrations (default 50)")
    parser.add_argument(
        "--disk-mib", type=int, default=48, help="of the disk that is filled (default 48)"
    )
    parser.add_argument(
        "--tenant-calls", type=int, default=10_000, help="of tenants at once (default 10,000)"
    )
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="write into a page, with plots beside"
    )
    asked = parser.parse_args()
    unknown = [name for name in asked.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"no such scenario: {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    if asked.write and find_spec("matplotlib") is None:
        parser.error("--write draws plots: pip install -r tests/promises/requirements.txt")
    with ground(_binary("TOOLGATE_BIN"), _binary("TOOLGATE_LOAD_BIN")) as on:
        promises = []
        for name in asked.scenarios or SCENARIOS:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            promises.append(_measure(name, on, asked))
    if asked.write:
        report.write(asked.write, promises)
    else:
        print(report.render(promises, "promises"))
    short = [f"{p.title}: {f.what}" for p in promises for f in p.figures if not f.held]
    print(
        "\n".join(["short of what is promised:", *short] if short else ["all held"]),
        file=sys.stderr,
    )


def _measure(name: str, on: Ground, asked: argparse.Namespace) -> Promise:
    option, measure = SCENARIOS[name]
    much = getattr(asked, option.replace("-", "_"))
    command = f'make promises PROMISES="{name} --{option} {much}"'
    return replace(measure(on, much), command=command)


def _binary(variable: str) -> Path:
    path = Path(os.environ.get(variable, "")).resolve()
    if not path.is_file():
        sys.exit(f"{variable} must name a binary, or use `make promises`")
    return path


if __name__ == "__main__":
    main()
