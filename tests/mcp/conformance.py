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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fixture_process import BINARY, fixture_url
from installing import install, npm_command

REVISIONS = ("2025-11-25", "2026-07-28")

CLIENT = Path(BINARY).with_name("toolgate-mcp-client")

# Client scenarios that are not played: servers of older revisions can't ask questions yet.
NOT_PLAYED = ["elicitation-sep1034-client-defaults"]

# Runs of the client's scenarios, at most. See `is_spoilt`.
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
    # Scenarios that the suite's own server spoilt: they say nothing of the client.
    spoilt: list[str] = field(default_factory=list)

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
    return _run(["server", "--url", url], revision, lambda _scenario: True)


def run_client(revision: str) -> Outcome:
    """Runs those client scenarios of a revision's requirements that are played."""
    for _ in range(CLIENT_RUNS):
        outcome = _run(["client", "--command", str(CLIENT)], revision, is_played)
        if not outcome.spoilt:
            return outcome
    raise RuntimeError(f"{outcome.spoilt} were spoilt {CLIENT_RUNS} times")


def is_played(scenario: str) -> bool:
    """False for scenarios of what the client does not do yet."""
    return not scenario.startswith("auth/") and scenario not in NOT_PLAYED


def is_spoilt(scenario: str, checks: list[dict[str, Any]]) -> bool:
    """True where the suite's server answered the call of `sse-retry` on a stream of no call.

    That server takes any GET that comes while the call runs for the reconnection. On a busy machine
    the client's GET for messages of no call may be such a one: it has no id of an event.
    """
    if scenario != "sse-retry":
        return False
    is_running = False
    for check in checks:
        details = check.get("details", {})
        if details.get("jsonrpcMethod") == "tools/call":
            is_running = True
        elif is_running and details.get("method") == "GET":
            return "last-event-id" not in details["headers"]
    return False


def _run(arguments: list[str], revision: str, is_counted: Callable[[str], bool]) -> Outcome:
    folder = install("conformance")
    node = Path(npm_command(folder, "node"))
    package = folder / "node_modules" / "@modelcontextprotocol" / "conformance"
    command = [str(node), str(package / "dist" / "index.js"), *arguments]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as results:
        done = subprocess.run(
            [*command, "--requirements", revision, "--output-dir", results],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            env=os.environ | {"NO_COLOR": "1"},
        )
        outcome = Outcome(revision, time.monotonic() - started)
        _read_results(Path(results), _unscored(package, revision), is_counted, outcome)
    if not outcome.statuses:
        raise RuntimeError(f"the suite ran nothing:\n{done.stdout}\n{done.stderr}")
    return outcome


def _unscored(package: Path, revision: str) -> set[str]:
    """Scenarios that a revision's requirements list as not scored; the file's own plain lines."""
    lines = (package / "requirements" / f"{revision}.yaml").read_text().splitlines()
    return {line.split(":", 1)[1].strip() for line in lines if "- scenario:" in line}


def _read_results(
    results: Path, unscored: set[str], is_counted: Callable[[str], bool], outcome: Outcome
) -> None:
    for file in sorted(results.rglob("checks.json")):
        # server-SCENARIO-2026-11-26T21-23-28-010Z; names of the client's scenarios may have a slash
        name = str(file.parent.relative_to(results))
        scenario = name.removeprefix("server-").rsplit("-", 6)[0]
        if not is_counted(scenario):
            continue
        statuses: Counter[str] = Counter()
        checks = json.loads(file.read_text())
        if is_spoilt(scenario, checks):
            outcome.spoilt.append(scenario)
        for check in checks:
            statuses[check["status"]] += 1
            named = f"{scenario}: {check['id']}: {check.get('errorMessage', '')}"
            # The suite counts a warning as neither, but a SHOULD that is not kept is a difference.
            bad = check["status"] in ("FAILURE", "WARNING")
            if scenario in unscored:
                outcome.unscored_passed += check["status"] == "SUCCESS"
                outcome.unscored_failed += [named] if bad else []
            else:
                outcome.passed += check["status"] == "SUCCESS"
                outcome.failed += [named] if bad else []
        outcome.statuses[scenario] = statuses


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
