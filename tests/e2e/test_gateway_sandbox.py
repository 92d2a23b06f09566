"""Servers' programs in their sandboxes: files, TCP, and what can't be started."""

import ctypes
import json
import socket
import sys
from pathlib import Path

import pytest
from gateway_process import GatewayProcess

REACHING = Path(__file__).with_name("reaching_mcp_server.py")

# landlock_create_ruleset with the flag that asks for the version; TCP needs the fourth.
VERSION = ctypes.CDLL(None).syscall(444, None, 0, 1) if sys.platform == "linux" else 0
pytestmark = pytest.mark.skipif(VERSION < 4, reason="the kernel has no Landlock with TCP")


def entry(sandbox: dict[str, object]) -> str:
    """Returns the entry of a server with a sandbox."""
    keys = ", ".join(f"{key} = {json.dumps(value)}" for key, value in sandbox.items())
    command = json.dumps([sys.executable, str(REACHING)])
    return f"[server.far]\ncommand = {command}\nsandbox = {{ {keys} }}\n"


def python() -> list[str]:
    """The folders that the interpreter and its server need."""
    return [sys.prefix, sys.base_prefix, str(REACHING.parent)]


def tried(gateway: GatewayProcess, name: str, what: object) -> str:
    """What came of a try of the server."""
    call = {"name": f"far__{name}", "arguments": {"what": str(what)}}
    return gateway.text("call_tool", call)


@pytest.mark.parametrize("network", [False, True])
def test_a_program_has_its_files_alone_and_tcp_where_it_may(
    binary: Path, tmp_path: Path, network: bool
) -> None:
    folders = {name: tmp_path / name for name in ["shown", "given", "hidden"]}
    for folder in folders.values():
        folder.mkdir()
        (folder / "file").write_text("text")
    sandbox = {
        "read": [*python(), str(folders["shown"])],
        "write": [str(folders["given"])],
        "network": network,
    }
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        GatewayProcess(binary, tmp_path, entry(sandbox)) as gateway,
    ):
        outcomes = {
            (verb, name): tried(gateway, verb, folder / "file")
            for name, folder in folders.items()
            for verb in ["read", "write"]
        }
        refused = "PermissionError"
        assert outcomes == {
            ("read", "shown"): "done",
            ("write", "shown"): refused,
            ("read", "given"): "done",
            ("write", "given"): "done",
            ("read", "hidden"): refused,
            ("write", "hidden"): refused,
        }
        assert (folders["hidden"] / "file").read_text() == "text"
        port = listener.getsockname()[1]
        assert tried(gateway, "connect", port) == ("done" if network else refused)


def test_a_program_outside_of_its_sandbox_is_not_started(binary: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec cat\n")
    program.chmod(0o755)
    config = f"[server.far]\ncommand = [{json.dumps(str(program))}]\nsandbox = {{}}\n"
    gateway = GatewayProcess(binary, tmp_path, config)
    gateway.start("can't be started within its sandbox")
    assert gateway.stop() == 0
