"""Messages of servers, as hosts of both eras hear them through the gateway."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
from asking_hosts import Json, LegacyHost, ModernHost, RefusedError
from fixture_gateway import TOOLGATE, gateway
from gateway_process import GatewayProcess

SERVER = Path(__file__).with_name("logging_server.py")
OWN = "/mcp/s/workshop"
WORK: Json = {"name": "work", "arguments": {}}
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
DETAILS: Json = {"_meta": {LOG_LEVEL: "debug"}}
ALL = ["debug", "info", "error"]

# The messages of a call, by its parameters; without the one at the end.
Hear = Callable[[Json], list[Json]]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[GatewayProcess]:
    command = json.dumps([sys.executable, str(SERVER)])
    config = f"[server.workshop]\ncommand = {command}\n"
    with GatewayProcess(Path(TOOLGATE), tmp_path, config) as process:
        yield process


def logged(stream: Iterator[Json]) -> Iterator[Json]:
    """The messages of servers in a stream."""
    for message in stream:
        if message.get("method") == "notifications/message":
            yield message["params"]


def before_end(messages: Iterator[Json]) -> Iterator[Json]:
    """The messages before the one that ends a call."""
    for message in messages:
        if message["level"] == "emergency":
            return
        yield message


@contextmanager
def hearing(host: LegacyHost) -> Iterator[Hear]:
    """Hears a session, whose messages come on the stream of no call."""
    with host.listening() as stream:
        messages = logged(stream)

        def hear(call: Json) -> list[Json]:
            host.request("tools/call", call)
            return list(before_end(messages))

        yield hear


def heard_by(host: ModernHost, call: Json) -> list[Json]:
    """The messages on the stream of a call, which come before its result."""
    stream = list(host.stream("tools/call", call))
    assert "result" in stream[-1], stream
    return list(before_end(logged(iter(stream))))


def levels(messages: list[Json]) -> list[str]:
    return [message["level"] for message in messages]


def test_a_session_hears_the_levels_that_it_set(running: GatewayProcess) -> None:
    host = LegacyHost(running.url + OWN, {})
    other = LegacyHost(running.url + OWN, {})
    assert "logging" in host.greeting["capabilities"]
    with hearing(host) as hear, hearing(other) as hear_other:
        assert levels(hear(WORK)) == ["info", "error"]
        host.request("logging/setLevel", {"level": "debug"})
        assert levels(hear(WORK)) == ALL
        assert levels(hear_other(WORK)) == ["info", "error"], "what another wants is not told"
        other.request("logging/setLevel", {"level": "critical"})
        assert levels(hear_other(WORK)) == []


def test_a_request_of_2026_hears_the_level_that_it_names(running: GatewayProcess) -> None:
    host = ModernHost(running.url + OWN)
    assert heard_by(host, WORK) == []
    assert levels(heard_by(host, WORK | DETAILS)) == ALL
    assert levels(heard_by(host, WORK | {"_meta": {LOG_LEVEL: "error"}})) == ["error"]
    with pytest.raises(RefusedError):
        host.request("logging/setLevel", {"level": "debug"})


def test_a_server_that_was_started_anew_is_asked_for_details_again(
    running: GatewayProcess,
) -> None:
    host = LegacyHost(running.url + OWN, {})
    host.request("logging/setLevel", {"level": "debug"})
    with hearing(host) as hear:
        assert levels(hear(WORK)) == ALL
        with pytest.raises(RefusedError):
            host.call("die", {})
        assert levels(hear(WORK)) == ALL


@pytest.mark.parametrize(
    ("face", "call"),
    [
        ("/mcp", {"name": "call_tool", "arguments": {"name": "workshop__work", "arguments": {}}}),
        ("/mcp/all", {"name": "workshop__work", "arguments": {}}),
    ],
)
def test_messages_say_whose_they_are_where_several_servers_are_behind_one_face(
    running: GatewayProcess, face: str, call: Json
) -> None:
    host = LegacyHost(running.url + face, {})
    assert host.greeting["capabilities"]["logging"] == {}
    host.request("logging/setLevel", {"level": "debug"})
    with hearing(host) as hear:
        for messages in [hear(call), heard_by(ModernHost(running.url + face), call | DETAILS)]:
            assert levels(messages) == ALL
            assert {message["logger"] for message in messages} == {"workshop/bench"}


@pytest.mark.parametrize(("face", "logger"), [(OWN, "bench"), ("/mcp", "workshop/bench")])
def test_messages_of_no_call_go_to_the_sessions(
    running: GatewayProcess, face: str, logger: str
) -> None:
    host = LegacyHost(running.url + face, {})
    with host.listening() as stream:
        assert running.text("later", {}, OWN) == "ran"
        heard = next(logged(stream))
    assert heard == {"level": "warning", "logger": logger, "data": "it ran"}


def test_messages_that_are_too_long_are_dropped(running: GatewayProcess) -> None:
    with hearing(LegacyHost(running.url + OWN, {})) as hear:
        assert hear({"name": "boast", "arguments": {}}) == []


def test_a_session_hears_a_server_of_2026(tmp_path: Path) -> None:
    with gateway(tmp_path) as started:
        host = LegacyHost(started.url, {})
        host.request("logging/setLevel", {"level": "info"})
        with host.listening() as stream:
            host.call("test_tool_with_logging", {})
            assert levels(list(islice(logged(stream), 3))) == ["info"] * 3
