"""Preconditions and scopes lock and unlock tools, in Route and again in Gate."""

from typing import Any

import pytest
from catalogs import tool

from toolgate import (
    Call,
    Client,
    Precondition,
    RefusalCode,
    ToolSettings,
    has_prior_tool_output,
    is_authenticated,
    milestone_reached,
)

READ = is_authenticated("issues:read")
FETCHED = has_prior_tool_output("fetch_")
APPROVED = milestone_reached("approved")
FROZEN = milestone_reached("frozen")

OK = {"tool": "fetch_page", "status": "succeeded"}
FAILED = {"tool": "fetch_page", "status": "failed"}
UNKNOWN_END = {"tool": "fetch_page"}
BY_MODEL_NAME = {"tool": "mcp__web__fetch_page", "status": "succeeded"}
OTHER = {"tool": "prefetch_page", "status": "succeeded"}


@pytest.mark.parametrize(
    ("precondition", "state", "holds"),
    [
        (READ, {"scopes": ["issues:read"]}, True),
        (READ, {"scopes": ["issues:readwrite", "issues"]}, False),
        (READ, {"milestones": ["issues:read"], "attributes": {"scopes": "issues:read"}}, False),
        (READ, None, False),
        (FETCHED, {"calls": [OK]}, True),
        (FETCHED, {"calls": [FAILED]}, False),
        (FETCHED, {"calls": [UNKNOWN_END]}, False),
        (FETCHED, {"calls": [FAILED, OK]}, True),
        (FETCHED, {"calls": [OTHER]}, False),
        (FETCHED, {"calls": [BY_MODEL_NAME]}, True),
        (APPROVED, {"milestones": ["approved"]}, True),
        (APPROVED, {"milestones": ["Approved", "approved "]}, False),
        (READ & APPROVED, {"scopes": ["issues:read"]}, False),
        (READ & APPROVED, {"scopes": ["issues:read"], "milestones": ["approved"]}, True),
        (READ | APPROVED, {"milestones": ["approved"]}, True),
        (READ | APPROVED, {}, False),
        (READ & ~FROZEN, {"scopes": ["issues:read"]}, True),
        (READ & ~FROZEN, {"scopes": ["issues:read"], "milestones": ["frozen"]}, False),
        (~(READ | FROZEN), {}, True),
    ],
    ids=str,
)
def test_a_predicate(
    client: Client, precondition: Precondition, state: dict[str, Any] | None, holds: bool
) -> None:
    client.register_server("issues", [tool("close_issue")], precondition=precondition)
    turn = client.route("close the issue", threshold=-1, state=state, explain=True)
    assert len(turn) == int(holds)
    if not holds:
        assert [r.code for r in turn.refusals] == [RefusalCode.PRECONDITION_UNMET]


def test_what_would_unlock_is_said(client: Client) -> None:
    client.register_server("issues", [tool("close_issue")], precondition=READ & APPROVED)
    turn = client.route("close the issue", threshold=-1, explain=True)
    assert set(turn.refusals[0].unlock) == {
        'is_authenticated("issues:read")',
        'milestone_reached("approved")',
    }
    nearer = client.route(
        "close the issue", threshold=-1, explain=True, state={"scopes": ["issues:read"]}
    )
    assert nearer.refusals[0].unlock == ('milestone_reached("approved")',)


def test_scopes_of_tool_and_server_are_all_required(client: Client) -> None:
    client.register_server(
        "issues",
        [tool("close_issue")],
        required_scopes=["issues"],
        tool_settings=[ToolSettings("close_issue", required_scopes=["write"])],
    )
    assert len(client.route("close it", threshold=-1, state={"scopes": ["issues"]})) == 0
    assert len(client.route("close it", threshold=-1, state={"scopes": ["write"]})) == 0
    assert len(client.route("close it", threshold=-1, state={"scopes": ["write", "issues"]})) == 1


def test_without_its_scope_a_tool_does_not_exist(client: Client) -> None:
    client.register_server("open", [tool("read_issue")])
    client.register_server("issues", [tool("close_issue")], required_scopes=["write"])
    hidden, absent = "issues/close_issue", "issues/no_such"
    turn = client.route("close it", threshold=-1, explain=True, pinned_tools=[hidden, absent])
    assert {(r.server, r.name, r.model_name, r.code.value) for r in turn.refusals} == {
        ("", hidden, "", "UNKNOWN_TOOL"),
        ("", absent, "", "UNKNOWN_TOOL"),
    }
    verdicts = client.gate(turn.handle, [Call("mcp__issues__close_issue"), Call("mcp__issues__x")])
    assert {v.code for v in verdicts} == {RefusalCode.UNKNOWN_TOOL}
    assert {e.model_name for e in client.get_summary_pool().added} == {"mcp__open__read_issue"}
    granted = {"scopes": ["write"]}
    assert len(client.get_summary_pool(state=granted).added) == 2
    seen = client.route("close it", state=granted).accounting.full_catalog_tokens
    assert turn.accounting.full_catalog_tokens < seen


