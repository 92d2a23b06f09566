"""The usage ledger: what is counted, what survives, and what `toolgate usage` says of it."""

import json
import os
import sqlite3
import subprocess
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from catalogs import NOTES, WEATHER, invalid, refused
from conftest import StartServer
from toolgate_process import ToolgateProcess
from waiting import PATIENCE, wait_until

from toolgate import Call, Client, DeferralVerdict, RefusalCode, SearchOutcomes
from toolgate._gen.v1 import (
    router_pb2,
    router_pb2_grpc,
    state_pb2,
    usage_pb2,
    usage_pb2_grpc,
)


def midnight() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.fixture
def amid_a_day() -> None:
    """Lets the last minutes of a day pass, so that the test does not run into the next one."""
    left = midnight() + timedelta(days=1) - datetime.now(UTC)
    if left < timedelta(minutes=2):
        time.sleep(left.total_seconds())


def test_turns_and_verdicts_are_counted(notes: Client) -> None:
    first = notes.route("write down a note", threshold=-1, top_k=2)
    second = notes.route("write down a note", threshold=-1, top_k=2, handle=first.handle)
    notes.gate(
        second.handle,
        [
            Call("mcp__notes__create_note", {"title": "x"}),
            Call("mcp__notes__create_note", {"oops": 1}),
            Call("nothing", {}),
            Call("nothing", {}),
        ],
    )
    before = datetime.now(UTC)
    usage = notes.get_usage()
    total, turns = usage.total, (first.accounting, second.accounting)
    assert total.route_calls == 2
    assert total.full_catalog_tokens == sum(turn.full_catalog_tokens for turn in turns)
    assert total.phase1_tokens == sum(turn.phase1_tokens for turn in turns)
    assert total.phase2_tokens == sum(turn.phase2_tokens for turn in turns)
    assert total.phase2_new_tokens == first.accounting.phase2_tokens
    assert total.saved_gross_tokens == total.full_catalog_tokens - total.phase2_tokens
    assert total.saved_net_tokens == sum(turn.saved_tokens for turn in turns)
    assert (total.allowed_calls, total.refused_calls) == (1, 3)
    assert list(usage.refusals.items()) == [
        (RefusalCode.UNKNOWN_TOOL, 2),
        (RefusalCode.ARGUMENTS_INVALID, 1),
    ]
    assert usage.buckets == ()
    assert usage.start is None
    assert usage.end > before


def test_buckets_add_up_to_the_total(notes: Client) -> None:
    notes.route("hello")
    for granularity in ("hour", "day"):
        usage = notes.get_usage(granularity=granularity)
        assert sum(bucket.amounts.route_calls for bucket in usage.buckets) == 1
        start = usage.buckets[0].start
        assert (start.minute, start.second) == (0, 0)
        assert granularity == "hour" or start.hour == 0


def test_a_span_counts_its_hours_only(notes: Client) -> None:
    before = datetime.now(UTC)
    notes.route("hello")
    now = datetime.now(UTC)
    assert notes.get_usage(start=before).total.route_calls == 1, "brought forward to the full hour"
    assert notes.get_usage(end=now).total.route_calls == 1, "put off to the full hour"
    assert notes.get_usage(end=now - timedelta(hours=2)).total.route_calls == 0
    later = notes.get_usage(start=now + timedelta(hours=1), end=now + timedelta(hours=2))
    assert later.total.route_calls == 0
    assert later.deferral is DeferralVerdict.NO_CALLS


def test_bad_spans_are_refused_in_words(notes: Client, server: ToolgateProcess) -> None:
    now = datetime.now(UTC)
    with invalid(field="start_time"):
        notes.get_usage(start=now, end=now)
    with invalid(field="start_time"):
        notes.get_usage(start=now + timedelta(hours=1))
    with grpc.insecure_channel(server.target) as channel:
        stub = usage_pb2_grpc.UsageServiceStub(channel)
        for seconds, nanos in ((-1, 0), (253_402_300_800, 0), (2**63 - 1, 0), (0, -1), (0, 10**9)):
            request = usage_pb2.GetUsageRequest()
            request.end_time.seconds, request.end_time.nanos = seconds, nanos
            with invalid(field="end_time"):
                stub.GetUsage(request, timeout=PATIENCE)
        with invalid(field="granularity"):
            stub.GetUsage(usage_pb2.GetUsageRequest(granularity=7), timeout=PATIENCE)  # type: ignore[arg-type]


