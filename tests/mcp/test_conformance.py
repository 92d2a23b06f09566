"""The official conformance suite: the fixture, the gateway before it, and the gateway's client."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import conformance
import pytest
from fixture_gateway import Gateway, gateway
from fixture_process import fixture_url

# Checks that pass: those a revision requires, and those that the suite runs beside them.
EXPECTED = {"2025-11-25": (70, 13), "2026-07-28": (121, 76)}
# By the era of the fixture. Hosts of 2026-07-28 before a fixture of 2025-11-25 have a test of their
# own.
THROUGH_GATEWAY = [("modern", "2025-11-25"), ("modern", "2026-07-28"), ("legacy", "2025-11-25")]

# Required of 2026-07-28, and out of reach before a fixture of 2025-11-25, which gives its questions
# no names. The gateway calls them question-1 and so on; both checks know the question as user_name.
NAMES_OF_QUESTIONS = {
    # It looks for the key user_name among the questions.
    "input-required-result-basic-elicitation: sep-2322-elicitation-incomplete",
    # It answers under user_name, beside keys that nobody asked for, so the question stays open.
    "input-required-result-ignore-extra-params: sep-2322-ignore-unexpected-params",
}

# Not required, and out of reach there: the extension of tasks is younger than 2025-11-25, so the
# server behind has none, and the gateway offers none in its name.
TASKS = {
    "tasks-capability-negotiation: tasks-extension-advertised",
    "tasks-capability-negotiation: tasks-per-request-meta-opt-in",
    "tasks-dispatch-and-envelope: sep-2663-durable-create-strong-consistency",
    "tasks-dispatch-and-envelope: tasks-result-type-complete-on-non-task-responses",
    "tasks-dispatch-and-envelope: tasks-server-directed-creation-no-hint",
    "tasks-lifecycle: sep-2663-cancel-ack-empty-result",
    "tasks-lifecycle: sep-2663-result-type-task-on-create",
    "tasks-lifecycle: sep-2663-tasks-get-status-completed",
    "tasks-lifecycle: sep-2663-tasks-get-status-failed",
    "tasks-lifecycle: sep-2663-tasks-get-status-working",
    "tasks-lifecycle: sep-2663-tool-error-uses-completed-status",
    "tasks-lifecycle: tasks-cancel-terminal-idempotent-ack",
    "tasks-mrtr-composition: sep-2663-mrtr-synchronous-before-task-creation",
    "tasks-mrtr-input: sep-2663-tasks-get-status-input-required",
    "tasks-mrtr-input: tasks-mrtr-partial-fulfillment",
    "tasks-mrtr-input: tasks-mrtr-tasks-update-resumes",
    "tasks-request-headers: sep-2663-routing-headers-accepted-on-tasks-get",
    "tasks-request-headers: sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get",
    "tasks-request-state-removal: tasks-request-state-removal-setup",
    "tasks-wire-fields: tasks-no-early-ttl-expiry",
    "tasks-wire-fields: tasks-no-related-task-meta-on-inlined-result",
    "tasks-wire-fields: tasks-wire-field-renames",
}

# Required checks of 2026-07-28 that pass before a fixture of 2025-11-25.
BEFORE_AN_OLDER_SERVER = 118

# Of the client, those of OAuth among them.
OF_THE_CLIENT = {"2025-11-25": (263, 18), "2026-07-28": (414, 16)}


def names(failed: list[str]) -> set[str]:
    """Scenario and check of each, without what the suite said."""
    return {": ".join(line.split(": ", 2)[:2]) for line in failed}


@pytest.fixture(scope="module")
def direct() -> Iterator[str]:
    with fixture_url() as url:
        yield url


@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_every_required_check_passes(revision: str, direct: str) -> None:
    outcome = conformance.run(direct, revision)
    assert outcome.failed == [], outcome
    assert (outcome.passed, outcome.unscored_passed) == EXPECTED[revision], outcome


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    """How the gateway reaches the fixture."""
    return str(request.param)


@contextmanager
def gateway_before(folder: Path, transport: str, *arguments: str) -> Iterator[Gateway]:
    """A gateway before the fixture as its process, or behind a URL."""
    with ExitStack() as stack:
        over_http = transport == "http"
        url = stack.enter_context(fixture_url(*arguments)) if over_http else None
        yield stack.enter_context(gateway(folder, *arguments, url=url))


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


def test_newer_hosts_before_an_older_server_miss_what_it_can_not_give(
    transport: str, tmp_path: Path
) -> None:
    with gateway_before(tmp_path, transport, "--legacy") as running:
        outcome = conformance.run(running.url, "2026-07-28")
    assert names(outcome.failed) == NAMES_OF_QUESTIONS, outcome
    assert outcome.passed == BEFORE_AN_OLDER_SERVER, outcome
    assert names(outcome.unscored_failed) <= TASKS, outcome


@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_the_client_of_upstreams_passes_its_scenarios(revision: str) -> None:
    outcome = conformance.run_client(revision)
    assert outcome.failed == [], outcome
    assert outcome.unscored_failed == [], outcome
    assert (outcome.passed, outcome.unscored_passed) == OF_THE_CLIENT[revision], outcome
    assert set(conformance.required(revision, "client")) <= outcome.statuses.keys()


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
