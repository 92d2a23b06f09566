"""Servers that are not there yet: their tools are known from earlier, and calls wait for them."""

import json
import sys
import threading
from pathlib import Path

from gateway_process import GatewayProcess, plain_server, text_of

PLAIN = Path(__file__).with_name("plain_mcp_server.py")


def held_server(name: str, gate: Path) -> str:
    """The entry of a server that starts once a file is there."""
    waiting = (
        f"while not __import__('os').path.exists({str(gate)!r}): __import__('time').sleep(0.01)"
    )
    starting = f"{waiting}\n__import__('runpy').run_path({str(PLAIN)!r}, run_name='__main__')"
    command = json.dumps([sys.executable, "-c", starting])
    return f'[server.{name}]\ncommand = {command}\ntrust = "trusted"\n'


def test_tools_are_found_and_called_before_their_server_is_there(
    binary: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    config = held_server("held", gate) + plain_server("notes")
    gateway = GatewayProcess(binary, tmp_path, config)
    with gateway:
        pass
    gate.unlink()
    gateway.start("notes: ready")
    try:
        found = gateway.text("discover_tools", {"query": "select:held__read_note,held__keep_note"})
        assert "held__read_note#" in found, found
        assert "\n  read: Read the note" in found
        assert "Not there yet: held (starting)" in found
        assert "held__keep_note" in [tool["name"] for tool in gateway.tools("/mcp/all")]
        results: list[str] = []
        call = {"name": "held__keep_note", "arguments": {"text": "x"}}
        calling = threading.Thread(
            target=lambda: results.append(gateway.text("call_tool", call)), daemon=True
        )
        calling.start()
        gate.touch()
        calling.join(60)
    finally:
        gateway.stop()
    assert results == ["kept"]


def test_a_call_that_waited_long_enough_says_that_the_server_is_starting(
    binary: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    entry = held_server("held", gate)
    gateway = GatewayProcess(binary, tmp_path, entry)
    with gateway:
        pass
    gate.unlink()
    short = '[gateway]\ncall_timeout = "100ms"\n'
    gateway = GatewayProcess(binary, tmp_path, short + entry)
    gateway.start("serving on")
    try:
        gateway.text("discover_tools", {"query": "a note"})
        call = {"name": "held__keep_note", "arguments": {"text": "x"}}
        refused = gateway.call("call_tool", call)
    finally:
        gateway.stop()
    assert refused["isError"] is True
    assert "held is starting" in text_of(refused)
