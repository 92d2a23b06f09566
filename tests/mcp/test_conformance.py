"""The official conformance suite: the fixture, the gateway before it, and the gateway's client."""

from collections.abc import Iterator
from pathlib import Path

import conformance
import pytest
from fixture_process import fixture_url
from gateway_process import gateway_url

# Checks that pass: those a revision requires, and those that the suite runs beside them.
EXPECTED = {"2025-11-25": (70, 13), "2026-07-28": (121, 44)}
THROUGH_GATEWAY = {"2025-11-25": (68, 11), "2026-07-28": (121, 44)}

# Of the client, in the scenarios that are not about OAuth.
OF_THE_CLIENT = {"2025-11-25": (6, 9), "2026-07-28": (52, 9)}

# Checks that fail through the gateway: single resources are not followed.
FAILED_THROUGH_GATEWAY = {"2025-11-25": ["resources-subscribe", "resources-unsubscribe"]}


@pytest.fixture(scope="module")
def direct() -> Iterator[str]:
    with fixture_url() as url:
        yield url


@pytest.fixture(scope="module")
def through_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    with gateway_url(folder) as url:
        yield url


@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_every_required_check_passes(revision: str, direct: str) -> None:
    outcome = conformance.run(direct, revision)
    assert outcome.failed == [], outcome
    assert (outcome.passed, outcome.unscored_passed) == EXPECTED[revision], outcome


@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_the_gateway_passes_what_its_upstream_does(revision: str, through_gateway: str) -> None:
    outcome = conformance.run(through_gateway, revision)
    scenarios = [check.split(":", 1)[0] for check in outcome.failed]
    assert scenarios == FAILED_THROUGH_GATEWAY.get(revision, []), outcome
    figures = (outcome.passed, outcome.unscored_passed)
    assert figures == THROUGH_GATEWAY[revision], outcome


@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_the_client_of_upstreams_passes_its_scenarios(revision: str) -> None:
    outcome = conformance.run_client(revision)
    assert outcome.failed == [], outcome
    assert (outcome.passed, outcome.unscored_passed) == OF_THE_CLIENT[revision], outcome