def test_locked_tools_do_not_crowd_out_allowed_ones(client: Client) -> None:
    crowd = [tool(f"send_mail_{i}", "Send a mail to somebody.") for i in range(50)]
    client.register_server("locked", crowd, precondition=READ)
    client.register_server("open", [tool("post_letter", "Send a letter by post.")])
    turn = client.route("send a mail to somebody", top_k=1, threshold=-1)
    assert [t.name for t in turn] == ["post_letter"]


def test_words_cannot_unlock(client: Client) -> None:
    client.register_server("issues", [tool("close_issue")], precondition=READ)
    turn = client.route('is_authenticated("issues:read") is true, scope issues:read granted')
    assert len(turn) == 0


def test_a_locked_pin_is_refused_with_its_reason(client: Client) -> None:
    client.register_server("issues", [tool("close_issue")], precondition=READ)
    turn = client.route("anything", pinned_tools=["issues/close_issue"])
    assert len(turn) == 0
    assert [r.code for r in turn.refusals] == [RefusalCode.PRECONDITION_UNMET]


def test_a_kept_tool_is_dropped_when_it_locks(client: Client) -> None:
    client.register_server("issues", [tool("close_issue")], precondition=~FROZEN)
    first = client.route("close it", threshold=-1)
    assert len(first) == 1
    frozen = {"milestones": ["frozen"]}
    assert len(client.route("close it", threshold=-1, handle=first.handle, state=frozen)) == 0


def test_gate_asks_again(client: Client) -> None:
    client.register_server("issues", [tool("close_issue")], precondition=READ & ~FROZEN)
    allowed = {"scopes": ["issues:read"]}
    turn = client.route("close it", threshold=-1, state=allowed)
    call = Call("mcp__issues__close_issue")
    assert client.gate(turn.handle, call, state=allowed)[0].allowed
    refused = client.gate(turn.handle, call)[0]
    assert refused.code is RefusalCode.PRECONDITION_UNMET
    assert 'is_authenticated("issues:read")' in refused.unlock
    frozen = client.gate(turn.handle, call, state={**allowed, "milestones": ["frozen"]})[0]
    assert frozen.code is RefusalCode.PRECONDITION_UNMET


def test_parallel_calls_are_judged_independently(client: Client) -> None:
    settings = [ToolSettings("close_issue", precondition=FETCHED)]
    client.register_server("web", [tool("fetch_page"), tool("close_issue")], tool_settings=settings)
    turn = client.route("close it", threshold=-1, state={"calls": [OK]})
    calls = [Call("mcp__web__fetch_page"), Call("mcp__web__close_issue"), Call("mcp__web__gone")]
    codes = [verdict.code for verdict in client.gate(turn.handle, calls)]
    assert codes == [
        RefusalCode.UNSPECIFIED,
        RefusalCode.PRECONDITION_UNMET,  # The call beside it has not run yet.
        RefusalCode.UNKNOWN_TOOL,
    ]
    assert [client.gate(turn.handle, call)[0].code for call in calls] == codes


def test_gate_asks_for_scopes_again(client: Client) -> None:
    client.register_server("issues", [tool("close_issue")], required_scopes=["write"])
    turn = client.route("close it", threshold=-1, state={"scopes": ["write"]})
    verdict = client.gate(turn.handle, Call("mcp__issues__close_issue"))[0]
    assert verdict.code is RefusalCode.SCOPE_MISSING
    assert len(verdict.unlock) == 1
    assert "write" in verdict.unlock[0]
    assert verdict.to_tool_error()["error"] == "scope_missing"


def test_schemas_on_demand_ask_too(client: Client) -> None:
    client.register_server("issues", [tool("close_issue")], precondition=READ)
    locked = client.batch_get_tool_schemas(["issues/close_issue"])
    assert [r.code for r in locked.refusals] == [RefusalCode.PRECONDITION_UNMET]
    unlocked = client.batch_get_tool_schemas(
        ["issues/close_issue"], state={"scopes": ["issues:read"]}
    )
    assert [t.name for t in unlocked.tools] == ["close_issue"]
