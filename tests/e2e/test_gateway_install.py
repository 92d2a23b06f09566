"""`toolgate gateway install` edits the files of hosts."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

BINARY = os.environ.get("TOOLGATE_BIN", "target/debug/toolgate")

FILES = {
    "claude-code": ".claude.json",
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
        timeout=60,
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
    assert "http://127.0.0.1:7080/mcp" in installed
    assert "\n+" in added.stdout
    assert Path(f"{file}.before-toolgate").read_text() == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    assert install(tmp_path, host, "--yes").returncode == 0
    assert file.read_text() == installed
    assert install(tmp_path, host, "--yes", "--remove").returncode == 0
    assert file.read_text() == before


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
