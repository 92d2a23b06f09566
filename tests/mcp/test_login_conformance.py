"""The OAuth scenarios of the official conformance suite, for the gateway's client."""

from collections import Counter

import conformance
import pytest

OAUTH = "auth/"

# Of each revision: scenarios that it requires, and their checks that pass.
REQUIRED = {"2025-11-25": (14, 252), "2026-07-28": (25, 362)}

# Of an extension, which both revisions play beside them.
EXTENSION = "auth/client-credentials-basic"

# Of a revision before those with requirements.
OLDER = ("auth/2025-03-26-oauth-metadata-backcompat", "2025-03-26")


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
