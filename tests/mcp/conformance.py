"""Scenarios of the official conformance suite: of a server at a URL, and of the gateway's client.

    python tests/mcp/conformance.py http://127.0.0.1:7080/mcp/s/fixture

Without a URL it starts the fixture and asks that.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from fixture_process import BINARY, fixture_url
from installing import install, npm_command

Json = dict[str, Any]

REVISIONS = ("2025-11-25", "2026-07-28")

CLIENT = Path(BINARY).with_name("toolgate-mcp-client")

# Client scenarios that are not played: extensions, which no revision requires and no run scores.
NOT_PLAYED = [
    "auth/client-credentials-jwt",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/enterprise-managed-authorization",
    "auth/wif-jwt-bearer",
]

# Runs of a scenario of the client, at most. See `is_spoilt`.
CLIENT_RUNS = 10


@dataclass
class Outcome:
    """Checks of one revision's requirements: what counts, and what the suite runs beside them."""

    revision: str
    seconds: float
    passed: int = 0
    unscored_passed: int = 0
    # Scenario and check, of scenarios that the revision requires.
    failed: list[str] = field(default_factory=list)
    # Of those that it doesn't: extensions, pending ones, later ones.
    unscored_failed: list[str] = field(default_factory=list)
    # Checks by scenario: how many had which status.
    statuses: dict[str, Counter[str]] = field(default_factory=dict)

    def take(self, scenario: str, checks: list[Json], *, is_scored: bool) -> None:
        """Counts the checks of a scenario."""
        statuses = Counter[str](check["status"] for check in checks)
        # The suite counts a warning as neither, but a SHOULD that is not kept is a difference.
        failed = [
            f"{scenario}: {check['id']}: {check.get('errorMessage', '')}"
            for check in checks
            if check["status"] in ("FAILURE", "WARNING")
        ]
        if is_scored:
            self.passed += statuses["SUCCESS"]
            self.failed += failed
        else:
            self.unscored_passed += statuses["SUCCESS"]
            self.unscored_failed += failed
        self.statuses[scenario] = statuses

    def __str__(self) -> str:
        """One line of figures, and one for each failed check."""
        unscored = self.unscored_passed + len(self.unscored_failed)
        total = self.passed + len(self.failed)
        lines = [
            f"{self.revision}: {self.passed}/{total} required,"
            f" {self.unscored_passed}/{unscored} beside them, {self.seconds:.1f} s"
        ]
        lines += [f"  FAILED {check}" for check in self.failed]
        lines += [f"  failed, not scored: {check}" for check in self.unscored_failed]
        return "\n".join(lines)


def run(url: str, revision: str) -> Outcome:
    """Runs every server scenario of a revision's requirements against a URL."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        told = _execute(["server", "--url", url, "--requirements", revision], results)
        outcome = Outcome(revision, time.monotonic() - started)
        unscored = set(_unscored(revision, "server"))
        for file in sorted(results.rglob("checks.json")):
            # server-SCENARIO-2026-11-26T21-23-28-010Z
            scenario = file.parent.name.removeprefix("server-").rsplit("-", 6)[0]
            outcome.take(scenario, json.loads(file.read_text()), is_scored=scenario not in unscored)
    if not outcome.statuses:
        raise RuntimeError(f"the suite ran nothing:\n{told}")
    return outcome


@cache
def run_client(revision: str) -> Outcome:
    """Runs those client scenarios of a revision's requirements that are played, two at a time."""
    unscored = _unscored(revision, "client")
    scenarios = [one for one in [*required(revision, "client"), *unscored] if one not in NOT_PLAYED]
    started = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        played = list(pool.map(lambda scenario: play(scenario, revision), scenarios))
    outcome = Outcome(revision, time.monotonic() - started)
    for scenario, checks in zip(scenarios, played, strict=True):
        outcome.take(scenario, checks, is_scored=scenario not in unscored)
    return outcome


def play(scenario: str, revision: str) -> list[Json]:
    """Plays one of the client's scenarios at a revision; returns what was checked."""
    arguments = ["client", "--command", str(CLIENT), "--scenario", scenario]
    arguments += ["--spec-version", revision, "--force"]
    for _ in range(CLIENT_RUNS):
        with tempfile.TemporaryDirectory() as results:
            told = _execute(arguments, Path(results))
            files = list(Path(results).rglob("checks.json"))
            if not files:
                raise RuntimeError(f"{scenario} was not played:\n{told}")
            checks: list[Json] = json.loads(files[0].read_text())
        if not is_spoilt(scenario, checks):
            return checks
    raise RuntimeError(f"{scenario} was spoilt {CLIENT_RUNS} times")


def required(revision: str, side: str) -> list[str]:
    """Scenarios that a revision requires of one side, `server` or `client`, in its own order."""
    lines = _requirements(revision)
    start = lines.index(f"{side}:") + 1
    listed = takewhile(lambda line: line.startswith("  - "), lines[start:])
    return [line.removeprefix("  - ") for line in listed]


def is_spoilt(scenario: str, checks: list[Json]) -> bool:
    """True where a run says nothing of the client: a busy machine had it ask in another order.

    While the call of `sse-retry` runs, the suite's server takes any GET for the reconnection. The
    client's GET for messages of no call may be such a one: it has no id of an event.
    """
    details = [check.get("details", {}) for check in checks]
    if scenario != "sse-retry":
        return False
    is_running = False
    for one in details:
        if "tools/call" in _methods(one):
            is_running = True
        elif is_running and "GET" in _methods(one):
            return "last-event-id" not in one["headers"]
    return False


def _methods(details: Json) -> set[str]:
    """The methods of HTTP and of MCP that a check is about, as far as it says them."""
    keys = ("method", "mcpMethod", "jsonrpcMethod")
    return {details[key] for key in keys if key in details}


def _execute(arguments: list[str], results: Path) -> str:
    """Runs the suite, whose results go into a folder; returns what it said."""
    node = npm_command(install("conformance"), "node")
    done = subprocess.run(
        [node, _package() / "dist" / "index.js", *arguments, "--output-dir", results],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | {"NO_COLOR": "1"},
    )
    return f"{done.stdout}\n{done.stderr}"


def _package() -> Path:
    return install("conformance") / "node_modules" / "@modelcontextprotocol" / "conformance"


def _unscored(revision: str, side: str) -> list[str]:
    """Scenarios of one side that a revision's requirements list as not scored."""
    lines = _requirements(revision)
    named = [line.removeprefix("  - scenario: ") for line in lines]
    return [name for name, leg in pairwise(named) if leg == f"    leg: {side}"]


def _requirements(revision: str) -> list[str]:
    """The file's own plain lines."""
    return (_package() / "requirements" / f"{revision}.yaml").read_text().splitlines()


def main() -> int:
    """Prints both revisions' figures; 1 if a required check failed."""
    version = tomllib.loads(Path(__file__).with_name("pins.toml").read_text())
    print("conformance", version["conformance"]["npm"]["@modelcontextprotocol/conformance"])
    if len(sys.argv) > 1:
        outcomes = {f"server, {revision}": run(sys.argv[1], revision) for revision in REVISIONS}
    else:
        with fixture_url() as url:
            outcomes = {f"server, {revision}": run(url, revision) for revision in REVISIONS}
        outcomes |= {f"client, {revision}": run_client(revision) for revision in REVISIONS}
    for side, outcome in outcomes.items():
        print(side, outcome, sep="\n")
    return int(any(outcome.failed for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
