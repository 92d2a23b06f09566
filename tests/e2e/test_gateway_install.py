"""`toolgate gateway install` edits the files of hosts."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest
from waiting import PATIENCE

BINARY = os.environ.get("TOOLGATE_BIN", "target/debug/toolgate")

FILES = {
    "claude-code": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
    "vscode": "project/.vscode/mcp.json",
    "codex": ".codex/config.toml",
    "gemini-cli": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "zed": ".config/zed/settings.json",
}


def install(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    project = home / "project"
    project.mkdir(exist_ok=True)
    return subprocess.run(
        [Path(BINARY).resolve(), "gateway", "install", *arguments],
        cwd=project,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("host", FILES)
def test_what_was_installed_is_removed_to_the_byte(tmp_path: Path, host: str) -> None:
    file = tmp_path / FILES[host]
    file.parent.mkdir(parents=True, exist_ok=True)
    before = 'model = "m" # mine\n' if host == "codex" else '{\n    "z": 1.50,\n    "a": []\n}\n'
    file.write_text(before)
    file.chmod(0o600)

    added = install(tmp_path, host, "--yes")
    assert added.returncode == 0, added.stderr
    installed = file.read_text()
    way = '"--stdio"' if host == "claude-desktop" else "http://127.0.0.1:7080/mcp"
    assert way in installed
    assert "\n+" in added.stdout
    assert Path(f"{file}.before-toolgate").read_text() == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    assert install(tmp_path, host, "--yes").returncode == 0
    assert file.read_text() == installed
    assert install(tmp_path, host, "--yes", "--remove").returncode == 0
    assert file.read_text() == before


def test_the_file_with_comments_is_taken_where_only_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / ".config/opencode/opencode.jsonc"
    file.parent.mkdir(parents=True)
    file.write_text("{ // mine\n}\n")
    added = install(tmp_path, "opencode", "--yes")
    assert added.returncode == 0, added.stderr
    assert "// mine" in file.read_text()
    assert "/mcp?limit=32KiB" in file.read_text()
    assert not file.with_suffix(".json").exists()


SECTIONS = {"vscode": "servers", "opencode": "mcp", "zed": "context_servers"}
"""Sections of the servers where they are not called mcpServers."""


def own_entries(host: str) -> str:
    """A host's file: a server that the gateway has by name, one by its command, and another."""
    if host == "codex":
        return (
            'model = "m" # mine\n\n[mcp_servers.time]\ncommand = "uvx"\nargs = ["mcp-time"]\n\n'
            '[mcp_servers.my-git]\ncommand = "uvx"\nargs = ["mcp-git"]\n\n'
            '[mcp_servers.my-git.env]\nA = "1"\n\n# stays\n[mcp_servers.other]\nurl = "https://x"\n'
        )

    def entry(package: str) -> dict[str, object]:
        if host == "opencode":
            return {"type": "local", "command": ["uvx", package]}
        if host == "zed":
            return {"command": {"path": "uvx", "args": [package]}}
        return {"command": "uvx", "args": [package]}

    servers = {"time": entry("mcp-time"), "my-git": entry("mcp-git"), "other": entry("mcp-other")}
    return json.dumps({"z": 1, SECTIONS.get(host, "mcpServers"): servers}, indent=2) + "\n"


def servers_of(host: str, text: str) -> set[str]:
    if host == "codex":
        return set(tomllib.loads(text)["mcp_servers"])
    return set(json.loads(text)[SECTIONS.get(host, "mcpServers")])


@pytest.mark.parametrize("host", FILES)
def test_what_the_gateway_has_as_well_is_told_and_taken_out(tmp_path: Path, host: str) -> None:
    file = tmp_path / FILES[host]
    file.parent.mkdir(parents=True, exist_ok=True)
    before = own_entries(host)
    file.write_text(before)
    (tmp_path / "project").mkdir(exist_ok=True)
    (tmp_path / "project/gateway.toml").write_text(
        '[server.time]\ncommand = ["uvx", "another-time"]\n'
        '[server.git]\ncommand = ["uvx", "mcp-git"]\n'
    )

    added = install(tmp_path, host, "--yes")
    assert added.returncode == 0, added.stderr
    left, told = added.stderr.split("still in this file: ")[1].split("; ", 1)
    assert set(left.split(", ")) == {"time", "my-git"}
    assert "--replace" in told
    assert servers_of(host, file.read_text()) == {"tg", "time", "my-git", "other"}

    shown = install(tmp_path, host, "--replace", "--dry-run")
    assert "\n-" in shown.stdout
    assert servers_of(host, file.read_text()) == {"tg", "time", "my-git", "other"}
    installed = file.read_text()
    replaced = install(tmp_path, host, "--replace", "--yes")
    assert replaced.returncode == 0, replaced.stderr
    assert "still in this file" not in replaced.stderr
    assert Path(f"{file}.before-toolgate").read_text() == installed
    after = file.read_text()
    assert servers_of(host, after) == {"tg", "other"}
    if host == "codex":
        assert "\n\n# stays\n[mcp_servers.other]\n" in after
        assert "\n\n[mcp_servers.tg]\n" in after


def test_a_replacement_needs_the_gateways_file(tmp_path: Path) -> None:
    outcome = install(tmp_path, "cursor", "--replace", "--yes")
    assert outcome.returncode == 2
    assert "gateway.toml" in outcome.stderr
    assert "`toolgate gateway import` makes one" in outcome.stderr
    assert not (tmp_path / ".cursor").exists()


def test_claude_code_gets_its_limit_of_results_in_a_new_file(tmp_path: Path) -> None:
    assert install(tmp_path, "claude-code", "--scope", "project", "--yes").returncode == 0
    servers = json.loads((tmp_path / "project/.mcp.json").read_text())["mcpServers"]
    url = "http://127.0.0.1:7080/mcp?limit=60KiB"
    assert servers == {"tg": {"type": "http", "url": url}}


@pytest.mark.parametrize("arguments", [["--dry-run"], []])
def test_nothing_is_written_unasked(tmp_path: Path, arguments: list[str]) -> None:
    outcome = install(tmp_path, "cursor", *arguments)
    assert '"tg"' in outcome.stdout
    assert (outcome.returncode == 0) == bool(arguments)
    assert not (tmp_path / ".cursor").exists()


def test_comments_of_a_file_stay(tmp_path: Path) -> None:
    file = tmp_path / FILES["zed"]
    file.parent.mkdir(parents=True)
    file.write_text("{ // mine\n}\n")
    outcome = install(tmp_path, "zed", "--yes")
    assert outcome.returncode == 0, outcome.stderr
    installed = file.read_text()
    assert "// mine" in installed
    assert '"tg": {"url":"http://127.0.0.1:7080/mcp"}' in installed


def test_a_file_that_is_no_json_is_left_alone_and_the_entry_shown(tmp_path: Path) -> None:
    file = tmp_path / FILES["zed"]
    file.parent.mkdir(parents=True)
    file.write_text("{ mine\n}\n")
    outcome = install(tmp_path, "zed", "--yes")
    assert outcome.returncode != 0
    assert 'tg: {"url":"http://127.0.0.1:7080/mcp"}' in outcome.stderr
    assert file.read_text() == "{ mine\n}\n"
