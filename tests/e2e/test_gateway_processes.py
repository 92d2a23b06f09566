"""Servers with a process for each user: what users share, how many there are, and how they end."""

import hashlib
import json
from functools import partial
from pathlib import Path

import pytest
from credentials import Keys
from gateway_process import (
    GatewayProcess,
    Json,
    is_running,
    kill,
    message,
    messages,
    plain_server,
    starts,
    text_of,
)
from toolgate_command import run
from waiting import wait_until

AUTHENTICATION = '[gateway.auth]\nmethods = ["api-key"]\n'


class Users:
    """A gateway before one server, and users of it with keys."""

    def __init__(self, binary: Path, folder: Path, more: str = "") -> None:
        self.homes = folder / "homes"
        self.audit = folder / "audit.jsonl"
        keys = Keys(binary, folder)
        self._keys = {
            name: keys.create("agent", tenant="acme", principal=name)["key"]
            for name in ("ann", "bob")
        }
        server = plain_server("notes", start="per-user", homes=str(self.homes))
        self.gateway = GatewayProcess(
            binary,
            folder,
            f"[gateway]\naudit_file = {json.dumps(str(self.audit))}\n{AUTHENTICATION}{server}"
            # Each writes to its own home, which it starts in.
            f'tenants = ["acme"]\nenv = {{ PLAIN_LOG = "log" }}\n{more}',
        )

    def log(self, name: str) -> Path:
        """The messages that came to a user's process; `nobody` is the one that lists tools."""
        hashed = hashlib.sha256(f"acme/{name}".encode()).hexdigest()[:32]
        return self.homes / ("nobody" if name == "nobody" else hashed) / "log"

    def ask(self, name: str, method: str, params: Json, path: str = "/mcp") -> Json:
        """The result of a user's request."""
        headers = {"Authorization": f"Bearer {self._keys[name]}"}
        if "uri" in params:
            headers["Mcp-Name"] = params["uri"]
        status, answer = self.gateway.post(path, message(method, params), headers)
        assert status == 200, answer
        result: Json = answer["result"]
        return result

    def call(self, name: str, tool: str, arguments: Json) -> str:
        """The text of a user's call."""
        called = {
            "name": "call_tool",
            "arguments": {"name": tool, "arguments": arguments},
        }
        return text_of(self.ask(name, "tools/call", called))

    def process(self, name: str) -> int:
        """The process that a user's calls reach."""
        return int(self.call(name, "notes__process_id", {}).splitlines()[0])


def test_each_user_has_a_process_and_a_home_of_their_own(binary: Path, tmp_path: Path) -> None:
    users = Users(binary, tmp_path)
    with users.gateway:
        assert starts(users.log("nobody")) == 1, "its tools are known before anybody calls it"
        found = {
            "name": "discover_tools",
            "arguments": {"query": "select:notes__read_note"},
        }
        assert "notes__read_note" in text_of(users.ask("ann", "tools/call", found))
        assert users.call("ann", "notes__keep_note", {"text": "a secret"}).startswith("kept")
        assert "secret" in users.call("ann", "notes__read_note", {})
        assert "secret" not in users.call("bob", "notes__read_note", {})
        ann, bob = users.process("ann"), users.process("bob")
        assert len({ann, bob}) == 2
        assert users.process("ann") == ann
        uri = {"uri": "notes+note:///a+b__c"}
        assert users.ask("ann", "resources/read", uri)["contents"][0]["text"] == "a secret"
        assert users.ask("bob", "resources/read", uri)["contents"][0]["text"] == ""
        assert [starts(users.log(name)) for name in ("nobody", "ann", "bob")] == [
            1,
            1,
            1,
        ]
        assert not messages(users.log("nobody"), "tools/call")
        assert "a secret" not in users.log("bob").read_text()
        assert users.gateway.stop() == 0
        assert not is_running(ann)
        assert not is_running(bob)
    lines = [json.loads(line) for line in users.audit.read_text().splitlines()]
    started = [(line["tenant"], line["principal"]) for line in lines if line["event"] == "start"]
    assert started == [("", ""), ("acme", "ann"), ("acme", "bob")]


