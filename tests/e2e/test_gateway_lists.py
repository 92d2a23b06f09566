"""Lists of tools at the gateway: kept texts, streams that begin with an empty event, reloads."""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gateway_process import GatewayProcess, Json, answer_of, message, plain_server
from plain_mcp_server import TOOLS
from toolgate_process import ToolgateProcess
from waiting import PATIENCE, wait_until

CHANGING = Path(__file__).with_name("changing_mcp_server.py")
HIDDEN = "{name: no-writing, match: {tools: [keep_note]}, denied: true}"


class Session:
    """A session of an older revision at one face."""

    def __init__(self, gateway: GatewayProcess, path: str, revision: str) -> None:
        self._gateway = gateway
        self._path = path
        self._headers = {"MCP-Protocol-Version": revision}
        opening = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        _, headers = self.events("initialize", opening)
        self._headers["Mcp-Session-Id"] = headers["mcp-session-id"]

    def events(self, method: str, params: Json) -> tuple[list[list[str]], dict[str, str]]:
        """The lines of each event of the answer to a request, and its headers."""
        body: Json = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        status, text, headers = self._gateway.send("POST", self._path, self._headers, body)
        assert status == 200, text
        events = [event.splitlines() for event in text.split("\n\n") if event]
        return events, dict(headers)


def names(tools: list[Json]) -> list[str]:
    """The names of the tools of servers."""
    return [tool["name"] for tool in tools if tool["name"] != "read_result"]


def test_long_lists_are_read_whole_and_shown_on_one_page(binary: Path, tmp_path: Path) -> None:
    config = plain_server("notes") + 'env = { PLAIN_TOOLS = "510" }\n'
    with GatewayProcess(binary, tmp_path, config) as gateway:
        of_server = [tool["name"] for tool in TOOLS] + [f"shelf_{n:04}" for n in range(510)]
        of_all = ["read_result", *sorted(f"notes__{name}" for name in of_server)]
        for path, wanted in ("/mcp/s/notes", of_server), ("/mcp/all", of_all):
            _, answer = gateway.post(path, message("tools/list", {}))
            assert [tool["name"] for tool in answer["result"]["tools"]] == wanted
            assert "nextCursor" not in answer["result"], "some hosts read no other page"


def test_a_denied_tool_is_not_called_where_its_server_does_not_list_it(
    binary: Path, tmp_path: Path
) -> None:
    face = "/mcp/s/notes"
    config = plain_server("notes") + "tools = { deny = ['shred_*'] }\n"
    with GatewayProcess(binary, tmp_path, config) as gateway:
        gateway.call("keep_note", {"text": "milk"}, face)
        refused = gateway.call("shred_note", {}, face)
        assert refused["isError"]
        assert "not let in by the gateway" in refused["content"][0]["text"]
        assert gateway.call("read_note", {}, face)["content"][0]["text"] == "milk"
        gateway.reload(plain_server("notes"), "was read again")
        assert "isError" not in gateway.call("shred_note", {}, face), "its server's to judge"
        assert gateway.call("read_note", {}, face)["content"][0]["text"] == ""


@pytest.mark.parametrize("path", ["/mcp", "/mcp/all", "/mcp/s/notes"])
def test_a_cursor_that_no_list_gave_is_refused(binary: Path, tmp_path: Path, path: str) -> None:
    with GatewayProcess(binary, tmp_path, plain_server("notes")) as gateway:
        _, answer = gateway.post(path, message("tools/list", {"cursor": "x"}))
        assert answer["error"]["code"] == -32602, answer
        assert "first page" in answer["error"]["message"]
        of_another = f"1-{'0' * 16}"
        _, answer = gateway.post(path, message("tools/list", {"cursor": of_another}))
        assert answer["error"]["code"] == -32602, answer
        assert "the list has changed" in answer["error"]["message"]
        if path == "/mcp/all":
            _, answer = gateway.post(path, message("prompts/list", {"cursor": "x"}))
            assert answer["error"]["code"] == -32602, answer


