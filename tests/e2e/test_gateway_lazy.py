"""Servers that are started by their first call: what is known of them, and how they start."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gateway_process import GatewayProcess, Json, logged_server, message, messages, starts
from plain_mcp_server import URI

LISTS = {"prompts/list": "prompts", "resources/list": "resources"}


def listed(gateway: GatewayProcess, method: str, path: str = "/mcp") -> list[Json]:
    status, answer = gateway.post(path, message(method, {}))
    assert status == 200, answer
    items: list[Json] = answer["result"][LISTS[method]]
    return items


def test_what_a_lazy_server_has_is_known_before_it_is_started(binary: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    config = logged_server("notes", log, start="lazy")
    with GatewayProcess(binary, tmp_path, config) as gateway:
        assert "notes__read_note" in gateway.text("discover_tools", {"query": "notes"})
        assert listed(gateway, "prompts/list") == [{"name": "notes__greet", "novel": 1.0}]
        assert listed(gateway, "resources/list") == [{"uri": f"notes+{URI}", "name": "note"}]
        assert starts(log) == 1, "nothing of this has started it again"
        assert len(messages(log, "prompts/list")) == 1
        status, answer = gateway.post("/mcp", message("prompts/get", {"name": "notes__greet"}))
        assert status == 200, answer
        assert answer["result"]["messages"]
        assert starts(log) == 2
        # It is asked now that it is there.
        assert listed(gateway, "prompts/list") == [{"name": "notes__greet", "novel": 1.0}]
        assert len(messages(log, "prompts/list")) == 2


def test_the_face_of_a_lazy_server_starts_it(binary: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    config = logged_server("notes", log, start="lazy")
    with GatewayProcess(binary, tmp_path, config) as gateway:
        assert len(gateway.tools("/mcp/s/notes")) == 4
        assert starts(log) == 1
        assert listed(gateway, "prompts/list", "/mcp/s/notes") == [{"name": "greet", "novel": 1.0}]
        assert starts(log) == 2


def test_twenty_first_calls_at_once_start_it_once(binary: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    config = logged_server("notes", log, start="lazy")
    with GatewayProcess(binary, tmp_path, config) as gateway:
        assert starts(log) == 1

        def process(_: int) -> str:
            return gateway.text("call_read_tool", {"name": "notes__process_id"})

        with ThreadPoolExecutor(20) as threads:
            processes = set(threads.map(process, range(20)))
        assert len(processes) == 1
        assert processes.pop().isdigit()
        assert starts(log) == 2


def test_a_changed_entry_of_a_lazy_server_is_put_off_as_well(binary: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    config = logged_server("notes", log, start="lazy")
    with GatewayProcess(binary, tmp_path, config) as gateway:
        gateway.text("call_read_tool", {"name": "notes__process_id"})
        gateway.reload(config + 'tools = { deny = ["keep_note"] }\n', "was read again")
        assert starts(log) == 2, "what the gateway itself filters is no other server"
        changed = config.replace("PLAIN_LOG", 'OTHER = "1", PLAIN_LOG')
        gateway.reload(changed, "notes: idle")
        assert starts(log) == 3
        assert listed(gateway, "prompts/list") == [{"name": "notes__greet", "novel": 1.0}]
        assert starts(log) == 3