def test_an_idle_process_gives_way_to_another_user(binary: Path, tmp_path: Path) -> None:
    users = Users(binary, tmp_path, "processes = 1\n")
    with users.gateway:
        ann = users.process("ann")
        bob = users.process("bob")
        assert not is_running(ann), "there is one at a time"
        assert users.process("ann") not in (ann, bob)


def test_operators_read_what_their_own_tenants_processes_write_alone(
    binary: Path, tmp_path: Path
) -> None:
    keys = Keys(binary, tmp_path)
    tenants = ("acme", "umbrella")
    server = plain_server("notes", start="per-user")
    config = f"{AUTHENTICATION}{server}tenants = {json.dumps(tenants)}\n"
    gateway = GatewayProcess(binary, tmp_path, config + 'env = { PLAIN_LOG = "/dev/stderr" }\n')

    def keep(tenant: str) -> None:
        agent = keys.create("agent", tenant=tenant, principal="ann")["key"]
        arguments = {"name": "notes__keep_note", "arguments": {"text": f"a note of {tenant}"}}
        called = message("tools/call", {"name": "call_tool", "arguments": arguments})
        status, answer = gateway.post("/mcp", called, {"Authorization": f"Bearer {agent}"})
        assert status == 200, answer
        assert text_of(answer["result"]).startswith("kept"), answer

    def logs(tenant: str) -> str:
        file = tmp_path / f"{tenant}.key"
        if not file.exists():
            file.write_text(keys.create("admin", tenant=tenant)["key"])
        at = ["--url", gateway.url, "--api-key-file", str(file)]
        done = run(binary, "gateway", "logs", "notes", *at)
        assert done.returncode == (0 if tenant in tenants else 1), done.stderr
        return str(done.stdout)

    def has_written(tenant: str) -> bool:
        return f"a note of {tenant}" in logs(tenant)

    with gateway:
        for tenant in tenants:
            keep(tenant)
        for tenant in tenants:
            wait_until(partial(has_written, tenant))
        acme, umbrella = (logs(tenant) for tenant in tenants)
        assert "tools/list" in acme, "the process that lists tools is nobody's own"
        assert "tools/list" in umbrella
        assert "a note of umbrella" not in acme
        assert "a note of acme" not in umbrella
        assert "a note" not in logs("other")


def test_no_users_process_is_left_behind_a_gateway_that_was_killed(
    binary: Path, tmp_path: Path
) -> None:
    users = Users(binary, tmp_path)
    with users.gateway:
        processes = [users.process(name) for name in ("ann", "bob")]
        kill(users.gateway.process_id)
        wait_until(lambda: not any(is_running(one) for one in processes), "orphans are left")


def test_users_processes_end_with_their_entry(binary: Path, tmp_path: Path) -> None:
    users = Users(binary, tmp_path)
    with users.gateway as gateway:
        processes = [users.process(name) for name in ("ann", "bob")]
        gateway.reload(AUTHENTICATION, "was read again")
        wait_until(lambda: not any(is_running(one) for one in processes), "they go on")


@pytest.mark.parametrize(
    ("authentication", "more", "told"),
    [
        ("", "", "needs gateway.auth.methods"),
        (AUTHENTICATION, "processes = 0\n", "from 1 to 256"),
        (AUTHENTICATION, 'idle = "1s"\n', "from 10s"),
    ],
)
def test_mistakes_are_told_before_anything_starts(
    binary: Path, tmp_path: Path, authentication: str, more: str, told: str
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(authentication + plain_server("notes", start="per-user") + more)
    done = run(binary, "gateway", "check", file)
    assert done.returncode == 2, done.stderr
    assert told in done.stdout + done.stderr
