"""Gate: allowed calls, and each refusal with what the model is told."""

import json
import time
from typing import Any

import grpc
import pytest
from catalogs import NOTES, WEATHER, invalid, refused, too_many, tool
from conftest import StartServer
from toolgate_process import ToolgateProcess

from toolgate import Call, Client, RefusalCode

CREATE = "mcp__notes__create_note"
FORECAST = "mcp__weather__get_forecast"


@pytest.fixture
def handle(notes: Client) -> str:
    """A turn whose active set is the three tools of `notes`."""
    turn = notes.route("note", threshold=-1, servers=["notes"])
    assert len(turn) == len(NOTES)
    return turn.handle


def test_an_active_tool_may_be_called(notes: Client, handle: str) -> None:
    result = notes.gate(handle, Call(CREATE, {"title": "Milk"}, "call-7"))
    (verdict,) = result
    assert verdict.allowed
    assert (verdict.call_id, verdict.server, verdict.name) == ("call-7", "notes", "create_note")
    assert (verdict.code, verdict.message) == (RefusalCode.UNSPECIFIED, "")
    assert result.catalog_revision > 0


def test_verdicts_come_in_the_order_of_the_calls(notes: Client, handle: str) -> None:
    calls = [
        Call(CREATE, {"title": "a"}, "1"),
        Call("mcp__none__none", {}, "2"),
        Call(FORECAST, {}, "3"),
        Call(CREATE, {}, "4"),
        Call(CREATE, {"title": "a"}, "1"),
    ]
    verdicts = notes.gate(handle, calls)
    assert [v.call_id for v in verdicts] == ["1", "2", "3", "4", "1"]
    assert [v.code.value for v in verdicts] == [
        "UNSPECIFIED",
        "UNKNOWN_TOOL",
        "TOOL_NOT_AVAILABLE",
        "ARGUMENTS_INVALID",
        "UNSPECIFIED",
    ]


def test_a_tool_outside_the_active_set(notes: Client, handle: str) -> None:
    verdict = notes.gate(handle, Call(FORECAST))[0]
    assert not verdict.allowed
    assert set(verdict.available_tools) == {f"mcp__notes__{t['name']}" for t in NOTES}
    assert verdict.search_query == f"select:{FORECAST}"
    error = verdict.to_tool_error()
    assert error["error"] == "tool_not_available"
    assert CREATE in error["available"]
    assert (verdict.server, verdict.name) == ("", "")


@pytest.mark.parametrize("name", ["mcp__notes__nothing", "nothing", "", "mcp____", "é" * 1000])
def test_a_tool_that_does_not_exist(notes: Client, handle: str, name: str) -> None:
    if not name:
        with invalid("INVALID_FIELD", field="tool"):
            notes.gate(handle, Call(name))
        return
    verdict = notes.gate(handle, Call(name))[0]
    assert verdict.code is RefusalCode.UNKNOWN_TOOL
    assert CREATE in verdict.available_tools


