"""Tests deferral of tools (B1-B3, B11, B12, B16), and servers still connecting (B13)."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from catalogs import NOTES, WEATHER, invalid, too_many, tool
from conftest import StartServer
from waiting import PATIENCE, wait_until

from toolgate import (
    Client,
    DeferralMode,
    DeferralReason,
    DeferralSource,
    FoundBy,
    RouteResult,
    ToolgateError,
    ToolSettings,
)
from toolgate._gen.v1 import catalog_pb2

ALL = 5
"""Tools of `notes` and `weather`."""


def decided(turn: RouteResult) -> tuple[bool, DeferralReason, DeferralSource]:
    return turn.deferral.deferred, turn.deferral.reason, turn.deferral.source


def test_b1_what_is_never_deferred(client: Client) -> None:
    tools = [
        tool("plain"),
        tool("chosen"),
        tool("meta", _meta={"anthropic/alwaysLoad": True}),
        tool("critical"),
        tool("tool_search"),
    ]
    settings = [ToolSettings("chosen", always_load=True), ToolSettings("critical", critical=True)]
    client.register_server("s", tools, tool_settings=settings, trust_tier="trusted")
    own = [tool("read"), tool("rare", _meta={"toolgate/defer": True})]
    client.register_server("own", own, transport_hint="built_in")
    turn = client.route("nothing in particular", threshold=1)
    assert [t.name for t in turn] == ["read", "chosen", "critical", "meta"]
    assert {t.found_by for t in turn} == {FoundBy.ALWAYS_LOAD}


def test_b2_modes(notes: Client) -> None:
    deferred = notes.route("write a note", top_k=1)
    assert decided(deferred) == (True, DeferralReason.MODE, DeferralSource.DEFAULT)
    assert (len(deferred), deferred.deferral.deferred_tools) == (1, ALL - 1)
    assert deferred.deferral.offer_search
    everything = notes.route("write a note", top_k=1, deferral="off")
    assert decided(everything) == (False, DeferralReason.MODE, DeferralSource.REQUEST)
    assert (len(everything), everything.deferral.deferred_tools) == (ALL, 0)
    assert {t.found_by for t in everything} == {FoundBy.NOT_DEFERRED}
    assert not everything.deferral.offer_search


def test_b2_auto_compares_with_the_window(notes: Client) -> None:
    full = notes.route("x", deferral="off").accounting.full_catalog_tokens
    small = notes.route("write a note", deferral="auto", context_window=full * 10)
    assert decided(small) == (True, DeferralReason.OVER_THRESHOLD, DeferralSource.REQUEST)
    assert small.deferral.mode is DeferralMode.AUTO
    assert (small.deferral.threshold_tokens, small.deferral.deferrable_tokens) == (full, full)
    large = notes.route("write a note", deferral="auto", context_window=full * 11)
    assert decided(large)[:2] == (False, DeferralReason.UNDER_THRESHOLD)
    assert len(large) == ALL
    share = notes.route("x", deferral="auto", context_window=full * 11, deferral_percent=5)
    assert share.deferral.deferred
    same = notes.route("x", deferral="auto:5", context_window=full * 11)
    assert same.deferral == share.deferral


def test_b3_the_cost_is_counted_and_less_the_overhead(start_server: StartServer) -> None:
    process = start_server({"deferral.mode": "auto:1", "deferral.overhead_tokens": "50"})
    with process.client() as client:
        client.register_server("notes", NOTES)
        turn = client.route("write a note", context_window=1_000_000)
        exact = sum(t.schema_tokens for t in client.list_tools())
        assert turn.deferral.deferrable_tokens == exact - 50
        assert decided(turn)[2] is DeferralSource.SERVER
        assert len(turn) == len(NOTES)


def test_b11_and_b2_the_operator_changes_his_mind_at_run_time(
    start_server: StartServer, tmp_path: Path
) -> None:
    settings = tmp_path / "server0" / "config" / "toolgate" / "toolgate.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[deferral]\ndenied_models = ["haiku"]\ntenants = ["beta=off"]\n')
    process = start_server({})

    def reread(text: str) -> None:
        settings.write_text(text)
        os.kill(process.process.pid, signal.SIGHUP)

    with process.client() as client, process.client("beta") as beta:
        for tenant in (client, beta):
            tenant.register_server("notes", NOTES)
        denied = client.route("x", model="Claude-Haiku-9")
        assert decided(denied)[:2] == (False, DeferralReason.MODEL_UNSUPPORTED)
        assert len(denied) == len(NOTES)
        assert client.route("x", model="never-heard-of").deferral.deferred
        assert decided(beta.route("x"))[1:] == (DeferralReason.MODE, DeferralSource.TENANT)
        reread('[deferral]\ndenied_models = ["never-*"]\n')
        await_reason(client, "never-heard-of", DeferralReason.MODEL_UNSUPPORTED)
        assert client.route("x", model="Claude-Haiku-9").deferral.deferred
        assert beta.route("x").deferral.deferred
        reread("[deferral]\nkill_switch = true\n")
        await_reason(client, "any", DeferralReason.KILL_SWITCH)
        assert not client.route("x", deferral="always").deferral.deferred
        reread("[deferral]\nkill_switch = 3\n")
        process.await_log("nothing was changed")
        assert client.route("x").deferral.reason is DeferralReason.KILL_SWITCH


def await_reason(client: Client, model: str, reason: DeferralReason) -> None:
    wait_until(lambda: client.route("x", model=model).deferral.reason is reason, f"never {reason}")


def test_b12_unknown_proxies_get_everything_unless_a_mode_is_chosen(notes: Client) -> None:
    proxy = "https://llm.corp.example:4000/v1"
    turn = notes.route("x", model_base_url=proxy)
    assert decided(turn) == (False, DeferralReason.UNKNOWN_PROXY, DeferralSource.DEFAULT)
    assert len(turn) == ALL
    assert notes.route("x", model_base_url=proxy, deferral="always").deferral.deferred
    assert notes.route("x", model_base_url="https://api.anthropic.com").deferral.deferred


def test_b16_doubt_sends_more(notes: Client) -> None:
    no_window = notes.route("x", deferral="auto")
    assert decided(no_window)[:2] == (False, DeferralReason.NO_WINDOW)
    assert len(no_window) == ALL
    assert "context_window" in no_window.deferral.message


def test_mistaken_options_are_refused(notes: Client) -> None:
    with too_many("options.deferral_percent"):
        notes.route("x", deferral="auto", deferral_percent=101)
    with invalid(field="options.deferral_percent"):
        notes.route("x", deferral_percent=5)
    with invalid(field="options.model_base_url"):
        notes.route("x", model_base_url="https:///v1")
    with too_many("options.model"):
        notes.route("x", model="m" * 257)
    with pytest.raises(ValueError, match="ALWAYS"):
        notes.route("x", deferral="sometimes")


def test_b13_announced_servers_are_named_until_they_are_there(
    start_server: StartServer, binary: Path
) -> None:
    process = start_server({})
    with process.client() as client:
        assert client.announce_server("slack").server.pending
        client.announce_server("vault", required_scopes=["admin"])
        endpoint = f"http://{process.target}"
        line = [str(binary), "register", "--pending", "slack", "--endpoint", endpoint]
        announced = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)
        assert (announced.returncode, announced.stdout) == (0, "slack: pending\n"), announced
        assert client.route("send a message").pending_servers == ("slack",)
        assert client.route("x", state={"scopes": ["admin"]}).pending_servers == ("slack", "vault")
        empty = client.search_tools("+message")
        assert (len(empty), empty.pending_servers) == (0, ("slack",))
        assert "still connecting: slack" in empty.message
        assert client.route("send").deferral.offer_search
    process.kill()
    process.start()
    with process.client() as client:
        assert client.get_server("slack").pending
        assert client.route("send a message").pending_servers == ("slack",)
        client.register_server("slack", WEATHER)
        assert client.route("weather").pending_servers == ()
        assert not client.get_server("slack").pending
        with invalid(field="tools_list_json"):
            with_tools = catalog_pb2.RegisterServerRequest(
                server="s", pending=True, tools_list_json=b"[]"
            )
            client._catalog.RegisterServer(with_tools)


def test_b13_an_announcement_takes_no_guard_away(client: Client) -> None:
    client.register_server("vault", [tool("key", "Opens.")], required_scopes=["admin"])
    client.register_server("notes", NOTES)
    client.announce_server("vault")
    assert client.route("opens", threshold=-1).pending_servers == ()
    assert all(t.server == "notes" for t in client.route("opens", threshold=-1))
    admin = client.route("opens", threshold=-1, state={"scopes": ["admin"]})
    assert admin.pending_servers == ("vault",)
    assert any(t.server == "vault" for t in admin)
    with pytest.raises(ToolgateError):
        client.get_server("nothing")