def test_a_tenant_without_a_catalog_is_said(client: Client) -> None:
    with refused(grpc.StatusCode.NOT_FOUND, "TENANT_NOT_FOUND"):
        client.get_usage()


def test_tenants_never_mix(server: ToolgateProcess, tenant: str) -> None:
    names = (f"{tenant}-a", f"{tenant}-b")
    for turns, name in enumerate(names, start=1):
        with server.client(name) as client:
            client.register_server("notes", NOTES)
            for _ in range(turns):
                client.route("hello")
    for turns, name in enumerate(names, start=1):
        with server.client(name) as client:
            assert client.get_usage().total.route_calls == turns


def test_a_small_catalog_that_is_used_whole_does_not_pay(notes: Client) -> None:
    notes.route("notes and weather", threshold=-1, prompt_listing="summaries")
    usage = notes.get_usage()
    assert usage.total.saved_net_tokens < 0
    assert usage.deferral is DeferralVerdict.MOST_TOOLS_USED


def test_a_restart_keeps_the_ledger(binary: Path, tmp_path: Path) -> None:
    # The long interval shows that it is written when the server stops.
    process = ToolgateProcess(binary, tmp_path, {"usage.flush_interval": "1h"}).start()
    with process.client() as client:
        client.register_server("notes", NOTES)
        client.route("hello")
    assert process.stop() == 0
    process.start()
    with process.client() as client:
        assert client.get_usage().total.route_calls == 1
        client.route("hello")
        assert client.get_usage().total.route_calls == 2
    assert process.stop() == 0


def test_a_kill_takes_no_more_than_the_last_interval(binary: Path, tmp_path: Path) -> None:
    process = ToolgateProcess(binary, tmp_path, {"usage.flush_interval": "200ms"}).start()
    with process.client() as client:
        client.register_server("notes", NOTES)
        for _ in range(3):
            client.route("hello")
        # Nobody asks for the ledger, which would write it.
        wait_until(lambda: stored_calls(process) == 3, "it is not written")
        for _ in range(2):
            client.route("hello")
        process.kill()
    process.start()
    with process.client() as client:
        assert 3 <= client.get_usage().total.route_calls <= 5
    assert process.stop() == 0


def stored_calls(process: ToolgateProcess) -> int:
    """Counts the Route calls in the store of a server that runs."""
    store = f"file:{process.folder / 'data' / 'toolgate.db'}?mode=ro"
    with closing(sqlite3.connect(store, uri=True)) as database:
        asked = "SELECT coalesce(sum(amount), 0) FROM usage WHERE item = 'route_calls'"
        (calls,) = database.execute(asked).fetchone()
    return int(calls)


def test_metrics_of_deferral(start_server: StartServer) -> None:
    process = start_server({})
    with process.client() as client:
        client.register_server("notes", NOTES)
        paid = client.route("zzz", threshold=1, prompt_listing="summaries").accounting
        whole = client.route("notes", threshold=-1, prompt_listing="summaries").accounting
    assert paid.saved_tokens > 0 > whole.saved_tokens
    metrics = process.get("/metrics")[1].splitlines()
    assert f"toolgate_tokens_saved_total {paid.saved_tokens}" in metrics
    assert f"toolgate_tokens_overspent_total {-whole.saved_tokens}" in metrics
    phase1 = paid.phase1_tokens + whole.phase1_tokens
    assert f"toolgate_summary_tokens_total {phase1}" in metrics
    assert "toolgate_usage_flush_failures_total 0" in metrics