@pytest.mark.parametrize(
    ("arguments", "pointers"),
    [
        ({}, [""]),
        ({"title": ""}, ["/title"]),
        ({"title": 3}, ["/title"]),
        ({"title": "a", "pages": 0}, ["/pages"]),
        ({"title": "a", "pages": 1.5}, ["/pages"]),
        ({"title": "a", "tags": ["x", 3, None]}, ["/tags/1", "/tags/2"]),
        ({"title": "a", "more": True}, [""]),
        ({"title": 3, "pages": "x"}, ["/pages", "/title"]),
        ("[]", [""]),
        ("3", [""]),
        ("null", [""]),
        ("{title: 1}", [""]),
        ('{"title": "a"', [""]),
        ("", [""]),
        ("[" * 100_000, [""]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_arguments_that_do_not_fit(
    notes: Client, handle: str, arguments: dict[str, Any] | str, pointers: list[str]
) -> None:
    verdict = notes.gate(handle, Call(CREATE, arguments))[0]
    assert verdict.code is RefusalCode.ARGUMENTS_INVALID
    assert sorted(v.pointer for v in verdict.violations) == pointers
    assert all(v.message for v in verdict.violations)
    assert json.loads(verdict.input_schema_json) == NOTES[0]["inputSchema"]


def test_no_arguments_are_an_empty_object(notes: Client, handle: str) -> None:
    assert notes.gate(handle, Call("mcp__notes__find_notes", ""))[0].allowed


def test_values_of_arguments_are_not_repeated(notes: Client, handle: str) -> None:
    verdict = notes.gate(handle, Call(CREATE, {"title": 8675309, "pages": "hunter2"}))[0]
    told = verdict.message + "".join(v.message for v in verdict.violations)
    assert "hunter2" not in told
    assert "8675309" not in told


def test_at_most_sixteen_violations_are_listed(notes: Client, handle: str) -> None:
    verdict = notes.gate(handle, Call(CREATE, {"title": "a", "tags": [1] * 100}))[0]
    assert len(verdict.violations) == 16


def test_a_definition_that_changed_since_it_was_shown(client: Client) -> None:
    client.register_server("weather", WEATHER)
    turn = client.route("rain", threshold=-1)
    client.register_server("weather", [tool("get_forecast", "Something else."), WEATHER[1]])
    changed, same = client.gate(
        turn.handle, [Call(FORECAST), Call("mcp__weather__get_rain_alerts")]
    )
    assert changed.code is RefusalCode.SCHEMA_CHANGED
    assert same.allowed


def test_a_tool_that_was_removed_since(client: Client) -> None:
    client.register_server("weather", WEATHER)
    turn = client.route("rain", threshold=-1)
    client.register_server("weather", WEATHER[1:])
    assert client.gate(turn.handle, Call(FORECAST))[0].code is RefusalCode.UNKNOWN_TOOL


def test_how_many_calls(notes: Client, handle: str) -> None:
    with invalid("INVALID_FIELD", field="calls"):
        notes.gate(handle, [])
    assert len(notes.gate(handle, [Call(CREATE)] * 128)) == 128
    with too_many("calls"):
        notes.gate(handle, [Call(CREATE)] * 129)


def test_oversize_arguments(notes: Client, handle: str) -> None:
    most = 1024 * 1024
    text = json.dumps({"title": "x" * most})
    with too_many("arguments_json"):
        notes.gate(handle, Call(CREATE, text))


# Handles


def test_no_handle(notes: Client) -> None:
    with invalid("INVALID_FIELD", field="active_set_handle"):
        notes.gate("", Call(CREATE))


def forgeries(handle: str) -> list[str]:
    middle = len(handle) // 2
    other = "A" if handle[middle] != "A" else "B"
    return [
        "x",
        "guess-" * 10,
        handle[:-1],
        handle + "A",
        handle[:middle] + other + handle[middle + 1 :],
        handle[::-1],
        handle.swapcase(),
        "é" * 100,
        "A" * 100_000,
    ]


def test_forged_handles(notes: Client, handle: str) -> None:
    for forged in forgeries(handle):
        verdict = notes.gate(forged, Call(CREATE, {"title": "a"}))[0]
        assert not verdict.allowed
        assert verdict.code is RefusalCode.HANDLE_INVALID, forged[:40]
        with invalid("HANDLE_INVALID"):
            notes.route("hello", handle=forged)
        with invalid("HANDLE_INVALID"):
            notes.batch_get_tool_schemas([CREATE], handle=forged)


def test_every_bit_of_a_handle_is_signed(notes: Client, handle: str) -> None:
    for position in range(0, len(handle), max(1, len(handle) // 40)):
        letter = "A" if handle[position] != "A" else "Q"
        forged = handle[:position] + letter + handle[position + 1 :]
        assert not notes.gate(forged, Call(CREATE, {"title": "a"}))[0].allowed, position


def test_another_tenants_handle(server: ToolgateProcess, notes: Client, handle: str) -> None:
    with server.client("handle-thief") as thief:
        thief.register_server("notes", NOTES)
        verdict = thief.gate(handle, Call(CREATE, {"title": "a"}))[0]
        assert verdict.code is RefusalCode.HANDLE_INVALID
        with invalid("HANDLE_INVALID"):
            thief.route("hello", handle=handle)
    assert notes.gate(handle, Call(CREATE, {"title": "a"}))[0].allowed


def test_another_services_handle(start_server: StartServer, notes: Client, handle: str) -> None:
    elsewhere = start_server({})
    with elsewhere.client("default") as client:
        client.register_server("notes", NOTES)
        assert client.gate(handle, Call(CREATE))[0].code is RefusalCode.HANDLE_INVALID


def test_an_expired_handle(start_server: StartServer) -> None:
    with start_server({"handle.ttl": "10s"}).client() as client:
        client.register_server("notes", NOTES)
        turn = client.route("note", threshold=-1)
        lifetime = turn.handle_expire_time.timestamp() - time.time()
        assert 1 < lifetime <= 10.1
        call = Call(CREATE, {"title": "a"})
        assert client.gate(turn.handle, call)[0].allowed
        time.sleep(max(0.0, turn.handle_expire_time.timestamp() - time.time()) + 1.1)
        assert client.gate(turn.handle, call)[0].code is RefusalCode.HANDLE_EXPIRED
        renewed = client.route("note", threshold=-1, handle=turn.handle)
        assert [t.name for t in renewed] == [t.name for t in turn]
        assert not any(t.newly_promoted for t in renewed)
        assert client.gate(renewed.handle, call)[0].allowed


def test_a_handle_is_good_for_an_hour_by_default(notes: Client) -> None:
    before = time.time()
    expires = notes.route("note").handle_expire_time.timestamp()
    # Rounded to whole seconds.
    assert before + 3599 <= expires <= time.time() + 3601


def test_a_handle_outlives_a_restart(binary: Any, tmp_path: Any) -> None:
    process = ToolgateProcess(binary, tmp_path).start()
    with process.client() as client:
        client.register_server("notes", NOTES)
        handle = client.route("note", threshold=-1).handle
    process.stop()
    process.start()
    try:
        with process.client() as client:
            assert client.gate(handle, Call(CREATE, {"title": "a"}))[0].allowed
    finally:
        assert process.stop() == 0


def test_a_gate_call_needs_a_tenant_that_exists(server: ToolgateProcess, handle: str) -> None:
    with (
        server.client("never-registered") as client,
        refused(grpc.StatusCode.NOT_FOUND, "TENANT_NOT_FOUND"),
    ):
        client.gate(handle, Call(CREATE))


def test_b15_a_deferred_tool_names_its_search(notes: Client) -> None:
    turn = notes.route("write down a note", servers=["notes"], top_k=1, threshold=-1)
    verdict = notes.gate(turn.handle, Call("mcp__weather__get_forecast"))[0]
    assert verdict.code is RefusalCode.TOOL_NOT_AVAILABLE
    assert verdict.search_query == "select:mcp__weather__get_forecast"
    assert verdict.search_query in verdict.message
    found = notes.search_tools(verdict.search_query, handle=turn.handle)
    assert notes.gate(found.handle, Call("mcp__weather__get_forecast"))[0].allowed


def test_b15_a_misspelt_name_gets_the_nearest_visible_one(notes: Client) -> None:
    turn = notes.route("note", threshold=-1, servers=["notes"])
    verdict = notes.gate(turn.handle, Call("mcp__notes__creat_note", {"title": "a"}))[0]
    assert (verdict.code, verdict.nearest_tool) == (RefusalCode.UNKNOWN_TOOL, CREATE)
    assert CREATE in verdict.message
    deferred = notes.gate(turn.handle, Call("mcp__weather__get_forcast"))[0]
    assert deferred.search_query == "select:mcp__weather__get_forecast"


@pytest.mark.parametrize(
    ("name", "arguments", "sent_on"),
    [
        ("functions." + CREATE, '{"title": "a"}', ""),
        ("default_api:create_note", '"{\\"title\\": \\"a\\"}"', '{"title": "a"}'),
        (" notes/create_note", '{"title": "a"}', ""),
        ("find_notes", "null", "{}"),
        ("find_notes", '""', "{}"),
    ],
)
def test_b15_envelopes_are_forgiven(notes: Client, name: str, arguments: str, sent_on: str) -> None:
    turn = notes.route("note", threshold=-1, servers=["notes"])
    verdict = notes.gate(turn.handle, Call(name, arguments))[0]
    assert verdict.allowed, verdict
    assert verdict.arguments_json == sent_on


def test_b15_values_are_not(notes: Client) -> None:
    turn = notes.route("note", threshold=-1, servers=["notes"])
    verdict = notes.gate(turn.handle, Call(CREATE, '"{\\"title\\": 3}"'))[0]
    assert verdict.code is RefusalCode.ARGUMENTS_INVALID
    assert [v.pointer for v in verdict.violations] == ["/title"]
    assert "minLength" in verdict.input_schema_json
