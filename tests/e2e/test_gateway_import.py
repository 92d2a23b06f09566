"""`toolgate gateway import`: the servers of hosts' files come into the gateway's."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from gateway_process import PLAIN, GatewayProcess, starts
from toolgate_command import command_environment
from waiting import PATIENCE

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
        timeout=PATIENCE,
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


def test_references_of_hosts_stay_references_and_nothing_keeps_the_gateway_from_starting(
    binary: Path, home: Path
) -> None:
    (home / ".claude.json").unlink()
    (home / "project" / ".mcp.json").unlink()
    (home / ".codex" / "config.toml").unlink()
    cursor = {"hub": {"command": "npx", "env": {"GITHUB_TOKEN": "${env:HUB_NOT_SET}"}}}
    lan = {"url": "http://10.0.0.9/mcp"}
    file = home / ".cursor" / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {**cursor, "lan": lan}}))
    code = home / "project" / ".vscode"
    code.mkdir()
    inputs = [{"id": "tok", "type": "promptString", "description": "Token of the tracker"}]
    tracker = {"command": "node", "args": ["s.js"], "env": {"API_TOKEN": "${input:tok}"}}
    code.joinpath("mcp.json").write_text(
        json.dumps({"inputs": inputs, "servers": {"tracker": tracker}})
    )
    opencode = home / ".config" / "opencode" / "opencode.jsonc"
    opencode.parent.mkdir(parents=True)
    header = {"Authorization": "Bearer {env:OTOK_NOT_SET}"}
    entry = {"type": "remote", "url": "https://o.example/mcp", "headers": header}
    opencode.write_text(json.dumps({"mcp": {"o": entry}}) + "// mine")
    done = imported(binary, home, "--yes")
    assert done.returncode == 0, done.stderr
    written = home / "project" / "gateway.toml"
    servers = tomllib.loads(written.read_text())["server"]
    assert servers == {
        "hub": {"command": ["npx"], "env": {"GITHUB_TOKEN": "${HUB_NOT_SET}"}},
        "tracker": {"command": ["node", "s.js"], "env": {"API_TOKEN": "${API_TOKEN}"}},
        "o": {
            "url": "https://o.example/mcp",
            "headers": {"Authorization": "Bearer ${OTOK_NOT_SET}"},
        },
    }
    assert "lan is left out: " in done.stderr, "http beyond this machine would be refused"
    for told in (
        "hub waits until HUB_NOT_SET is set: export HUB_NOT_SET=...",
        "tracker waits until API_TOKEN is set (${input:tok} of the host: Token of the tracker)",
        "o waits until OTOK_NOT_SET is set",
    ):
        assert told in done.stderr, done.stderr
    environment = {**command_environment(), "HOME": str(home)}
    check: list[str | Path] = [binary, "gateway", "check", written]

    def checked(**variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            check, env={**environment, **variables}, capture_output=True, text=True, check=False
        )

    waiting = checked(API_TOKEN="a")
    assert waiting.returncode == 3, waiting.stderr
    assert "3 servers make sense\n1 can start; the others wait:\n" in waiting.stdout
    wanted = (
        f"{written}: line 3: server.hub: `env.GITHUB_TOKEN`: the variable HUB_NOT_SET is not set"
    )
    assert wanted in waiting.stdout, waiting.stdout
    ready = checked(API_TOKEN="a", HUB_NOT_SET="b", OTOK_NOT_SET="c")
    assert ready.returncode == 0, ready.stdout
    assert ready.stdout == "3 servers make sense\n"


def test_the_gateway_is_left_out_wherever_it_listens(binary: Path, home: Path) -> None:
    file = home / "project" / "gateway.toml"
    file.write_text('[gateway]\nlisten = "127.0.0.1:9100"\npublic_url = "https://gw.example"\n')
    servers = {
        "tg": {"url": "http://127.0.0.1:9000/mcp?limit=8KiB"},
        "a": {"url": "http://localhost:9100/mcp/all"},
        "b": {"url": "https://gw.example/mcp"},
        "c": {"url": "https://c.example/mcp"},
    }
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    done = imported(binary, home, "--yes")
    assert done.returncode == 0, done.stderr
    assert set(tomllib.loads(file.read_text())["server"]) == {"git", "git-2", "notes", "c"}
    for name in "tg", "a", "b":
        assert f"`{name}` is this gateway, and is left out" in done.stderr


def test_trust_is_written_where_it_is_asked_for(binary: Path, home: Path) -> None:
    shown = imported(binary, home, "--dry-run")
    assert "hosts ask before each call" in shown.stderr
    assert "import --trust" in shown.stderr
    assert imported(binary, home, "--trust", "--yes").returncode == 0
    servers = tomllib.loads((home / "project" / "gateway.toml").read_text())["server"]
    assert [server["trust"] for server in servers.values()] == ["trusted"] * 3


def test_files_of_projects_and_users_are_read(binary: Path, home: Path) -> None:
    def servers(name: str) -> dict[str, object]:
        return {name: {"command": "npx", "args": [name]}}

    project = home / "project"
    (home / "other").mkdir()
    claude = {"projects": {str(home / "other"): {"mcpServers": servers("claude-other")}}}
    (home / ".claude.json").write_text(json.dumps(claude))
    files = {
        home / ".config/Code/User/mcp.json": {"servers": servers("code-user")},
        project / ".gemini/settings.json": {"mcpServers": servers("gemini-project")},
        project / ".zed/settings.json": {"context_servers": servers("zed-project")},
        project / "opencode.jsonc": {"mcp": {"oc-project": {"command": ["npx", "oc-project"]}}},
    }
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    codex = project / ".codex/config.toml"
    codex.parent.mkdir()
    codex.write_text('[mcp_servers.codex-project]\ncommand = "npx"\nargs = ["codex-project"]\n')
    done = imported(binary, home, "--yes")
    assert done.returncode == 0, done.stderr
    written = set(tomllib.loads((project / "gateway.toml").read_text())["server"])
    wanted = {"claude-other", "code-user", "gemini-project", "zed-project", "oc-project"}
    assert wanted | {"codex-project"} <= written, written
    assert f".claude.json ({home / 'other'})" in done.stdout


def test_files_of_variables_of_profiles_reach_their_programs(binary: Path, home: Path) -> None:
    for file in home / ".claude.json", home / ".cursor" / "mcp.json", home / ".codex/config.toml":
        file.unlink()
    (home / "project" / ".mcp.json").unlink()
    profiles = home / ".config" / "VSCodium" / "User" / "profiles"
    log = home / "log"
    variables = home / "notes.env"
    variables.write_text(f"# mine\nPLAIN_LOG='{log}'\nAPI_TOKEN=hush\n")
    entry = {"command": sys.executable, "args": [str(PLAIN)], "envFile": "${userHome}/notes.env"}
    gone = {"command": "npx", "args": ["gone"], "envFile": ".env"}
    for profile, servers in ("-1a", {"notes": entry}), ("2b", {"gone": gone}):
        (profiles / profile).mkdir(parents=True)
        (profiles / profile / "mcp.json").write_text(json.dumps({"servers": servers}))
    shown = imported(binary, home, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    for name, profile in ("notes", "-1a"), ("gone", "2b"):
        (row,) = [line for line in shown.stdout.splitlines() if line.startswith(f"{name} ")]
        assert row.endswith(str(profiles / profile / "mcp.json"))
    missing = home / "project" / ".env"
    assert f"gone waits: `env_file`: {missing} can't be read: " in shown.stderr
    assert imported(binary, home, "--yes").returncode == 0
    written = home / "project" / "gateway.toml"
    text = written.read_text()
    assert tomllib.loads(text)["server"]["notes"]["env_file"] == str(variables)
    assert "hush" not in shown.stdout + shown.stderr + text
    with GatewayProcess(binary, home, text):
        assert starts(log) == 1
    variables.write_text("API_TOKEN=hush\nhush")
    check: list[str | Path] = [binary, "gateway", "check", written]
    environment = {**command_environment(), "HOME": str(home)}
    checked = subprocess.run(check, env=environment, capture_output=True, text=True, check=False)
    assert checked.returncode == 3, checked.stderr
    assert f"`env_file`: {variables} can't be read: line 2 is not NAME=VALUE" in checked.stdout
    assert "hush" not in checked.stdout + checked.stderr


def test_what_is_not_carried_over_is_told(binary: Path, home: Path) -> None:
    entry = {**GIT, "disabled_tools": ["push"], "timeout": 9, "oauth": {"clientSecret": "hush"}}
    servers = {"git": entry, "off": {**GIT, "disabled": True}, "odd": {"settings": {}}}
    file = home / ".claude.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    shown = imported(binary, home, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    for told in (
        '`git.disabled_tools` is not carried over: tools = { deny = ["NAME"] } in the new entry',
        "`git.timeout` is not carried over: gateway.call_timeout",
        "`git.oauth` is not carried over: oauth = {",
        "`off` is turned off, and is left out",
        "`odd` has neither a command nor a URL, and is left out",
    ):
        assert f"{file}: {told}" in shown.stderr, shown.stderr
    assert "hush" not in shown.stdout + shown.stderr


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
    assert "`toolgate gateway --help` shows how" in done.stderr
