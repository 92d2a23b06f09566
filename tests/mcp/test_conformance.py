"""The official conformance suite: the fixture, and the gateway before it."""

from collections.abc import Iterator
from pathlib import Path

import conformance
import pytest
from fixture_gateway import TRANSPORTS, gateway_before
from fixture_process import fixture_url

# Checks that pass: those a revision requires, and those that the suite runs beside them.
EXPECTED = {"2025-11-25": (70, 13), "2026-07-28": (121, 76)}
# By the era of the fixture. Hosts of 2026-07-28 before a fixture of 2025-11-25 have a test of their
# own, in test_older_server.py.
THROUGH_GATEWAY = [("modern", "2025-11-25"), ("modern", "2026-07-28"), ("legacy", "2025-11-25")]


@pytest.fixture(scope="module")
def direct() -> Iterator[str]:
    with fixture_url() as url:
        yield url


@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_every_required_check_passes(revision: str, direct: str) -> None:
    outcome = conformance.run(direct, revision)
    assert outcome.failed == [], outcome
    assert (outcome.passed, outcome.unscored_passed) == EXPECTED[revision], outcome


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("era", "revision"), THROUGH_GATEWAY)
def test_the_gateway_passes_what_its_upstream_does(
    era: str, revision: str, transport: str, tmp_path: Path
) -> None:
    arguments = ["--legacy"] if era == "legacy" else []
    with gateway_before(tmp_path, transport, *arguments) as running:
        outcome = conformance.run(running.url, revision)
    assert outcome.failed == [], outcome
    assert (outcome.passed, outcome.unscored_passed) == EXPECTED[revision], outcome
    assert outcome.unscored_failed == [], outcome
