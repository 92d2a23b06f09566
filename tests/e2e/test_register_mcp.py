"""`toolgate register --mcp`: tools come from MCP servers themselves, and are followed."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from raw_mcp_server import tools
from toolgate_command import run
from toolgate_process import ToolgateProcess, free_port
from waiting import PATIENCE

GROWING = Path(__file__).with_name("raw_mcp_server.py")
PYTHON = shlex.quote(sys.executable)
SERVES_HTTP = """
import sys
from mcp.server.fastmcp import FastMCP
server = FastMCP("weather", host="127.0.0.1", port=int(sys.argv[1]), {mode})
@server.tool(description="Tell the weather of a place.")
def forecast(place: str) -> str:
    return "sunny"
server.run("streamable-http")
"""


@pytest.fixture
def to(server: ToolgateProcess, tenant: str) -> dict[str, str]:
    return {"TOOLGATE_ENDPOINT": f"http://{server.target}", "TOOLGATE_TENANT": tenant}


def growing(log: Path) -> str:
    return f"{PYTHON} {shlex.quote(str(GROWING))} {shlex.quote(str(log))}"


def test_real_servers_are_listed_side_by_side(
    binary: Path, server: ToolgateProcess, tenant: str, to: dict[str, str]
) -> None:
    sources = ["--mcp", f"{PYTHON} -m mcp_server_time", "--mcp", f"{PYTHON} -m mcp_server_git"]
    done = run(binary, "register", *sources, env=to)
    assert done.returncode == 0, done.stderr
    with server.client(tenant) as client:
        names = {known.name: known.tool_count for known in client.list_servers()}
        registered = {tool.name: tool.definition for tool in client.list_tools("mcp-git")}
    assert names == {"mcp-time": 2, "mcp-git": len(registered)}
    assert registered["git_status"]["annotations"]["readOnlyHint"] is True
    assert "mcp-time: 2 tools" in done.stderr


def test_definitions_are_registered_with_their_bytes(
    binary: Path, server: ToolgateProcess, tenant: str, to: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    done = run(binary, "register", "--mcp", growing(log), env={**to, "SECRET": "x"})
    assert done.returncode == 0, done.stderr
    with server.client(tenant) as client:
        [tool] = client.list_tools("growing")
    assert tool.definition_json == tools(1)
    environment, *methods = log.read_text().splitlines()
    assert "SECRET" not in environment.split(), "nothing is inherited by accident"
    assert "tools/list" in methods
    assert methods[-1] == "input ended", "the process was asked to leave, and left"


def test_variables_are_passed_by_name(binary: Path, to: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    variables = ["--env", "SECRET", "--env", "REGION=north"]
    source = ["register", "--mcp", growing(log)]
    done = run(binary, *source, *variables, env={**to, "SECRET": "x"})
    assert done.returncode == 0, done.stderr
    environment = log.read_text().splitlines()[0].split()
    assert {"SECRET", "REGION"} <= set(environment)
    done = run(binary, *source, "--env", "ABSENT", env=to)
    assert done.returncode == 2
    assert "the variable ABSENT is not set" in done.stderr


def test_a_change_is_followed_until_the_command_is_ended(
    binary: Path, server: ToolgateProcess, tenant: str, to: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    command = [str(binary), "register", "--mcp", growing(log), "--watch"]
    with subprocess.Popen(
        command, env={**os.environ, **to}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        lines = iter(watching.stdout.readline, "")
        assert any(line.startswith("growing: 1 accepted, catalog revision") for line in lines)
        with server.client(tenant) as client:
            assert {tool.name for tool in client.list_tools("growing")} == {"tool_1", "tool_2"}
        watching.send_signal(signal.SIGINT)
        _rest, said = watching.communicate(timeout=PATIENCE)
    assert watching.returncode == 130, said
    assert "following 1 MCP server" in said


@pytest.mark.parametrize(
    "mode", ["stateless_http=True, json_response=True", "stateless_http=False"]
)
def test_a_server_behind_a_url_is_listed(
    mode: str, binary: Path, server: ToolgateProcess, tenant: str, to: dict[str, str]
) -> None:
    with serving(SERVES_HTTP.format(mode=mode)) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        done = run(
            binary,
            "register",
            "--mcp",
            url,
            "--header",
            "X-Team: env:TEAM",
            env={**to, "TEAM": "a"},
        )
    assert done.returncode == 0, done.stderr
    with server.client(tenant) as client:
        [tool] = client.list_tools("weather")
    assert tool.definition["description"] == "Tell the weather of a place."


def test_what_cannot_be_listed_is_said(binary: Path, to: dict[str, str]) -> None:
    failing = f"{PYTHON} -c \"import sys; sys.exit('no key was given')\""
    flooding = f"{PYTHON} -c \"while True: print('x' * 1_000_000, end='')\""
    for mcp, words in [
        ("/absent/server", "/absent/server cannot be started"),
        (flooding, "the handshake failed"),
        (failing, "no key was given"),
        ("http://tools.example/mcp", "must begin with https://"),
        ("''", "names no command"),
        ("http://127.0.0.1:9/mcp", "the handshake failed"),
    ]:
        done = run(binary, "register", "--mcp", mcp, env=to)
        assert done.returncode in (1, 2), (mcp, done.stdout)
        assert words in done.stderr, (mcp, done.stderr)


def test_one_server_that_fails_does_not_stop_the_other(
    binary: Path, server: ToolgateProcess, tenant: str, to: dict[str, str]
) -> None:
    sources = ["--mcp", "/absent/server", "--mcp", f"{PYTHON} -m mcp_server_time"]
    done = run(binary, "register", *sources, env=to)
    assert done.returncode == 1
    assert "/absent/server cannot be started" in done.stderr
    with server.client(tenant) as client:
        assert [known.name for known in client.list_servers()] == ["mcp-time"]


@contextmanager
def serving(program: str) -> Iterator[int]:
    """Runs a program that serves on a port, which it is given."""
    port = free_port()
    command = [sys.executable, "-c", program, str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = iter(process.stderr.readline, "")
        assert any("running on" in line for line in said), "it did not start"
        try:
            yield port
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)
