"""The official conformance suite for the gateway's client, the scenarios of OAuth among them."""

from collections import Counter
from typing import Any

import conformance
import pytest

# Of the client, those of OAuth among them.
OF_THE_CLIENT = {"2025-11-25": (263, 18), "2026-07-28": (414, 16)}

OAUTH = "auth/"

# Of OAuth in each revision: scenarios that it requires, and their checks that pass.
REQUIRED = {"2025-11-25": (14, 252), "2026-07-28": (25, 362)}

# Of an extension, which both revisions play beside them.
EXTENSION = "auth/client-credentials-basic"

# Of a revision before those with requirements.
OLDER = ("auth/2025-03-26-oauth-metadata-backcompat", "2025-03-26")


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


@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_the_client_logs_in_as_each_revision_says(revision: str) -> None:
    outcome = conformance.run_client(revision)
    required = [name for name in conformance.required(revision, "client") if OAUTH in name]
    statuses = {name: outcome.statuses[name] for name in [*required, EXTENSION]}
    bad = {name: found for name, found in statuses.items() if not _is_good(found)}
    assert bad == {}
    passed = sum(outcome.statuses[name]["SUCCESS"] for name in required)
    assert (len(required), passed) == REQUIRED[revision]


def test_the_client_logs_in_as_an_older_revision_says() -> None:
    checks = conformance.play(*OLDER)
    assert _is_good(Counter(check["status"] for check in checks)), checks


def _is_good(statuses: Counter[str]) -> bool:
    return statuses["SUCCESS"] > 0 and not (statuses["FAILURE"] or statuses["WARNING"])