@pytest.mark.parametrize("path", ["/mcp", "/mcp/all", "/mcp/s/notes"])
def test_hosts_of_2025_11_25_alone_are_sent_an_empty_event_first(
    binary: Path, tmp_path: Path, path: str
) -> None:
    with GatewayProcess(binary, tmp_path, plain_server("notes")) as gateway:
        newer, _ = Session(gateway, path, "2025-11-25").events("tools/list", {})
        older, _ = Session(gateway, path, "2025-06-18").events("tools/list", {})
    priming, answer = newer
    assert {line.split(":")[0] for line in priming} == {"id", "data", "retry"}
    assert "data:" in [line.strip() for line in priming]
    assert answer_of("\n".join(answer))["id"] == 7
    (only,) = older
    assert answer_of("\n".join(only))["result"] == answer_of("\n".join(answer))["result"]


def test_a_list_that_is_kept_is_that_of_who_may_see_it(
    binary: Path, server: ToolgateProcess, tenant: str, tmp_path: Path
) -> None:
    plane = ("--server", server.target, "--tenant", tenant)
    faces = ["/mcp/all", "/mcp/s/notes"]
    with GatewayProcess(binary, tmp_path, plain_server("notes"), plane) as gateway:
        first = [gateway.tools(path) for path in faces]
        again = [gateway.tools(path) for path in faces]
        with server.client(tenant) as client:
            client.set_policy(f"rules: [{HIDDEN}]")
            hidden = [gateway.tools(path) for path in faces]
            client.set_policy("rules: []")
            shown = [gateway.tools(path) for path in faces]
    assert first == again == shown
    assert first[1] == TOOLS
    for before, after in zip(first, hidden, strict=True):
        assert [tool for tool in before if "keep_note" not in tool["name"]] == after
        assert len(after) == len(before) - 1


def test_a_definition_that_changed_is_listed_as_it_is_now(binary: Path, tmp_path: Path) -> None:
    tools = tmp_path / "names.txt"
    tools.write_text("dig_bed")
    command = json.dumps([sys.executable, str(CHANGING), str(tools)])
    with GatewayProcess(binary, tmp_path, f"[server.shed]\ncommand = {command}\n") as gateway:
        assert names(gateway.tools("/mcp/all")) == ["shed__dig_bed"]
        tools.write_text("dig_bed rake_path")
        status, _, _ = gateway.send("POST", "/gateway/restart/shed", {}, {})
        assert status == 202
        all_of_it = ["shed__dig_bed", "shed__rake_path"]
        wait_until(lambda: names(gateway.tools("/mcp/all")) == all_of_it)
        wait_until(lambda: names(gateway.tools("/mcp/s/shed")) == ["dig_bed", "rake_path"])


def test_lists_amid_a_reload_are_whole(binary: Path, tmp_path: Path) -> None:
    whole = plain_server("notes") + plain_server("other")
    fewer = whole + "tools = { deny = ['keep_note'] }\n"
    stop = threading.Event()
    of_notes = [f"notes__{tool['name']}" for tool in TOOLS]
    of_other = [f"other__{tool['name']}" for tool in TOOLS]
    seen: set[int] = set()

    def list_on(gateway: GatewayProcess) -> int:
        count = 0
        while not stop.is_set():
            status, answer = gateway.post("/mcp/all", message("tools/list", {}))
            assert status == 200, answer
            listed = names(answer["result"]["tools"])
            assert set(of_notes) <= set(listed) <= {*of_notes, *of_other}, listed
            assert len(listed) == len(set(listed))
            seen.add(len(listed))
            count += 1
        return count

    with GatewayProcess(binary, tmp_path, whole) as gateway, ThreadPoolExecutor(4) as pool:
        listing = [pool.submit(list_on, gateway) for _ in range(4)]
        for config in [fewer, whole, fewer]:
            gateway.reload(config, "was read again")
        expected = sorted({*of_notes, *of_other} - {"other__keep_note"})
        wait_until(lambda: sorted(names(gateway.tools("/mcp/all"))) == expected)
        stop.set()
        assert all(done.result(PATIENCE) > 0 for done in listing)
    assert len(expected) in seen
