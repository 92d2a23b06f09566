"""The official conformance suite: the fixture by itself, and through the gateway."""

import os
from collections.abc import Iterator
from pathlib import Path

import conformance
import pytest
from fixture_process import BINARY, fixture_url
from gateway_process import GatewayProcess

# Checks that pass: those a revision requires, and those that the suite runs beside them.
DIRECT = {"2025-11-25": (70, 13), "2026-07-28": (121, 44)}
THROUGH = {"2025-11-25": (54, 11), "2026-07-28": (115, 38)}
# Scenarios of which the gateway fails checks: questions of servers to their hosts, log levels, and
# subscriptions do not pass through it yet.
KNOWN_TO_FAIL = {
    "2025-11-25": {
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "logging-set-level",
        "resources-subscribe",
        "resources-unsubscribe",
        "tools-call-elicitation",
        "tools-call-sampling",
        "tools-call-with-logging",
    },
    "2026-07-28": {"input-required-result-capability-check", "server-stateless"},
}


@pytest.fixture(scope="module")
def direct_url() -> Iterator[str]:
    with fixture_url() as url:
        yield url


@pytest.fixture(scope="module")
def gateway_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway whose upstream `fixture` is the fixture, over stdio."""
    binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
    config = f'[server.fixture]\ncommand = ["{BINARY}", "--stdio"]\n'
    gateway = GatewayProcess(binary, tmp_path_factory.mktemp("gateway"), config).start()
    yield f"{gateway.url}/mcp/s/fixture"
    assert gateway.stop() == 0


@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_the_fixture_passes_every_required_check(direct_url: str, revision: str) -> None:
    outcome = conformance.run(direct_url, revision)
    assert outcome.failed == [], outcome
    assert (outcome.passed, outcome.unscored_passed) == DIRECT[revision], outcome


@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_the_gateway_fails_only_in_known_scenarios(gateway_url: str, revision: str) -> None:
    outcome = conformance.run(gateway_url, revision)
    failed = {check.split(":")[0] for check in outcome.failed}
    assert failed == KNOWN_TO_FAIL[revision], outcome
    assert (outcome.passed, outcome.unscored_passed) == THROUGH[revision], outcome
