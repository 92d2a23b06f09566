"""Servers that are not there yet: their tools are known from earlier, and calls wait for them."""

import json
import subprocess
import sys
import threading
from pathlib import Path

from gateway_process import GatewayProcess, plain_server, starts, text_of
from waiting import PATIENCE

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
        calling.join(PATIENCE)
    finally:
        gateway.stop()
    assert results == ["kept"]


def test_b13_by_default_a_search_of_the_gateway_names_servers_that_were_never_there_yet(
    binary: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    entry = held_server("held", gate).replace('trust = "trusted"\n', "")
    gateway = GatewayProcess(binary, tmp_path, entry)
    gateway.start("serving on")
    try:
        none = gateway.text("discover_tools", {"query": "keep a note"})
        assert "held__" not in none, none
        assert "Not there yet: held (starting)" in none
        gate.touch()
        gateway.wait_for("behind discover_tools")
        found = gateway.text("discover_tools", {"query": "keep a note"})
        assert "held__keep_note#" in found, found
        assert "Not there yet" not in found
    finally:
        gateway.stop()


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


def test_a_server_whose_variable_is_missing_waits_and_the_others_serve(
    binary: Path, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    log = tmp_path / "log"
    hub = plain_server("hub") + (
        f'env = {{ HUB_TOKEN = "file:{token}", B = "env:PLAIN_NOT_SET", '
        f"PLAIN_LOG = {json.dumps(str(log))} }}\n"
    )
    gateway = GatewayProcess(binary, tmp_path, plain_server("notes", trust="standard") + hub)
    with gateway:
        said = "".join(gateway.said)
        assert "hub: waiting: set PLAIN_NOT_SET; " in said, said
        assert "1 of 2 servers ready: 4 tools behind discover_tools" in said
        gateway.wait_for("a host starts with")
        gateway.wait_for("3 tools say that they only read (notes 3)")
        assert 'trust = "trusted" in [server.notes]' in gateway.said[-1]
        keep = {"name": "notes__keep_note", "arguments": {"text": "a"}}
        assert gateway.text("call_tool", keep) == "kept"
        found = gateway.text("discover_tools", {"query": "keep a note"})
        assert "Not there yet: hub (waiting: set PLAIN_NOT_SET" in found, found
        status: list[str | Path] = [binary, "gateway", "status", "--url", gateway.url]
        shown = subprocess.run(status, capture_output=True, text=True, check=True).stdout
        assert "waiting" in shown
        assert "set PLAIN_NOT_SET" in shown
        assert "3 tools say that they only read (notes 3)" in shown
        restart: list[str | Path] = [binary, "gateway", "restart", "hub", "--url", gateway.url]
        refused = subprocess.run(restart, capture_output=True, text=True, check=False)
        assert refused.returncode == 3
        assert "hub waits, and is not started: set PLAIN_NOT_SET" in refused.stderr
        code, said_why, _ = gateway.send("POST", "/gateway/restart/hub", {}, {})
        assert code == 409, said_why
        assert not log.exists(), "nothing is started"
        token.write_text("t")
        config = (tmp_path / "gateway.toml").read_text()
        gateway.reload(config.replace("env:PLAIN_NOT_SET", "1"), "hub: ready")
        assert starts(log) == 1


def test_a_server_waits_for_its_file_until_sighup_and_goes_on_without_it(
    binary: Path, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    log = tmp_path / "log"
    hub = plain_server("hub") + (
        f'env = {{ HUB_TOKEN = "file:{token}", PLAIN_LOG = {json.dumps(str(log))} }}\n'
    )
    config = plain_server("notes") + hub
    gateway = GatewayProcess(binary, tmp_path, config)
    with gateway:
        assert f"hub: waiting: {token} can't be read" in "".join(gateway.said), gateway.said
        token.write_text("t")
        gateway.reload(config, "hub: ready")
        assert starts(log) == 1
        token.unlink()
        gateway.reload(config, "gateway.toml was read again")
        assert "the server goes on with the values that it has" in "".join(gateway.said)
        assert gateway.text("call_tool", {"name": "hub__keep_note", "arguments": {"text": "x"}})
        assert starts(log) == 1
