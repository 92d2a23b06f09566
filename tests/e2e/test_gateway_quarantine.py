"""Tools that wait for approval, behind a gateway: listed nowhere, not found, and not called."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gateway_process import GatewayProcess, Json, text_of
from test_quarantine import HARMLESS, POISON
from toolgate_command import run
from toolgate_process import ToolgateProcess
from waiting import wait_until

from toolgate import Client

POISONED = Path(__file__).with_name("poisoned_mcp_server.py")
ALWAYS_ON = '[gateway]\nalways_on = ["sea__tides", "sea__moon"]\n'
FACES = ["/mcp", "/mcp/all", "/mcp/s/sea"]
HARMLESS_TOO = f"{HARMLESS} Now for two days."


class Sea:
    """A gateway before a server with a tool of a bad text, and the plane that it asks."""

    def __init__(self, gateway: GatewayProcess, plane: Client) -> None:
        self.gateway = gateway
        self.plane = plane

    def listed(self) -> list[list[str]]:
        """The names of the server's tools that each face lists."""
        tools = [self.gateway.tools(face) for face in FACES]
        names = [[tool["name"].removeprefix("sea__") for tool in face] for face in tools]
        return [sorted({"tides", "moon"} & set(face)) for face in names]

    def found(self) -> list[str]:
        """Returns the answers of searches by words, by name and by server."""
        queries = ["read the tides of a harbour", "select:sea__tides", "sea"]
        return [self.gateway.text("discover_tools", {"query": query}) for query in queries]

    def called(self) -> list[Json]:
        """The answers of a call in each way that there is."""
        named = {"name": "sea__tides", "arguments": {}}
        call = self.gateway.call
        return [
            call("call_read_tool", named),
            call("call_tool", named),
            call("sea__tides", {}),
            call("sea__tides", {}, "/mcp/all"),
            call("tides", {}, "/mcp/s/sea"),
        ]

    def approve(self) -> None:
        """Approves the tool as it is now."""
        (tides,) = [tool for tool in self.plane.list_tools() if tool.name == "tides"]
        assert self.plane.approve_tools("sea", {"tides": tides.hash}).refusals == {}

    def is_quarantined(self) -> bool:
        """Returns True if the plane keeps the tool from agents."""
        return any(tool.quarantined for tool in self.plane.list_tools())


def config(text: Path, **settings: str) -> str:
    command = json.dumps([sys.executable, str(POISONED), str(text)])
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    lines.append('tools = { read_only = ["tides"] }')
    return "\n".join([ALWAYS_ON + "[server.sea]", f"command = {command}", *lines, ""])


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """The file with the text of the tool."""
    return tmp_path / "tides.txt"


@contextmanager
def started(
    binary: Path, plane: ToolgateProcess, tenant: str, config: str, folder: Path
) -> Iterator[Sea]:
    names = ("--server", plane.target, "--tenant", tenant)
    with plane.client(tenant) as client, GatewayProcess(binary, folder, config, names) as gateway:
        yield Sea(gateway, client)


@pytest.fixture
def sea(
    binary: Path, server: ToolgateProcess, tenant: str, text: Path, tmp_path: Path
) -> Iterator[Sea]:
    text.write_text(POISON)
    with started(binary, server, tenant, config(text), tmp_path) as sea:
        yield sea


def test_a_poisoned_tool_is_nowhere_until_it_is_approved(sea: Sea) -> None:
    assert sea.listed() == [["moon"]] * len(FACES)
    assert not any("sea__tides#" in shown or HARMLESS in shown for shown in sea.found())
    for refused in sea.called():
        assert refused["isError"] is True
        assert "ran" not in text_of(refused)
        assert POISON not in text_of(refused)
    sea.approve()
    assert sea.listed() == [["moon", "tides"]] * len(FACES)
    assert all("sea__tides#" in shown for shown in sea.found())
    assert [text_of(done) for done in sea.called()] == ["tides ran"] * 5


def test_what_was_approved_is_not_what_it_becomes(
    binary: Path, server: ToolgateProcess, tenant: str, text: Path, tmp_path: Path
) -> None:
    text.write_text(HARMLESS)
    with started(binary, server, tenant, config(text, trust="untrusted"), tmp_path) as sea:
        assert sea.listed() == [["moon", "tides"]] * len(FACES)
        text.write_text(HARMLESS_TOO)
        status, _, _ = sea.gateway.send("POST", "/gateway/restart/sea", {}, {})
        assert status == 202
        wait_until(sea.is_quarantined)
        # The gateway hears of it by the plane's answer, shortly after the plane lists it.
        wait_until(lambda: sea.listed() == [["moon"]] * len(FACES))
        assert not any("sea__tides#" in shown or HARMLESS in shown for shown in sea.found())
        assert all(refused["isError"] is True for refused in sea.called())
        sea.approve()
        assert sea.listed() == [["moon", "tides"]] * len(FACES)
        assert HARMLESS_TOO in [tool["description"] for tool in sea.gateway.tools("/mcp/s/sea")]


def test_a_person_approves_a_tool_of_a_gateway_with_its_own_plane(
    binary: Path, text: Path, tmp_path: Path
) -> None:
    text.write_text(POISON)
    usual = {"TOOLGATE_STORE_PATH": str(tmp_path)}
    plane = ("--data-dir", str(tmp_path / "gateway"))
    with GatewayProcess(binary, tmp_path, config(text), plane) as gateway:
        gateway.wait_for("tides waits for approval")
        command = re.search(r"\(toolgate (catalog approve [^)]*)\)", gateway.said[-1])
        assert command, gateway.said
        status = run(binary, "gateway", "status", "--url", gateway.url)
        assert re.search("^sea: tides waits for approval .toolgate catalog", status.stdout, re.M)
        assert command.group(1) in status.stdout
        asked = command.group(1).split()
        address = asked[asked.index("--endpoint") + 1]
        assert address.startswith("http://127.0.0.1:"), "commands look for it elsewhere"
        asked[-1] = "gateway"
        approved = run(binary, *asked, env=usual)
        assert approved.returncode == 0, approved.stderr
        assert "sea__tides#" in gateway.text("discover_tools", {"query": "select:sea__tides"})
        status = run(binary, "gateway", "status", "--url", gateway.url)
        assert "waits for approval" not in status.stdout
    gone = run(binary, *asked, env=usual)
    assert gone.returncode == 4
