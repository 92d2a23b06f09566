"""The official conformance suite: the fixture, the gateway before it, and the gateway's client."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import conformance
import pytest
from fixture_gateway import gateway
from fixture_process import fixture_url

# Checks that pass: those a revision requires, and those that the suite runs beside them.
EXPECTED = {"2025-11-25": (70, 13), "2026-07-28": (121, 76)}
# By the era of the fixture. Scenarios of 2026-07-28 want a server's own names of questions, so they
# are not run before a fixture of 2025-11-25.
THROUGH_GATEWAY = {
    ("modern", "2025-11-25"): (70, 11),
    ("modern", "2026-07-28"): (121, 76),
    ("legacy", "2025-11-25"): (70, 11),
}

# Of the client, in the scenarios that are not about OAuth.
OF_THE_CLIENT = {"2025-11-25": (6, 9), "2026-07-28": (52, 9)}


@pytest.fixture(scope="module")
def direct() -> Iterator[str]:
    with fixture_url() as url:
        yield url


@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_every_required_check_passes(revision: str, direct: str) -> None:
    outcome = conformance.run(direct, revision)
    assert outcome.failed == [], outcome
    assert (outcome.passed, outcome.unscored_passed) == EXPECTED[revision], outcome


@pytest.mark.parametrize(("era", "revision"), THROUGH_GATEWAY)
def test_the_gateway_passes_what_its_upstream_does(era: str, revision: str, tmp_path: Path) -> None:
    arguments = ["--legacy"] if era == "legacy" else []
    with gateway(tmp_path, *arguments) as running:
        outcome = conformance.run(running.url, revision)
    assert outcome.failed == [], outcome
    figures = (outcome.passed, outcome.unscored_passed)
    assert figures == THROUGH_GATEWAY[era, revision], outcome


@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_the_client_of_upstreams_passes_its_scenarios(revision: str) -> None:
    outcome = conformance.run_client(revision)
    assert outcome.failed == [], outcome
    assert (outcome.passed, outcome.unscored_passed) == OF_THE_CLIENT[revision], outcome


CALL = {"details": {"method": "POST", "jsonrpcMethod": "tools/call"}}
LISTENS = {"details": {"method": "GET", "headers": {}}}
RESUMES = {"details": {"method": "GET", "headers": {"last-event-id": "event-1"}}}


@pytest.mark.parametrize(
    ("checks", "is_spoilt"),
    [
        ([LISTENS, CALL, RESUMES], False),
        ([CALL, RESUMES, LISTENS], False),
        ([CALL, LISTENS], True),
        ([LISTENS, CALL], False),
    ],
)
def test_a_run_is_spoilt_whose_call_was_answered_on_another_stream(
    checks: list[dict[str, Any]], is_spoilt: bool
) -> None:
    assert conformance.is_spoilt("sse-retry", checks) is is_spoilt
    assert not conformance.is_spoilt("tools_call", checks)
