"""Tests who may call `toolgate gateway`, and what each tenant sees of it."""

import hashlib
import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest
import trustme
from authorization_server import AuthorizationServer, machine_client
from conftest import StartServer
from credentials import Keys
from gateway_process import GatewayProcess, Json, answer_of, message, plain_server, text_of
from toolgate_command import run
from toolgate_process import free_port
from waiting import PATIENCE

from toolgate import Client, ToolgateError

PUBLIC = "https://gw.example"
RESOURCE = f"{PUBLIC}/mcp"
METADATA = f'resource_metadata="{PUBLIC}/.well-known/oauth-protected-resource/mcp"'


def agent(name: str, tenant: str) -> Json:
    """Returns a client whose tokens are a tenant's agent's."""
    return machine_client(name, token_claims={"tenant": tenant, "roles": ["agent"]})


CLIENTS = [
    agent("ann", "acme"),
    agent("amy", "acme"),
    agent("bob", "umbrella"),
    agent("eve", "elsewhere"),
    machine_client("nobody", token_claims={"roles": ["agent"]}),
    machine_client("boss", token_claims={"tenant": "acme", "roles": ["admin"]}),
]

AUTH = """
[gateway]
public_url = "{public}"
[gateway.auth]
methods = ["jwt", "api-key"]
issuer = "{issuer}"
jwks_url = "{jwks_url}"
jwks_ca_file = "{ca_file}"
scopes = ["mcp"]
tenant_claim = "tenant"
roles_claim = "roles"
"""

OPENING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Issuer(NamedTuple):
    """An authorization server, and the file of its certificate's authority."""

    server: AuthorizationServer
    ca_file: Path

    def settings(self) -> str:
        """Returns the settings of a gateway that takes its tokens and API keys."""
        return AUTH.format(
            public=PUBLIC,
            issuer=self.server.issuer,
            jwks_url=self.server.jwks_url,
            ca_file=self.ca_file,
        )

    def bearer(self, client: str, resource: str = RESOURCE, scope: str = "mcp") -> dict[str, str]:
        """Returns the header with a token of a client."""
        return bearer(self.server.token(client, resource, scope))


