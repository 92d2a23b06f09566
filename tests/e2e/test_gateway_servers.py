"""Servers behind `toolgate gateway`: an old transport, headers of hosts, a file that changes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gateway_process import GatewayProcess, Json, message, plain_server, text_of
from toolgate_command import run
from toolgate_process import ToolgateProcess, free_port
from waiting import PATIENCE, wait_until

OLD = Path(__file__).with_name("old_mcp_server.py")
MIRRORING = Path(__file__).with_name("mirroring_mcp_server.py")


@contextmanager
def old_server(port: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Runs a server of the old transport; gives its URL."""
    with subprocess.Popen(
        [sys.executable, str(OLD)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PORT": port},
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def servers(binary: Path, gateway: GatewayProcess) -> dict[str, Json]:
    """The gateway's servers by name, as `status` tells them."""
    told = run(binary, "gateway", "status", "--json", "--url", gateway.url)
    return {server["name"]: server for server in json.loads(told.stdout)["servers"]}


def test_a_server_of_the_old_transport_is_used_and_found_again(
    binary: Path, tmp_path: Path
) -> None:
    # Of its own, so that nobody else has the port while the server is away.
    port = str(free_port())
    with old_server(port) as (url, process):
        config = f'[server.old]\nurl = "{url}"\n' + plain_server("notes")
        with GatewayProcess(binary, tmp_path, config) as gateway:
            status = servers(binary, gateway)["old"]
            assert status["transport"] == "sse"
            assert status["tools"] == 2
            add: Json = {"name": "old__add", "arguments": {"a": 2, "b": 3}}
            assert gateway.text("call_tool", add) == "5"
            assert gateway.text("add", {"a": 2, "b": 3}, "/mcp/s/old") == "5"
            lost = gateway.call("call_tool", {"name": "old__leave", "arguments": {}})
            assert lost["isError"] is True
            process.wait(PATIENCE)
            with old_server(port):
                # A call while it pauses starts it at once, but only once.
                wait_until(lambda: text_of(gateway.call("call_tool", add)) == "5")


@pytest.fixture(scope="module")
def mirroring(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    command = json.dumps([sys.executable, str(MIRRORING)])
    config = f"[server.regions]\ncommand = {command}\n"
    process = GatewayProcess(binary, tmp_path_factory.mktemp("gateway"), config).start()
    yield process
    assert process.stop() == 0


@pytest.mark.parametrize(
    ("path", "tool"), [("/mcp/s/regions", "place"), ("/mcp/all", "regions__place")]
)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Mcp-Param-Region": "eu"}, 200),
        ({"Mcp-Param-Region": "=?base64?ZXU=?="}, 200),
        ({"Mcp-Param-Region": "us"}, 400),
        ({}, 400),
    ],
)
def test_headers_of_hosts_say_what_their_arguments_say(
    mirroring: GatewayProcess, path: str, tool: str, headers: dict[str, str], status: int
) -> None:
    call = message("tools/call", {"name": tool, "arguments": {"region": "eu"}})
    answered, answer = mirroring.post(path, call, headers)
    assert answered == status, answer
    if status == 200:
        assert text_of(answer["result"]) == "eu"
    else:
        assert answer["error"]["code"] == -32020


def test_the_file_is_read_again(binary: Path, tmp_path: Path) -> None:
    first = plain_server("notes") + plain_server("other")
    with GatewayProcess(binary, tmp_path, first) as gateway:
        kept = gateway.text("call_read_tool", {"name": "notes__process_id"})
        gateway.reload("[server.a]\ncolour = 1\n", "unknown field")
        assert set(servers(binary, gateway)) == {"notes", "other"}
        third = plain_server("notes") + plain_server("third", trust="untrusted")
        gateway.reload(third, "third: ready")
        assert set(servers(binary, gateway)) == {"notes", "third"}
        assert gateway.text("call_read_tool", {"name": "notes__process_id"}) == kept
        status, _ = gateway.post("/mcp/s/other", message("tools/list", {}))
        assert status == 404
        gone = gateway.call("call_tool", {"name": "other__process_id", "arguments": {}})
        assert gone["isError"] is True


def test_what_the_plane_has_lost_is_registered_again(binary: Path, tmp_path: Path) -> None:
    plane = ToolgateProcess(binary, tmp_path / "plane").start()
    names = ("--server", plane.target, "--tenant", "acme")
    servers = plain_server("notes") + plain_server("other")
    try:
        with GatewayProcess(binary, tmp_path, servers, names) as gateway:

            def is_found() -> bool:
                found = gateway.text("discover_tools", {"query": "select:notes__keep_note"})
                return "notes__keep_note#" in found

            def listed() -> set[str]:
                return {tool["name"].split("__")[0] for tool in gateway.tools("/mcp/all")}

            assert is_found()
            whole = listed()
            with plane.client("acme") as client:
                client.unregister_server("notes")
                wait_until(is_found)
                client.unregister_server("other")
            wait_until(lambda: listed() == whole)
            # A new database has no catalog at all.
            assert plane.stop() == 0
            shutil.rmtree(plane.folder / "data")
            plane.start_again()
            wait_until(is_found)
            wait_until(lambda: listed() == whole)
    finally:
        plane.stop()


def test_a_server_with_more_tools_than_the_plane_takes_is_told_once(
    binary: Path, tmp_path: Path
) -> None:
    few = ("--data-dir", str(tmp_path / "data"), "--set", "limits.max_tools_per_registration=3")
    refused = "none of its tools can be found or called: "
    gateway = GatewayProcess(binary, tmp_path, plain_server("notes"), few)
    try:
        gateway.start(refused)
        [line] = [line for line in gateway.said if refused in line]
        status = servers(binary, gateway)["notes"]
        # What changes is tried at once.
        filtered = plain_server("notes") + 'tools = { deny = ["process_id"] }\n'
        gateway.reload(filtered, "notes: ready in")
        assert refused not in gateway.said[-1]
        after = servers(binary, gateway)["notes"]
        logged = [line for line in gateway.said if "tools were refused" in line]
    finally:
        gateway.stop()
    assert line.startswith("notes: ready in ")
    for told in (line, status["problem"]):
        assert "limits.max_tools_per_registration: 4 is more than the 3 allowed" in told
        assert "let fewer of its 4 tools in (server.notes.tools), or raise the limit" in told
    assert (status["state"], status["is_searchable"]) == ("ready", False)
    assert (after["problem"], after["is_searchable"]) == ("", True)
    assert len(logged) == 1, gateway.said


def test_a_change_of_the_file_is_taken_without_a_signal(binary: Path, tmp_path: Path) -> None:
    with GatewayProcess(binary, tmp_path, plain_server("notes")) as gateway:
        gateway.change(plain_server("notes") + plain_server("third"), "third: ready")
        assert set(servers(binary, gateway)) == {"notes", "third"}