def test_decision_events_are_in_the_span_of_their_call(start_server: StartServer) -> None:
    process = start_server({"log.format": "json"})
    with process.client("acme") as client:
        client.register_server("notes", NOTES)
        turn = client.route("zanzibarintent", threshold=-1, turn_id="t1")
        client.gate(turn.handle, Call("mcp__notes__create_note", {"zanzibar": "secret"}))
    log = process.await_log('"gate"')
    assert "zanzibar" not in log
    assert turn.handle not in log
    assert "mcp__notes__create_note:" not in log, "scores are for level debug"
    events = [json.loads(line) for line in log.splitlines()]
    by_name = {e["message"]: e for e in events if e["target"] == "toolgate::decision"}
    route, gate = by_name["route"], by_name["gate"]
    assert route["span"]["rpc"] == "RouterService/Route"
    assert (route["tenant"], route["turn"]) == ("acme", "t1")
    assert route["phase2_tokens"] == turn.accounting.phase2_tokens
    assert gate["span"]["rpc"] == "RouterService/Gate"
    assert (gate["allowed"], gate["refused"]) == (0, "ARGUMENTS_INVALID:1")


def test_what_became_of_refused_calls_is_counted_once(
    binary: Path, server: ToolgateProcess, notes: Client, tenant: str
) -> None:
    handle = notes.route("write down a note", threshold=-1).handle
    wrong = Call("mcp__notes__create_note", {"oops": 1})
    refusal = json.dumps(notes.gate(handle, wrong).verdicts[0].to_tool_error())
    called = {"name": wrong.tool, "arguments": json.dumps(wrong.arguments)}

    def call(call_id: str, result: str) -> list[dict[str, Any]]:
        asked = {"id": call_id, "type": "function", "function": called}
        return [
            {"role": "assistant", "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": call_id, "content": result},
        ]

    def says(role: str, text: str) -> list[dict[str, Any]]:
        return [{"role": role, "content": text}]

    turns = [
        [*call("1", refusal), *call("2", "noted"), *says("assistant", "Done.")],
        [*call("3", refusal), *says("assistant", "What title shall it have?")],
        [*call("4", refusal), *says("assistant", "That did not work.")],
    ]
    history = says("user", "write down a note")
    with grpc.insecure_channel(server.target) as channel:
        router = router_pb2_grpc.RouterServiceStub(channel)
        usage = usage_pb2_grpc.UsageServiceStub(channel)

        def route(messages: list[dict[str, Any]]) -> None:
            state = state_pb2.AgentState(messages_json=json.dumps(messages))
            intents = [router_pb2.Intent(text="write down a note")]
            request = router_pb2.RouteRequest(tenant=tenant, intents=intents, state=state)
            router.Route(request, timeout=PATIENCE)

        for turn in turns:
            for steps in range(len(turn) + 1):
                route([*history, *turn[:steps]])
            history += [*turn, *says("user", "and another one")]
        route(history)
        request = usage_pb2.GetUsageRequest(tenant=tenant)
        outcomes = usage.GetUsage(request, timeout=PATIENCE).refusal_outcomes
    counted = (outcomes.mended_calls, outcomes.asked_calls, outcomes.given_up_calls)
    assert counted == (1, 1, 1)
    said = say(binary, server, tenant)
    assert "1 (33%) mended by a later call, 1 (33%) asked the user, 1 (33%) given up" in said
    assert "The catalog is small" in said
    totals = json.loads(say(binary, server, tenant, "--json"))["spans"][-1]["refusal_outcomes"]
    assert totals == {"mended_calls": 1, "asked_calls": 1, "given_up_calls": 1}


def test_c7_searches_that_led_to_a_call_are_counted_by_tenant(
    binary: Path, server: ToolgateProcess, notes: Client, tenant: str
) -> None:
    with grpc.insecure_channel(server.target) as channel:
        router = router_pb2_grpc.RouterServiceStub(channel)
        search = router_pb2.SearchToolsRequest(tenant=tenant, query="select:create_note")
        found = router.SearchTools(search, timeout=PATIENCE)
        call = router_pb2.RequestedCall(
            tool="mcp__notes__create_note",
            arguments_json='{"title": "x"}',
            shown_tag=found.tools[0].shown_tag,
        )
        tags = router_pb2.EVIDENCE_TAGS
        request = router_pb2.GateRequest(tenant=tenant, calls=[call], evidence=tags)
        assert router.Gate(request, timeout=PATIENCE).verdicts[0].allowed
    notes.search_tools("select:nothing_of_this_name")
    first = notes.search_tools("select:create_note")
    both = notes.search_tools("select:get_forecast", handle=first.handle)
    forecast = Call("mcp__weather__get_forecast", {})
    create = Call("mcp__notes__create_note", {"title": "x"})
    assert all(verdict.allowed for verdict in notes.gate(both.handle, [forecast, create]))
    notes.search_tools("select:create_note")
    counted = notes.get_usage().search_outcomes
    assert counted == SearchOutcomes(searches=5, hits=3, misses=1)
    said = say(binary, server, tenant)
    assert "searches: 5; of 4 decided, 3 (75%) led to a call of a tool that they showed" in said
    totals = json.loads(say(binary, server, tenant, "--json"))["spans"][-1]["search_outcomes"]
    assert totals == {"searches": 5, "hits": 3, "misses": 1}
    with server.client(f"{tenant}-other") as other:
        other.register_server("notes", NOTES)
        assert other.get_usage().search_outcomes == SearchOutcomes(0, 0, 0)


