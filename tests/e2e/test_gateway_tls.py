"""TLS at the gateway's own listener, and hosts that show certificates."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import trustme
from credentials import Certificates, client_certificate
from gateway_process import GatewayProcess, Json, answer_of, message, plain_server
from plain_mcp_server import TOOLS
from toolgate_command import run
from waiting import PATIENCE, wait_until

ANN = "spiffe://example.org/tenant/acme/ann"
MTLS = """
[gateway.auth]
methods = ["mtls"]
trust_domain = "example.org"
certificates = ["cn:ops=acme:admin"]
"""


def tls_of(certificates: Certificates, *more: str) -> str:
    files = {"cert_file": "cert.pem", "key_file": "key.pem", "client_ca_file": "clients.pem"}
    lines = [f"{key} = {json.dumps(str(certificates.folder / of))}" for key, of in files.items()]
    return "\n".join(["[gateway.tls]", *lines, *more, ""])


class Host:
    """A host with a certificate, or without one."""

    def __init__(
        self,
        gateway: GatewayProcess,
        certificates: Certificates,
        identity: str = "",
        of: trustme.CA | None = None,
    ) -> None:
        self._url = gateway.url.replace("http:", "https:")
        self.context = ssl.create_default_context(cafile=str(certificates.ca))
        if identity:
            is_uri = "://" in identity
            names = (identity, "") if is_uri else ("", identity)
            certificate, key = client_certificate(of or certificates.clients, *names)
            both = certificates.folder / "host.pem"
            both.write_bytes(certificate + key)
            self.context.load_cert_chain(both)

    def get(self, path: str) -> int:
        """The status of an answer."""
        try:
            with urllib.request.urlopen(
                self._url + path, timeout=PATIENCE, context=self.context
            ) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    def ask(self, method: str, params: Json, path: str) -> tuple[int, Json]:
        """The status and the message of an answer."""
        body = message(method, params)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            **({"Mcp-Name": params["name"]} if "name" in params else {}),
        }
        with httpx.Client(verify=self.context, timeout=PATIENCE) as client:
            answer = client.post(self._url + path, json=body, headers=headers)
        return answer.status_code, answer_of(answer.text)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    folder = tmp_path / "certificates"
    folder.mkdir()
    return Certificates(folder)


@pytest.fixture
def gateway(binary: Path, tmp_path: Path, certificates: Certificates) -> Iterator[GatewayProcess]:
    audit = json.dumps(str(tmp_path / "audit.jsonl"))
    config = f"[gateway]\naudit_file = {audit}\n" + MTLS + tls_of(certificates)
    config += plain_server("notes") + 'tenants = ["acme"]\n'
    with GatewayProcess(binary, tmp_path, config) as running:
        yield running


def test_a_certificate_says_who_a_host_is(
    gateway: GatewayProcess, certificates: Certificates
) -> None:
    assert any("serving on https://" in line for line in gateway.said)
    ann = Host(gateway, certificates, ANN)
    status, answer = ann.ask("tools/list", {}, "/mcp/s/notes")
    assert (status, answer["result"]["tools"]) == (200, TOOLS)
    call = {"name": "read_note", "arguments": {}}
    assert ann.ask("tools/call", call, "/mcp/s/notes")[0] == 200
    assert ann.get("/gateway/status") == 403, "an agent is no operator"
    assert Host(gateway, certificates, "ops").get("/gateway/status") == 200
    audit = (gateway.folder / "audit.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in audit]
    (line,) = [one for one in lines if one.get("event") != "start"]
    assert (line["tenant"], line["principal"]) == ("acme", "ann")


def test_operators_show_their_certificates(
    binary: Path, gateway: GatewayProcess, certificates: Certificates
) -> None:
    certificate, key = client_certificate(certificates.clients, "", "ops")
    (certificates.folder / "ops.pem").write_bytes(certificate)
    (certificates.folder / "ops.key").write_bytes(key)
    files = {"--ca-file": "ca.pem", "--client-cert": "ops.pem", "--client-key": "ops.key"}
    shown = [part for flag, of in files.items() for part in (flag, str(certificates.folder / of))]
    url = ("--url", gateway.url.replace("http:", "https:"))
    status = run(binary, "gateway", "status", *url, *shown)
    assert status.returncode == 0, status.stderr
    assert "notes" in status.stdout
    unshown = run(binary, "gateway", "status", *url, *shown[:2])
    assert unshown.returncode != 0
    assert "401" in unshown.stderr


def test_hosts_without_a_good_certificate_are_refused(
    gateway: GatewayProcess, certificates: Certificates
) -> None:
    listing: Json = {}
    nobody = Host(gateway, certificates)
    assert nobody.get("/livez") == 200
    assert nobody.ask("tools/list", listing, "/mcp")[0] == 401
    unknown = Host(gateway, certificates, "spiffe://elsewhere.example/tenant/acme/ann")
    assert unknown.ask("tools/list", listing, "/mcp")[0] in (401, 403)
    other = Host(gateway, certificates, "spiffe://example.org/tenant/umbrella/eve")
    assert other.ask("tools/list", listing, "/mcp")[0] == 403, "no server is for its tenant"
    foreign = Host(gateway, certificates, ANN, of=trustme.CA())
    with pytest.raises(httpx.TransportError):
        foreign.ask("tools/list", listing, "/mcp")
    # An alert of TLS is no answer of HTTP.
    with pytest.raises((OSError, http.client.HTTPException)):
        urllib.request.urlopen(gateway.url + "/livez", timeout=PATIENCE)


def test_new_certificates_are_taken_while_it_runs(
    gateway: GatewayProcess, certificates: Certificates
) -> None:
    host = Host(gateway, certificates, ANN)
    place = gateway.url.removeprefix("http://").split(":")

    def shown() -> str:
        return ssl.get_server_certificate((place[0], int(place[1])), timeout=PATIENCE)

    first = shown()
    certificates.write_server("127.0.0.1", "gateway.example")
    wait_until(lambda: shown() != first, "the certificate is as before")
    assert host.ask("tools/list", {}, "/mcp")[0] == 200


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ('[gateway.tls]\ncert_file = "c"', "need each other"),
        ('[gateway.tls]\nclient_ca_file = "c"', "needs `cert_file`"),
        (MTLS, "gateway.tls.client_ca_file"),
        ('[gateway.auth]\ntrust_domain = "example.org"', "need each other"),
    ],
)
def test_settings_that_make_no_sense_are_told(
    binary: Path, tmp_path: Path, settings: str, problem: str
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(settings + "\n" + plain_server("notes"))
    checked = run(binary, "gateway", "check", str(file))
    assert checked.returncode != 0
    assert problem in checked.stderr


def test_a_rule_for_certificates_that_makes_no_sense_ends_the_start(
    binary: Path, tmp_path: Path, certificates: Certificates
) -> None:
    rule = MTLS.replace("cn:ops=acme:admin", "cn:ops=acme:root")
    config = rule + tls_of(certificates) + plain_server("notes")
    gateway = GatewayProcess(binary, tmp_path, config)
    with pytest.raises(AssertionError, match="no role"):
        gateway.start()
