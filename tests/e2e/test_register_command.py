"""`toolgate register`: where tools come from, and how far they are believed."""

import json
from pathlib import Path

from catalogs import NOTES
from toolgate_command import run
from toolgate_process import ToolgateProcess

LISTED = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": NOTES}})


def test_a_listing_comes_through_a_pipe(binary: Path, server: ToolgateProcess, tenant: str) -> None:
    to = {"TOOLGATE_ENDPOINT": f"http://{server.target}", "TOOLGATE_TENANT": tenant}
    done = run(binary, "register", "-", "--server", "notes", env=to, stdin=LISTED)
    assert done.returncode == 0, done.stderr
    assert "mcp__notes__create_note" in done.stdout
    assert "trust tier: standard, since no --trust was given" in done.stderr
    with server.client(tenant) as client:
        [known] = client.list_servers()
    assert (known.name, known.tool_count) == ("notes", len(NOTES))


def test_what_is_wrong_with_a_pipe_is_said(
    binary: Path, server: ToolgateProcess, tenant: str
) -> None:
    to = {"TOOLGATE_ENDPOINT": f"http://{server.target}", "TOOLGATE_TENANT": tenant}
    configuration = json.dumps({"mcpServers": {"git": {"command": "uvx"}}})
    for arguments, given, words in [
        (["-"], LISTED, "standard input: no MCP server's name in it; give --server"),
        (["-", "--server", "x"], "", "standard input: nothing was in it"),
        (["-", "--server", "x"], "Error: ENOENT", "standard input: not JSON"),
        (["-", "--server", "x"], configuration, "what each of them answers to tools/list"),
        (["absent.json"], "", "absent.json: cannot be read"),
        (["-", "--server", "x", "--trust", "fully"], LISTED, "untrusted, standard, trusted"),
    ]:
        done = run(binary, "register", *arguments, env=to, stdin=given)
        assert done.returncode in (1, 2), (arguments, done.stdout)
        assert words in done.stderr, done.stderr


def test_trust_is_said_on_the_command_line(
    binary: Path, server: ToolgateProcess, tenant: str, tmp_path: Path
) -> None:
    to = {"TOOLGATE_ENDPOINT": f"http://{server.target}", "TOOLGATE_TENANT": tenant}
    later = [{**NOTES[0], "name": "another"}]
    for trust, quarantined in (("untrusted", True), ("trusted", False)):
        first = ["register", "-", "--server", trust, "--trust", trust]
        assert run(binary, *first, env=to, stdin=LISTED).returncode == 0
        second = json.dumps({"tools": [*NOTES, *later]})
        done = run(binary, *first, env=to, stdin=second)
        assert done.returncode == 0, done.stderr
        assert ("quarantined" in done.stdout) is quarantined, done.stdout
        assert "trust tier" not in done.stderr
