"""Policies through the wire and through the command line."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
from catalogs import NOTES, WEATHER, invalid, refused, tool
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import AsyncClient, Call, Client, RefusalCode, RuleCoverage, cel

DOCUMENT = """
# Nothing is deleted without a plan.
rules:
  - name: plan-first
    match: {tools: ["delete_*"]}
    precondition: {all: [{milestone_reached: planned}, {cel: "'notes:write' in state.scopes"}]}
  - name: staff-only
    match: {servers: [weather], tools: ["*alerts"]}
    required_scopes: [staff]
  - {name: retired, match: {tools: [find_notes]}, denied: true}
"""
PLANNED = {"milestones": ["planned"], "scopes": ["notes:write"]}


def names(client: Client, **arguments: Any) -> set[str]:
    return {t.name for t in client.route("notes and weather", threshold=-1, **arguments)}


def test_a_policy_decides_in_every_answer(notes: Client) -> None:
    everything = notes.route("notes and weather", threshold=-1)
    assert len(everything) == 5
    stored = notes.set_policy(DOCUMENT)
    assert stored.revision == notes.route("x").catalog_revision
    assert names(notes) == {"create_note", "get_forecast"}
    assert names(notes, state=PLANNED) == {"create_note", "get_forecast", "delete_note"}
    calls = [Call("mcp__notes__delete_note"), Call("mcp__notes__find_notes"), Call("mcp__notes__x")]
    locked, denied, unknown = notes.gate(everything.handle, calls)
    assert (locked.code, denied.code) == (RefusalCode.PRECONDITION_UNMET, RefusalCode.UNKNOWN_TOOL)
    assert denied.message == unknown.message.replace("mcp__notes__x", "mcp__notes__find_notes")
    assert "find_notes" not in str(denied.available_tools)
    pool = {entry.model_name for entry in notes.get_summary_pool().added}
    assert pool == {f"mcp__{n}" for n in ("notes__create_note", "notes__delete_note")} | {
        "mcp__weather__get_forecast"
    }
    found = notes.batch_get_tool_schemas(["notes/find_notes", "notes/no_such"])
    assert [r.code for r in found.refusals] == [RefusalCode.UNKNOWN_TOOL] * 2
    assert len(list(notes.list_tools())) == 5, "the operator's listing shows all"


def test_it_is_read_back_byte_for_byte(notes: Client) -> None:
    assert notes.get_policy().etag == ""
    text = DOCUMENT + "# é\r\n"
    stored = notes.set_policy(text)
    assert notes.get_policy() == stored
    assert stored.document == text
    assert notes.set_policy(text) == stored, "the same again changes nothing"


def test_etags(notes: Client) -> None:
    first = notes.set_policy("{}")
    second = notes.set_policy("rules: []", etag=first.etag)
    assert second.etag != first.etag
    with refused(grpc.StatusCode.ABORTED, "ETAG_MISMATCH") as caught:
        notes.set_policy("{}", etag=first.etag)
    assert caught.metadata["etag"] == second.etag
    assert notes.get_policy().document == "rules: []"


def test_a_policy_may_come_before_its_servers(client: Client) -> None:
    client.set_policy("rules: [{name: none, denied: true}]")
    assert names(client) == set()
    client.register_server("notes", NOTES)
    assert names(client) == set()
    client.set_policy("{}")
    assert len(names(client)) == 3


def test_policies_of_tenants_do_not_meet(server: ToolgateProcess, tenant: str) -> None:
    with server.client(f"{tenant}-a") as a, server.client(f"{tenant}-b") as b:
        a.register_server("notes", NOTES)
        b.register_server("notes", NOTES)
        a.set_policy("rules: [{name: none, denied: true}]")
        assert (names(a), len(names(b))) == (set(), 3)
        assert b.get_policy().document == ""
    with server.client(f"{tenant}-c") as c, refused(grpc.StatusCode.NOT_FOUND, "TENANT_NOT_FOUND"):
        c.get_policy()


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("", "is missing"),
        ("rules: [", "line 1"),
        ("rules: 3", "line 1"),
        ("rules:\n  - name: a\n    deny: true", "line 3"),
        (
            "rules:\n  - name: a\n    precondition:\n      cel: 'x == 1'",
            "rules[0].precondition: line 4, column 12: at line 1, column 1 of the expression:"
            " unknown variable `x`",
        ),
        ("rules: [{name: a, precondition: {cel: 'now'}}]", "must be a bool"),
        ("rules: [{name: a}, {name: a}]", "rules[1].name"),
        ("rules: [{name: a, precondition: {cel: 'tool.name.matches(\"(\")'}}]", "pattern"),
        ("# " + "x" * (64 << 10), "at most 65536"),
        ("[" * 5000, ""),
        ("a: &a [*a]", ""),
    ],
    ids=lambda text: text[:30],
)
def test_mistakes_name_their_place(notes: Client, document: str, problem: str) -> None:
    with invalid("INVALID_FIELD", field="document") as caught:
        notes.set_policy(document)
    assert problem in caught.field_violations[0].description
    if document:
        with invalid("INVALID_FIELD", field="document"):
            list(notes.check_policy(document))
    assert notes.get_policy().document == ""


def test_a_check_says_which_rule_and_what_unlocks(notes: Client) -> None:
    verdicts = {v.name: v for v in notes.check_policy(DOCUMENT, page_size=2)}
    assert list(verdicts) == sorted(t["name"] for t in NOTES) + sorted(t["name"] for t in WEATHER)
    assert verdicts["create_note"].allowed
    locked = verdicts["delete_note"]
    assert (locked.code, locked.rule) == (RefusalCode.PRECONDITION_UNMET, "plan-first")
    assert locked.unlock == ('milestone_reached("planned")', "'notes:write' in state.scopes")
    hidden = verdicts["get_rain_alerts"]
    assert (hidden.code, hidden.rule) == (RefusalCode.SCOPE_MISSING, "staff-only")
    assert hidden.unlock == ('scope "staff"',)
    denied = verdicts["find_notes"]
    assert (denied.code, denied.rule, denied.unlock) == (RefusalCode.UNKNOWN_TOOL, "retired", ())
    assert all(v.allowed for v in notes.check_policy()), "nothing was set by that"
    with_state = {v.name: v for v in notes.check_policy(DOCUMENT, state=PLANNED)}
    assert with_state["delete_note"].allowed


def test_rules_say_how_many_tools_they_match(
    server: ToolgateProcess, notes: Client, tenant: str
) -> None:
    misspelt = DOCUMENT + "  - {name: misspelt, match: {tools: [remove_note]}, denied: true}\n"
    expected = {"plan-first": 1, "staff-only": 1, "retired": 1, "misspelt": 0}

    def holds(rules: tuple[RuleCoverage, ...]) -> None:
        assert {r.rule: r.tools for r in rules} == expected
        assert ["matches no tool" in r.hint for r in rules] == [False, False, False, True]

    check = notes.check_policy(misspelt, page_size=2)
    holds(check.rules())
    assert len(list(check)) == 5
    holds(notes.set_policy(misspelt).rules)
    assert notes.get_policy().rules == ()

    async def ask() -> None:
        async with AsyncClient(server.target, tenant=tenant) as client:
            stored = client.check_policy(page_size=2)
            assert len([verdict async for verdict in stored]) == 5
            holds(await stored.rules())
            holds((await client.set_policy(misspelt)).rules)

    asyncio.run(ask())


def test_conditions_see_the_whole_state(client: Client) -> None:
    condition = (
        "state.attributes.plan == 'pro' && state.attributes.seats >= 2 &&"
        " state.calls.exists(c, c.tool == 'draft' && c.status == 'succeeded' && c.turn > 0) &&"
        " tool.annotations.readOnlyHint && 'beta' in tool.tags && principal.id == ''"
        " && now > timestamp('2026-01-01T00:00:00Z')"
    )
    annotated = tool("send", annotations={"readOnlyHint": True}, _meta={"tags": ["beta"]})
    client.register_server("mail", [annotated, tool("other")], precondition=cel(condition))
    state = {
        "attributes": {"plan": "pro", "seats": 2},
        "calls": [{"tool": "draft", "status": "succeeded", "turn": 1}],
    }
    assert names(client, state=state) == {"send"}
    assert names(client, state={**state, "attributes": {"plan": "pro", "seats": 1}}) == set()
    without_plan = {"calls": state["calls"]}
    turn = client.route("send", threshold=-1, explain=True, state=without_plan)
    unlock = {r.name: r.unlock[0] for r in turn.refusals}
    assert 'there is no key "plan"' in unlock["send"]


def test_defaults_and_caps(notes: Client) -> None:
    notes.set_policy("defaults: {threshold: -1, max_per_server: 1}")
    turn = notes.route("notes and weather")
    assert sorted(t.server for t in turn) == ["notes", "weather"]
    refused = notes.route("notes and weather", explain=True).refusals
    assert {r.code for r in refused} == {RefusalCode.BEYOND_CAP}


def run(binary: Path, *arguments: str, server: ToolgateProcess, tenant: str) -> Any:
    command: list[str | Path] = [binary, "policy", *arguments]
    if arguments[0] != "schema":
        command += ["--endpoint", f"http://{server.target}", "--tenant", tenant]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)


def test_the_command_line(
    binary: Path, server: ToolgateProcess, notes: Client, tenant: str, tmp_path: Path
) -> None:
    def policy(*arguments: str) -> Any:
        return run(binary, *arguments, server=server, tenant=tenant)

    file, state = tmp_path / "policy.yaml", tmp_path / "state.json"
    file.write_text(DOCUMENT)
    state.write_text(json.dumps(PLANNED))
    assert policy("get").stdout == ""
    tried = policy("check", str(file))
    rows = {row.split()[0]: row.split()[1:3] for row in tried.stdout.splitlines() if "/" in row}
    assert rows["notes/delete_note"] == ["locked", "plan-first"]
    assert rows["notes/find_notes"] == ["denied", "retired"]
    assert rows["weather/get_rain_alerts"] == ["hidden", "staff-only"]
    assert "2 of 5 tools allowed" in tried.stdout
    assert "is set" in policy("set", str(file)).stdout
    assert policy("get").stdout == DOCUMENT
    stored = json.loads(policy("get", "--json").stdout)
    assert stored["etag"] == notes.get_policy().etag
    checked = json.loads(policy("check", "--state", str(state), "--json").stdout)
    allowed = {v["name"] for v in checked["verdicts"] if v["allowed"]}
    assert allowed == {"create_note", "delete_note", "get_forecast"}
    stale = policy("set", str(file), "--etag", "p0")
    assert (stale.returncode, "ETAG_MISMATCH" in stale.stderr) == (1, True)
    file.write_text("rules: [{name: a, precondition: {cel: 'x'}}]")
    wrong = policy("set", str(file))
    assert wrong.returncode == 1
    assert "unknown variable `x`" in wrong.stderr


def test_the_schema_is_printed(binary: Path, server: ToolgateProcess) -> None:
    printed = run(binary, "schema", server=server, tenant="")
    assert json.loads(printed.stdout)["title"] == "Toolgate policy"
