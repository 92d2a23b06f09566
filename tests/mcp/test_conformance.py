"""The official conformance suite: the fixture by itself, and through the gateway."""

import os
from collections.abc import Iterator

import conformance
import pytest
from fixture_process import fixture_url

# Checks that pass: those a revision requires, and those that the suite runs beside them.
EXPECTED = {"2025-11-25": (70, 13), "2026-07-28": (121, 44)}


@pytest.fixture(scope="module")
def direct_url() -> Iterator[str]:
    with fixture_url() as url:
        yield url


@pytest.fixture(scope="module")
def gateway_url() -> str:
    """A gateway whose upstream `fixture` is the fixture; the variable holds its address."""
    address = os.environ.get("TOOLGATE_GATEWAY_READY")
    if not address:
        pytest.skip("TOOLGATE_GATEWAY_READY names no gateway, such as http://127.0.0.1:7080")
    return f"{address}/mcp/s/fixture"


@pytest.mark.parametrize("revision", conformance.REVISIONS)
@pytest.mark.parametrize("way", ["direct_url", "gateway_url"])
def test_every_required_check_passes(
    way: str, revision: str, request: pytest.FixtureRequest
) -> None:
    outcome = conformance.run(request.getfixturevalue(way), revision)
    assert outcome.failed == [], outcome
    assert (outcome.passed, outcome.unscored_passed) == EXPECTED[revision], outcome
