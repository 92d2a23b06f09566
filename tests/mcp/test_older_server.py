"""The official conformance suite through the gateway: newer hosts before an older server."""

from concurrent.futures import ThreadPoolExecutor

import conformance
import pytest
from conformance import Outcome
from fixture_gateway import TRANSPORTS, gateway_before

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


def names(failed: list[str]) -> set[str]:
    """Scenario and check of each, without what the suite said."""
    return {": ".join(line.split(": ", 2)[:2]) for line in failed}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Runs the suite for all transports at once: it waits long for tasks that never come."""

    # Not by the threads: the factory makes its own folder with the first.
    folders = {transport: tmp_path_factory.mktemp(transport) for transport in TRANSPORTS}

    def outcome(transport: str) -> Outcome:
        with gateway_before(folders[transport], transport, "--legacy") as running:
            return conformance.run(running.url, "2026-07-28")

    with ThreadPoolExecutor(len(TRANSPORTS)) as pool:
        return dict(zip(TRANSPORTS, pool.map(outcome, TRANSPORTS), strict=True))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_newer_hosts_before_an_older_server_miss_what_it_can_not_give(
    transport: str, outcomes: dict[str, Outcome]
) -> None:
    outcome = outcomes[transport]
    assert names(outcome.failed) == NAMES_OF_QUESTIONS, outcome
    assert outcome.passed == BEFORE_AN_OLDER_SERVER, outcome
    assert names(outcome.unscored_failed) <= TASKS, outcome
