"""Memory of what worked: tools found by what they were called for, by tenants that opted in."""

import json
import time
from pathlib import Path

import pytest
from catalogs import SHIPPED, invalid
from conftest import StartServer
from toolgate_command import run
from waiting import wait_until

from toolgate import Call, Client, FoundBy

ON = {"memory.tenants": "acme,other", "memory.refresh_interval": "100ms"}
SERVERS = ("git", "slack", "filesystem", "time")
WISH = "acknowledge Tom's file"
LIKE_IT = "acknowledge the file from Tom"
TOOL = "mcp__slack__slack_add_reaction"
ARGUMENTS = {"channel_id": "C1", "timestamp": "1.2", "reaction": "eyes"}


def register(client: Client) -> None:
    for name in SERVERS:
        client.register_server(name, SHIPPED / f"{name}.json")


def call(client: Client, wish: str, tool: str = TOOL) -> None:
    """Does what an agent does that found the tool otherwise."""
    turn = client.route(wish, pinned_tools=[tool])
    (verdict,) = client.gate(turn.handle, Call(tool, ARGUMENTS))
    assert verdict.allowed


def first(client: Client, wish: str) -> str:
    """The tool that ranks best; "" when none is sent."""
    return next((tool.model_name for tool in client.route(wish)), "")


@pytest.fixture
def acme(start_server: StartServer) -> Client:
    client = start_server(ON).client("acme", timeout=120)
    register(client)
    return client


def test_a_call_makes_its_tool_be_found_for_other_words(acme: Client) -> None:
    before = [tool.model_name for tool in acme.route(LIKE_IT)]
    assert before[:1] != [TOOL], "it would prove nothing"
    call(acme, WISH)
    wait_until(lambda: first(acme, LIKE_IT) == TOOL)
    turn = acme.route(LIKE_IT, explain=True)
    assert turn.ranking is not None
    best = turn.ranking.candidates[0]
    assert best.model_name == TOOL
    assert best.memory > 0.2
    assert best.found_by in (FoundBy.MEMORY, FoundBy.OVERLAP)


def test_another_tenant_sees_nothing_of_it(start_server: StartServer) -> None:
    server = start_server(ON)
    with server.client("acme", timeout=120) as acme, server.client("other", timeout=120) as other:
        for client in (acme, other):
            register(client)
        before = [tool.model_name for tool in other.route(LIKE_IT)]
        call(acme, WISH)
        wait_until(lambda: first(acme, LIKE_IT) == TOOL)
        assert [tool.model_name for tool in other.route(LIKE_IT)] == before
        assert other.memory_stats().exemplars == 0


def test_nothing_is_remembered_unless_the_tenant_is_named(start_server: StartServer) -> None:
    server = start_server({**ON, "memory.tenants": "other"})
    with server.client("acme", timeout=120) as acme:
        register(acme)
        call(acme, WISH)
        time.sleep(0.5)
        stats = acme.memory_stats()
        assert (stats.enabled, stats.exemplars) == (False, 0)
    assert "toolgate_memory_observations_total 0" in server.get("/metrics")[1]


def test_what_is_cleared_is_gone(acme: Client) -> None:
    call(acme, WISH)
    wait_until(lambda: first(acme, LIKE_IT) == TOOL)
    stats = acme.memory_stats(server="slack")
    assert stats.enabled
    assert [(one.server, one.name, one.exemplars) for one in stats.tools] == [
        ("slack", "slack_add_reaction", 1)
    ]
    assert acme.clear_memory(server="git") == 0
    assert acme.clear_memory(server="slack", name="slack_add_reaction") == 1
    assert first(acme, LIKE_IT) != TOOL
    assert acme.memory_stats().exemplars == 0
    with invalid(field="name"):
        acme.clear_memory(name="slack_add_reaction")


def test_an_unregistered_server_is_forgotten(acme: Client) -> None:
    call(acme, WISH)
    wait_until(lambda: acme.memory_stats().exemplars == 1)
    acme.unregister_server("slack")
    assert acme.memory_stats().exemplars == 0


def test_a_restart_keeps_it_and_no_text_is_in_the_store(
    start_server: StartServer,
) -> None:
    server = start_server(ON)
    with server.client("acme", timeout=120) as acme:
        register(acme)
        call(acme, WISH)
    # A stop writes what was observed last.
    assert server.stop() == 0
    data = server.log.parent / "data"
    stored = b"".join(path.read_bytes() for path in data.iterdir() if path.is_file())
    assert b"slack_add_reaction" in stored
    assert b"Tom's message" not in stored
    server.start()
    with server.client("acme", timeout=120) as acme:
        wait_until(lambda: first(acme, LIKE_IT) == TOOL)


def test_one_who_calls_a_wrong_tool_for_ever_does_not_take_over(acme: Client) -> None:
    wish = "what is the time in Tokyo right now?"
    right = first(acme, wish)
    assert right.startswith("mcp__time__")
    turn = acme.route(wish, pinned_tools=[TOOL])
    for _ in range(10):
        verdicts = acme.gate(turn.handle, [Call(TOOL, ARGUMENTS)] * 100)
        assert all(verdict.allowed for verdict in verdicts)
    wait_until(lambda: acme.memory_stats().exemplars >= 1)
    time.sleep(0.5)
    assert acme.memory_stats().exemplars == 1, "a thousand calls for one intent are one"
    assert first(acme, wish) == right


def test_the_command_shows_and_clears(start_server: StartServer, binary: Path) -> None:
    server = start_server(ON)
    env = {"TOOLGATE_ENDPOINT": f"http://{server.target}", "TOOLGATE_TENANT": "acme"}
    with server.client("acme", timeout=120) as acme:
        register(acme)
        call(acme, WISH)
        wait_until(lambda: acme.memory_stats().exemplars == 1)
    shown = run(binary, "memory", "show", "--json", env=env)
    (tool,) = json.loads(shown.stdout)["tools"]
    assert (tool["server"], tool["name"], tool["exemplars"]) == ("slack", "slack_add_reaction", 1)
    cleared = run(binary, "memory", "clear", "--server", "slack", env=env)
    assert (cleared.returncode, cleared.stdout) == (0, "1 exemplar forgotten\n")
    assert "Nothing is remembered; memory is on" in run(binary, "memory", "show", env=env).stdout