# The command line


def say(binary: Path, server: ToolgateProcess, tenant: str, *flags: str) -> str:
    command = [str(binary), "usage", "--endpoint", f"http://{server.target}", "--tenant", tenant]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(
        [*command, *flags],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a19_the_tax_is_turns_times_what_tools_cost_a_turn(
    binary: Path, server: ToolgateProcess, notes: Client, tenant: str
) -> None:
    turns = [notes.route(text, threshold=-1).accounting for text in ("note", "rain", "note")]
    spent = sum(turn.phase1_tokens + turn.phase2_tokens for turn in turns)
    full = sum(turn.full_catalog_tokens for turn in turns)
    tax = f"3 x {round(spent / 3):,} = {spent:,}; with every schema 3 x {full // 3:,} = {full:,}"
    assert f"tools tax (turns x tokens a turn): {tax}" in say(binary, server, tenant)


@pytest.mark.usefixtures("amid_a_day")
def test_the_command_says_what_was_saved(
    binary: Path, server: ToolgateProcess, notes: Client, tenant: str
) -> None:
    notes.register_server("weather", [*WEATHER, *NOTES])
    notes.route("zzz", threshold=1)
    notes.route("zzz", threshold=1)
    said = say(binary, server, tenant)
    assert "\x1b" not in said
    spans = [line.split() for line in said.splitlines()]
    for name in (["today"], ["7", "days"], ["30", "days"], ["all"]):
        row = next(words for words in spans if words[: len(name)] == name)
        assert row[len(name)] == "2"
    assert "saved a day since" in said
    assert "Deferral paid over 30 days" in said


def test_the_command_is_honest_when_it_did_not_pay(
    binary: Path, server: ToolgateProcess, notes: Client, tenant: str
) -> None:
    notes.route("notes and weather", threshold=-1, prompt_listing="summaries")
    said = say(binary, server, tenant)
    assert "Deferral did not pay over 30 days" in said
    assert "most tools are used anyway" in said
    assert "Send every schema" in said


@pytest.mark.usefixtures("amid_a_day")
def test_the_command_gives_json_and_takes_spans(
    binary: Path, server: ToolgateProcess, notes: Client, tenant: str
) -> None:
    today = midnight().date().isoformat()
    turn = notes.route("hello", threshold=-1)
    notes.gate(turn.handle, Call("nothing", {}))
    spans = json.loads(say(binary, server, tenant, "--json", "--since", today))["spans"]
    assert len(spans) == 1
    assert spans[0]["route_calls"] == 1
    assert spans[0]["refusals"] == [{"code": "UNKNOWN_TOOL", "calls": 1}]
    assert spans[0]["start_time"] == f"{today}T00:00:00Z"
    assert [bucket["route_calls"] for bucket in spans[0]["buckets"]] == [1]
    usual = json.loads(say(binary, server, tenant, "--json"))["spans"]
    assert [span["span"] for span in usual] == ["today", "7 days", "30 days", "all"]
    past = say(binary, server, tenant, "--until", "2020-01-01")
    assert "No Route call over this span" in past


@pytest.mark.parametrize(
    "flags", [["--since", "yesterday"], ["--since", "2026-01-02", "--until", "2026-01-01"]]
)
def test_flags_that_make_no_sense(binary: Path, server: ToolgateProcess, flags: list[str]) -> None:
    command = [str(binary), "usage", "--endpoint", f"http://{server.target}", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert flags[1] in done.stderr