def bearer(credential: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {credential}"}


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    folder = tmp_path_factory.mktemp("issuer")
    authority = trustme.CA()
    ca_file = folder / "ca.pem"
    authority.cert_pem.write_to_path(ca_file)
    server = AuthorizationServer(folder, CLIENTS, ["mcp", "notes"], authority)
    yield Issuer(server, ca_file)
    server.close()


def servers() -> str:
    """Returns one server of each tenant, and one that both see."""
    acme = 'tenants = ["acme"]\n'
    umbrella = 'tenants = ["umbrella"]\n'
    both = 'tenants = ["acme", "umbrella"]\n'
    entries = [("anvils", acme), ("brollies", umbrella), ("common", both)]
    return "".join(plain_server(name) + tenants for name, tenants in entries)


@pytest.fixture(scope="module")
def gateway(
    binary: Path, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("gateway")
    audit = f'[gateway]\naudit_file = "{folder / "audit.jsonl"}"'
    settings = issuer.settings().replace("[gateway]", audit, 1)
    process = GatewayProcess(binary, folder, settings + servers()).start()
    yield process
    assert process.stop() == 0


class Answer(NamedTuple):
    """The answer to a request, as far as these tests go."""

    status: int
    challenge: str
    session: str
    body: str

    def message(self) -> Json:
        """Returns the JSON-RPC message in it."""
        return answer_of(self.body)


def ask(
    gateway: GatewayProcess, path: str, headers: dict[str, str], body: Json | None = None
) -> Answer:
    sent = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **headers,
    }
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(gateway.url + path, data=data, headers=sent)
    try:
        response = urllib.request.urlopen(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        told = response.headers
        return Answer(
            response.status,
            told.get("WWW-Authenticate", ""),
            told.get("Mcp-Session-Id", ""),
            response.read().decode(),
        )


def listing(gateway: GatewayProcess, headers: dict[str, str], path: str = "/mcp") -> Answer:
    modern = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
    return ask(gateway, path, {**modern, **headers}, message("tools/list", {}))


def result_of(
    gateway: GatewayProcess,
    headers: dict[str, str],
    tool: str,
    arguments: Json,
    path: str = "/mcp",
) -> Json:
    call = message("tools/call", {"name": tool, "arguments": arguments})
    status, answer = gateway.post(path, call, headers)
    assert status == 200, answer
    result: Json = answer["result"]
    return result


def text(gateway: GatewayProcess, headers: dict[str, str], tool: str, arguments: Json) -> str:
    return text_of(result_of(gateway, headers, tool, arguments))


def test_a_host_without_a_credential_learns_where_to_get_one(
    gateway: GatewayProcess, issuer: Issuer
) -> None:
    refused = listing(gateway, {})
    assert refused.status == 401
    assert refused.challenge == f'Bearer {METADATA}, scope="mcp"'
    for path in ["", "/mcp", "/mcp/s/anvils"]:
        told = ask(gateway, f"/.well-known/oauth-protected-resource{path}", {})
        assert told.status == 200
        metadata = json.loads(told.body)
        assert metadata["resource"] == PUBLIC + path
        assert metadata["authorization_servers"] == [issuer.server.issuer]
        assert metadata["scopes_supported"] == ["mcp"]


def test_a_token_for_this_gateway_is_let_in(gateway: GatewayProcess, issuer: Issuer) -> None:
    for resource in [PUBLIC, RESOURCE, f"{RESOURCE}/s/anvils"]:
        assert listing(gateway, issuer.bearer("ann", resource)).status == 200


def test_tokens_that_are_not_good_are_refused_with_the_reason(
    gateway: GatewayProcess, issuer: Issuer, tmp_path: Path
) -> None:
    issuer.server.set_clock(-3_600)
    expired = issuer.bearer("ann")
    issuer.server.set_clock(0)
    other = AuthorizationServer(tmp_path, CLIENTS)
    stranger = bearer(other.token("ann", RESOURCE))
    other.close()
    elsewhere = issuer.bearer("ann", "https://other.example/mcp")
    good = issuer.bearer("ann")
    forged = {"Authorization": good["Authorization"][:-8] + "AAAAAAAA"}
    for headers, reason in [
        (expired, "expired"),
        (elsewhere, "another audience"),
        (stranger, "does not know"),
        (forged, "signature"),
        (bearer("tgk_000000000000_" + "0" * 64), "API key"),
        ({"Authorization": "Basic eDp5"}, "Bearer"),
    ]:
        refused = listing(gateway, headers)
        assert refused.status == 401, reason
        assert METADATA in refused.challenge
        assert 'error="invalid_token"' in refused.challenge
        assert reason in refused.challenge, refused.challenge
        assert reason in refused.body


def test_a_token_of_another_issuer_with_the_same_keys_is_refused(
    binary: Path, issuer: Issuer, tmp_path: Path
) -> None:
    settings = issuer.settings().replace(
        f'issuer = "{issuer.server.issuer}"', 'issuer = "https://id.example"'
    )
    with GatewayProcess(binary, tmp_path, settings + plain_server("anvils")) as gateway:
        refused = listing(gateway, issuer.bearer("ann"))
    assert refused.status == 401
    assert "another issuer" in refused.challenge


def test_a_token_without_the_scope_is_told_which(gateway: GatewayProcess, issuer: Issuer) -> None:
    refused = listing(gateway, issuer.bearer("ann", scope="notes"))
    assert refused.status == 403
    assert 'error="insufficient_scope"' in refused.challenge
    assert 'scope="mcp"' in refused.challenge
    assert METADATA in refused.challenge


def test_a_credential_without_a_tenant_of_this_gateway_is_refused(
    gateway: GatewayProcess, issuer: Issuer
) -> None:
    for client in ["nobody", "eve"]:
        refused = listing(gateway, issuer.bearer(client))
        assert refused.status == 403
        assert "tenant" in refused.body


def test_api_keys_are_good_until_they_are_revoked(binary: Path, gateway: GatewayProcess) -> None:
    keys = Keys(binary, gateway.folder)
    key = keys.create("agent", tenant="acme")
    writer = keys.create("catalog-writer", tenant="acme")
    assert listing(gateway, bearer(key["key"])).status == 200
    assert listing(gateway, bearer(writer["key"])).status == 403, "it may not call tools"
    revoked = keys.create("agent", tenant="acme")
    keys.command("revoke", revoked["id"])
    refused = listing(gateway, bearer(revoked["key"]))
    assert refused.status == 401
    assert 'error="invalid_token"' in refused.challenge


def test_only_operators_see_the_gateways_state(
    binary: Path, gateway: GatewayProcess, issuer: Issuer, tmp_path: Path
) -> None:
    for path in ["/gateway/status", "/gateway/logs/anvils"]:
        assert ask(gateway, path, {}).status == 401
        assert ask(gateway, path, issuer.bearer("ann")).status == 403
        assert ask(gateway, path, issuer.bearer("boss")).status == 200
    shown = json.loads(ask(gateway, "/gateway/status", issuer.bearer("boss")).body)
    assert [server["name"] for server in shown["servers"]] == ["anvils", "common"]
    assert ask(gateway, "/gateway/logs/brollies", issuer.bearer("boss")).status == 404
    key = Keys(binary, gateway.folder).create("admin", tenant="umbrella")
    file = tmp_path / "admin.key"
    file.write_text(key["key"])
    at = ["--url", gateway.url, "--api-key-file", str(file)]
    status = run(binary, "gateway", "status", *at)
    assert "brollies" in status.stdout, status.stderr
    assert "anvils" not in status.stdout
    assert run(binary, "gateway", "status", "--url", gateway.url).returncode != 0
    why = run(binary, "gateway", "why", "store a note", *at)
    assert "brollies__keep_note" in why.stdout


def assert_apart(gateway: GatewayProcess, ann: dict[str, str], bob: dict[str, str]) -> None:
    """Checks that two callers of two tenants see nothing of each other's servers."""
    for headers, own, other in [(ann, "anvils", "brollies"), (bob, "brollies", "anvils")]:
        start = listing(gateway, headers)
        assert f"{own} (4: " in start.body, start.body
        assert "common (4: " in start.body
        assert other not in start.body
        whole = listing(gateway, headers, "/mcp/all").body
        assert f"{own}__keep_note" in whole
        assert other not in whole
        for query in ["store a note", f"select:{other}__keep_note", other]:
            told = text(gateway, headers, "discover_tools", {"query": query})
            assert not re.search(rf"{other}__\w+#", told), "the query may be repeated, tools not"
        called = result_of(
            gateway,
            headers,
            "call_tool",
            {"name": f"{other}__keep_note", "arguments": {"text": "x"}},
        )
        assert called["isError"] is True
        assert listing(gateway, headers, f"/mcp/s/{other}").status == 404
        for method in ["prompts/list", "resources/list"]:
            status, answer = gateway.post("/mcp", message(method, {}), headers)
            assert status == 200
            assert own in json.dumps(answer)
            assert other not in json.dumps(answer)
        prompt = message("prompts/get", {"name": f"{other}__greet"})
        assert gateway.post("/mcp", prompt, headers)[1]["error"]["code"] == -32602
        note = {"name": f"{own}__keep_note", "arguments": {"text": f"a word of {own}"}}
        assert text(gateway, headers, "call_tool", note) == "kept"
        read = {"name": f"{own}__read_note", "arguments": {}}
        assert text(gateway, headers, "call_read_tool", read) == f"a word of {own}"


def test_tenants_see_nothing_of_each_other(gateway: GatewayProcess, issuer: Issuer) -> None:
    assert_apart(gateway, issuer.bearer("ann"), issuer.bearer("bob"))


def long_result(gateway: GatewayProcess, headers: dict[str, str]) -> str:
    """Returns the handle of a result that was cut."""
    call = {"name": "common__list_lines", "arguments": {"count": 20_000}}
    cut = text(gateway, headers, "call_tool", call)
    handle = re.search(r"read_result handle=(\S+)", cut)
    assert handle, cut[-400:]
    return handle.group(1)


def test_handles_and_tags_are_their_principals(gateway: GatewayProcess, issuer: Issuer) -> None:
    ann = issuer.bearer("ann")
    handle = long_result(gateway, ann)
    found = text(gateway, ann, "discover_tools", {"query": "select:common__keep_note"})
    shown = re.search(r"common__keep_note#\w+", found)
    assert shown, found
    assert "line" in text(gateway, ann, "read_result", {"handle": handle})
    call = {"name": shown.group(), "arguments": {"text": "x"}}
    for other in ["amy", "bob"]:
        headers = issuer.bearer(other)
        assert result_of(gateway, headers, "read_result", {"handle": handle})["isError"] is True
        refused = result_of(gateway, headers, "call_tool", call)
        assert refused["isError"] is True, "the tag was shown to somebody else"
        assert "changed" in text_of(refused)
    assert text(gateway, ann, "call_tool", call) == "kept"


def test_a_session_is_its_principals(gateway: GatewayProcess, issuer: Issuer) -> None:
    older = {"MCP-Protocol-Version": "2025-06-18"}
    ann = issuer.bearer("ann")
    opening: Json = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPENING}
    opened = ask(gateway, "/mcp", {**older, **ann}, opening)
    assert opened.session
    assert "brollies" not in opened.body
    session = {**older, "Mcp-Session-Id": opened.session}
    ready: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    request: Json = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    assert ask(gateway, "/mcp", {**session, **ann}, ready).status == 202
    for other in ["amy", "bob"]:
        assert ask(gateway, "/mcp", {**session, **issuer.bearer(other)}, request).status == 404
        assert ask(gateway, "/mcp", {**session, **issuer.bearer(other)}).status == 404
    assert ask(gateway, "/mcp", session, request).status == 401
    renewed = ask(gateway, "/mcp", {**session, **issuer.bearer("ann")}, request)
    assert renewed.status == 200, "another token of the same principal"


def test_each_call_is_a_line_of_the_audit_without_its_words(
    gateway: GatewayProcess, issuer: Issuer
) -> None:
    ann = issuer.bearer("ann")
    words = {"text": "words of nobody else"}
    result_of(gateway, ann, "call_tool", {"name": "anvils__keep_note", "arguments": words})
    result_of(gateway, ann, "call_tool", {"name": "brollies__keep_note", "arguments": words})
    result_of(gateway, ann, "keep_note", words, "/mcp/s/anvils")
    told = (gateway.folder / "audit.jsonl").read_text()
    assert words["text"] not in told
    sent, refused, direct = [json.loads(line) for line in told.splitlines()[-3:]]
    assert sent["tenant"] == "acme"
    assert sent["principal"] == "ann"
    assert (sent["server"], sent["tool"]) == ("anvils", "keep_note")
    assert (sent["verdict"], sent["outcome"]) == ("allowed", "done")
    assert len(sent["definition"]) == 64
    text = '{"text":"words of nobody else"}'
    assert sent["argument_bytes"] == len(text)
    assert sent["arguments"] == hashlib.sha256(text.encode()).hexdigest()
    assert refused["verdict"] == "UNKNOWN_TOOL"
    assert refused["outcome"] == "refused"
    started = [json.loads(line) for line in told.splitlines()]
    started = [record for record in started if record["event"] == "start"]
    assert {record["server"] for record in started} == {"anvils", "brollies", "common"}
    assert {record["program"] for record in started} == {sys.executable}
    assert all(record["process"] > 1 for record in started)
    assert direct["definition"] == sent["definition"]
    assert direct["outcome"] == "done"


POLICY = """
rules:
- {name: anns, match: {tools: [keep_note]}, precondition: {cel: 'principal.id == "ann"'}}
- {name: scoped, match: {tools: [list_lines]}, precondition: {is_authenticated: notes}}
"""


def test_the_plane_knows_tenant_principal_and_scopes(
    binary: Path, issuer: Issuer, start_server: StartServer, tmp_path: Path
) -> None:
    """Over a plane of its own process, whose credential may say for whom it calls, and no more."""
    plane = start_server({"auth.methods": "api-key"})
    key = Keys(binary, plane.folder).create("agent", "catalog-writer", "delegate", tenant="")["key"]
    file = tmp_path / "plane.key"
    file.write_text(key)
    arguments = ("--server", plane.target, "--api-key-file", str(file), "--tenant", "acme")
    settings = issuer.settings().replace(', "api-key"', "") + servers()
    with GatewayProcess(binary, tmp_path, settings, arguments) as gateway:
        ann = issuer.bearer("ann")
        assert_apart(gateway, ann, issuer.bearer("bob"))
        with Client(plane.target, tenant="acme", api_key=key) as client:
            client.set_policy(POLICY)
        call = {"name": "anvils__keep_note", "arguments": {"text": "x"}}
        assert text(gateway, ann, "call_tool", call) == "kept"
        refused = result_of(gateway, issuer.bearer("amy"), "call_tool", call)
        assert refused["isError"] is True, "the policy names ann alone"
        lines = {"name": "anvils__list_lines", "arguments": {"count": 1}}
        assert result_of(gateway, ann, "call_tool", lines)["isError"] is True
        scoped = issuer.bearer("ann", scope="mcp notes")
        assert text(gateway, scoped, "call_tool", lines) == "line 0"


def test_an_address_that_others_reach_needs_a_decision(binary: Path, tmp_path: Path) -> None:
    config = f'[gateway]\nlisten = "0.0.0.0:{free_port()}"\npublic_url = "{PUBLIC}"\n'
    file = tmp_path / "gateway.toml"
    file.write_text(config + plain_server("notes"))
    refused = run(binary, "gateway", "--config", str(file), "--data-dir", str(tmp_path / "data"))
    assert refused.returncode == 2, refused.stderr
    assert "gateway.auth.methods" in refused.stderr


def test_the_planes_own_port_is_no_way_past_the_gateway(gateway: GatewayProcess) -> None:
    assert (gateway.folder / "data" / "gateway.key").stat().st_mode & 0o777 == 0o600
    codes = []
    for port in listening(gateway.process_id):
        with Client(f"127.0.0.1:{port}", tenant="acme", timeout=PATIENCE) as client:
            with pytest.raises(ToolgateError) as refused:
                list(client.list_tools())
            codes.append(refused.value.code)
    assert grpc.StatusCode.UNAUTHENTICATED in codes


def listening(process_id: int) -> list[int]:
    """Returns the ports that a process listens on."""
    if os.geteuid() != 0:
        pytest.skip("a process that writes no core file shows its connections to root alone")
    links = [os.readlink(link) for link in Path(f"/proc/{process_id}/fd").iterdir()]
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [
        int(line[1].split(":")[1], 16)
        for line in lines
        if line[3] == "0A" and f"socket:[{line[9]}]" in links
    ]
