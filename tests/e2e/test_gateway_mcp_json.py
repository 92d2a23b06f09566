"""`toolgate gateway --mcp-json`: a host's file of servers, read as it is."""

import json
import sys
from pathlib import Path

import pytest
from gateway_process import PLAIN, GatewayProcess, Json, plain_server, starts
from toolgate_command import run

NOTES: Json = {
    "type": "stdio",
    "command": "${PLAIN_PYTHON}",
    "args": ["${PLAIN_SERVER:-nowhere}"],
    "env": {"PLAIN_LOG": "${PLAIN_FOLDER}/${PLAIN_NAME:-log}"},
    "timeout": 5,
}

# The programs that these servers may start.
ALLOWED = f"[gateway.spawn]\nallow = [{json.dumps(sys.executable)}]\n"


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sets the file's variables."""
    monkeypatch.setenv("PLAIN_PYTHON", sys.executable)
    monkeypatch.setenv("PLAIN_SERVER", str(PLAIN))
    monkeypatch.setenv("PLAIN_FOLDER", str(tmp_path))


def written(folder: Path, servers: Json, **more: object) -> Path:
    """A host's file with these servers."""
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": servers, **more}))
    return file


def with_file(binary: Path, folder: Path, file: Path, config: str | None = None) -> GatewayProcess:
    """A gateway with a host's file, and one of its own if that is given."""
    plane = ("--data-dir", str(folder / "data"), "--mcp-json", str(file))
    return GatewayProcess(binary, folder, config, plane=plane)


def test_a_hosts_file_is_read_as_it_is_and_the_rest_is_told(binary: Path, tmp_path: Path) -> None:
    off = {"command": "no-such-program", "disabled": True}
    file = written(tmp_path, {"my notes": NOTES, "off": off}, inputs=[])
    with with_file(binary, tmp_path, file) as gateway:
        keep = {"name": "my-notes__keep_note", "arguments": {"text": "a"}}
        assert gateway.text("call_tool", keep) == "kept"
        assert starts(tmp_path / "log") == 1
        said = "".join(gateway.said)
        for line in (
            "my-notes starts ${PLAIN_PYTHON} ${PLAIN_SERVER:-nowhere}",
            "`my notes.timeout` is not read",
            "`my notes` is called my-notes here",
            "`inputs` is not read",
        ):
            assert f"{file}: {line}" in said, said


def test_it_is_read_beside_the_gateways_own_and_read_again(binary: Path, tmp_path: Path) -> None:
    file = written(tmp_path, {"notes": NOTES})
    own = f"[gateway]\nload_all_up_to = 12\n{ALLOWED}"
    with with_file(binary, tmp_path, file, own) as gateway:
        kept = gateway.text("process_id", {}, "/mcp/s/notes")
        assert len(gateway.tools()) == 8, "the [gateway] section holds"
        third = {"notes": NOTES, "third": NOTES | {"env": {}}}
        gateway.reload(json.dumps({"mcpServers": third}), "third: ready", file)
        assert gateway.text("process_id", {}, "/mcp/s/notes") == kept
        gateway.reload('{"mcpServers": {"third": 7}}', "must be an object", file)
        assert gateway.text("process_id", {}, "/mcp/s/notes") == kept
        fourth = '[server.fourth]\ncommand = ["sh"]\n'
        gateway.reload(own + fourth, "not among gateway.spawn.allow")


def test_a_hosts_file_starts_no_program_that_the_operator_does_not_allow(
    binary: Path, tmp_path: Path
) -> None:
    file = written(tmp_path, {"notes": NOTES})
    mark = tmp_path / "mark"
    other = {"command": "touch", "args": [str(mark)]}
    refused = f'{file}: server.other: `command` starts "touch", which is not among'
    with with_file(binary, tmp_path, file, ALLOWED) as gateway:
        kept = gateway.text("process_id", {}, "/mcp/s/notes")
        both = json.dumps({"mcpServers": {"notes": NOTES, "other": other}})
        gateway.reload(both, "the servers stay as they were", file)
        assert refused in gateway.said[-1], gateway.said
        assert sys.executable in gateway.said[-1], "it says what would be right"
        # What is read after it is applied after it.
        third = {"notes": NOTES, "third": NOTES | {"env": {}}}
        gateway.reload(json.dumps({"mcpServers": third}), "third: ready", file)
        assert gateway.text("process_id", {}, "/mcp/s/notes") == kept
        file.write_text(both)
    started = run(binary, "gateway", "--config", tmp_path / "gateway.toml", "--mcp-json", file)
    assert started.returncode == 2
    assert refused in started.stderr
    assert not mark.exists()


@pytest.mark.parametrize(
    ("servers", "problem"),
    [
        ({"notes": NOTES}, "the gateway's file has a server.notes as well"),
        ({"a": {"url": "http://tools.example"}}, "must begin with https://"),
        ({"a": {"command": "x", "cwd": "/no/such/folder"}}, "`cwd` names no folder"),
        ({"a": {"command": "x", "args": "y"}}, "`a.args` must be a list of texts"),
        ({"a": {}}, "`a` needs either `command` or `url`"),
    ],
)
def test_mistakes_are_told_before_anything_starts(
    binary: Path, tmp_path: Path, servers: Json, problem: str
) -> None:
    file = written(tmp_path, servers)
    own = tmp_path / "gateway.toml"
    own.write_text(plain_server("notes"))
    arguments: list[str | Path] = ["gateway", "check", own, "--mcp-json", file]
    told = run(binary, *arguments)
    assert told.returncode == 2
    assert problem in told.stderr
    assert str(file) in told.stderr
    started = run(binary, "gateway", "--config", own, "--mcp-json", file)
    assert started.returncode == 2
    assert problem in started.stderr


def test_a_server_whose_variable_is_missing_waits_alone(binary: Path, tmp_path: Path) -> None:
    hub = {"command": "${env:PLAIN_PYTHON}", "env": {"TOKEN": "${input:tok}"}}
    file = written(tmp_path, {"notes": NOTES, "hub": hub})
    told = run(binary, "gateway", "check", "--mcp-json", file)
    assert told.returncode == 3
    assert f"{file}: server.hub: `env.TOKEN`: the variable INPUT_TOK is not set" in told.stdout
    with with_file(binary, tmp_path, file) as gateway:
        keep = {"name": "notes__keep_note", "arguments": {"text": "a"}}
        assert gateway.text("call_tool", keep) == "kept"
