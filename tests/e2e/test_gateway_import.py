"""`toolgate gateway import`: the servers of hosts' files come into the gateway's."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
from toolgate_command import command_environment

GIT = {"command": "uvx", "args": ["mcp-server-git"], "env": {"GIT_TOKEN": "hush", "REGION": "eu"}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".codex").mkdir()
    claude = {"numStartups": 3, "mcpServers": {"git": GIT}}
    (tmp_path / ".claude.json").write_text(json.dumps(claude))
    (tmp_path / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"my git": GIT}}))
    codex = (
        '[mcp_servers.notes]\nurl = "https://notes.example/mcp"\nbearer_token_env_var = "NOTES"\n'
    )
    (tmp_path / ".codex" / "config.toml").write_text(codex)
    project = '{ // servers of this project\n  "mcpServers": {"git": {"command": "node",}}\n}'
    (tmp_path / "project" / ".mcp.json").write_text(project)
    return tmp_path


def imported(
    binary: Path, home: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [binary, "gateway", "import", *arguments],
        env={**command_environment(), "HOME": str(home), **variables},
        cwd=home / "project",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_servers_of_all_hosts_come_into_one_file(binary: Path, home: Path) -> None:
    done = imported(binary, home, "--yes")
    assert done.returncode == 0, done.stderr
    file = home / "project" / "gateway.toml"
    servers = tomllib.loads(file.read_text())["server"]
    assert servers == {
        "git": {
            "command": ["uvx", "mcp-server-git"],
            "env": {"GIT_TOKEN": "env:GIT_TOKEN", "REGION": "eu"},
        },
        "git-2": {"command": ["node"]},
        "notes": {
            "url": "https://notes.example/mcp",
            "headers": {"Authorization": "Bearer ${NOTES}"},
        },
    }
    assert "GIT_TOKEN" in done.stderr, "the variable to set is named"
    assert "hush" not in done.stdout + done.stderr + file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    again = imported(binary, home, "--yes")
    assert again.returncode == 0, again.stderr
    assert "has all of them" in again.stderr


def test_what_is_in_the_file_stays(binary: Path, home: Path) -> None:
    file = home / "project" / "gateway.toml"
    before = '# mine\n[server.git]\ncommand = ["git-mcp"]\nenv = { A = "env:NOT_SET" }'
    file.write_text(before)
    shown = imported(binary, home, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert file.read_text() == before
    assert "+[server.git-2]" in shown.stdout
    assert imported(binary, home, "--yes").returncode == 0
    after = file.read_text()
    assert after.startswith(before)
    assert set(tomllib.loads(after)["server"]) == {"git", "git-2", "git-3", "notes"}


def test_a_broken_file_is_told_and_the_others_are_read(binary: Path, home: Path) -> None:
    (home / ".cursor" / "mcp.json").write_text('{\n"mcpServers": }')
    done = imported(binary, home, "--yes")
    assert done.returncode == 0, done.stderr
    assert "line 2" in done.stderr
    assert ".cursor/mcp.json" in done.stderr
    assert (home / "project" / "gateway.toml").exists()


def test_variables_that_reach_no_server_are_told_once(binary: Path, home: Path) -> None:
    named = {**GIT, "env": {"SSL_CERT_FILE": "/c.pem"}}
    files = {"a": {**named, "args": ["a"]}, "b": {**named, "args": ["b"]}}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": files}))
    (home / ".cursor" / "mcp.json").unlink()
    (home / "project" / ".mcp.json").unlink()
    unset = dict.fromkeys(
        ["SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "NO_PROXY"], ""
    )
    variables = {**unset, "SSL_CERT_FILE": "/c.pem", "HTTPS_PROXY": "http://p"}
    shown = imported(binary, home, "--dry-run", **variables)
    assert shown.returncode == 0, shown.stderr
    wanted = (
        "HTTPS_PROXY is set here and reaches no server unless its env names it: "
        'env = { HTTPS_PROXY = "env:HTTPS_PROXY" }'
    )
    assert shown.stderr.count(wanted) == 1
    assert "SSL_CERT" not in shown.stderr
    assert imported(binary, home, "--yes").returncode == 0
    again = imported(binary, home, "--yes", **variables)
    assert "HTTPS_PROXY" not in again.stderr, "nothing is added"


def test_nothing_is_written_unasked(binary: Path, home: Path) -> None:
    done = imported(binary, home)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert not (home / "project" / "gateway.toml").exists()


def test_a_fresh_home_has_nothing_to_import(binary: Path, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    done = imported(binary, tmp_path)
    assert done.returncode == 0
    assert "no host's file" in done.stderr
