"""Memory of MCP hosts behind a gateway: a search in a model's own words, and the call behind it."""

import json
from pathlib import Path

from conftest import StartServer
from gateway_process import GatewayProcess, plain_server
from toolgate_command import run
from waiting import wait_until

WISH = "please keep a note of the meeting with Tom for later"
ON = {"memory.tenants": "acme,default", "memory.refresh_interval": "100ms"}
KEEP = {"name": "notes__keep_note", "arguments": {"text": "x"}}


def search_and_call(gateway: GatewayProcess) -> None:
    """Does what a host's model does."""
    assert "notes__keep_note#" in gateway.text("discover_tools", {"query": WISH})
    assert gateway.text("call_tool", KEEP) == "kept"


def test_a_search_and_the_call_behind_it_are_remembered(
    start_server: StartServer, binary: Path, tmp_path: Path
) -> None:
    server = start_server(ON)
    plane = ("--server", server.target, "--tenant", "acme")
    with server.client("acme", timeout=120) as acme:
        with GatewayProcess(binary, tmp_path, plain_server("notes"), plane) as gateway:
            assert gateway.text("call_tool", KEEP) == "kept"
            gateway.text("discover_tools", {"query": "select:notes__read_note"})
            search_and_call(gateway)
            wait_until(lambda: acme.memory_stats().exemplars == 1)
            assert [tool.name for tool in acme.memory_stats().tools] == ["keep_note"]
        assert not any("meeting" in line for line in gateway.said), "an intent is in no log"
    assert "meeting" not in server.log.read_text()


def test_a_gateway_with_its_own_plane_remembers_where_its_tenant_is_named(
    binary: Path, tmp_path: Path
) -> None:
    settings = ("--set", "memory.tenants=default", "--set", "memory.refresh_interval=100ms")
    plane = ("--data-dir", str(tmp_path / "data"), *settings)
    with GatewayProcess(binary, tmp_path, plain_server("notes"), plane) as gateway:
        [line] = [line for line in gateway.said if "routing plane on " in line]
        endpoint = line.split("routing plane on ")[1].strip()
        search_and_call(gateway)

        def remembered() -> int:
            shown = run(binary, "memory", "show", "--json", "--endpoint", endpoint)
            assert shown.returncode == 0, shown.stderr
            count: int = json.loads(shown.stdout)["exemplars"]
            return count

        wait_until(lambda: remembered() == 1)
