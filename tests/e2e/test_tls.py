"""TLS on the gRPC port: certificates that are replaced, and clients that show their own."""

import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import grpc
import pytest
import trustme
from catalogs import NOTES, refused
from credentials import Certificates, Keys
from cryptography import x509
from toolgate_command import run
from toolgate_process import ToolgateProcess
from waiting import PATIENCE, wait_until

from toolgate import Client, Tls, ToolgateError

START_SECONDS = 60


class TlsProcess(ToolgateProcess):
    """Ready as soon as its admin port says so: a channel without TLS would not be."""

    def _await_channel(self) -> None:
        pass


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    folder = tmp_path / "certificates"
    folder.mkdir()
    return Certificates(folder)


@pytest.fixture
def start(binary: Path, tmp_path: Path) -> Iterator[Callable[[Mapping[str, str]], TlsProcess]]:
    started: list[TlsProcess] = []

    def start(settings: Mapping[str, str]) -> TlsProcess:
        process = TlsProcess(binary, tmp_path / f"tls{len(started)}", settings)
        started.append(process)
        process.start()
        return process

    yield start
    for process in started:
        process.stop()


Start = Callable[[Mapping[str, str]], TlsProcess]


def client(server: ToolgateProcess, tls: Tls, **options: str) -> Client:
    return Client(server.target, tls=tls, timeout=PATIENCE, **options)  # type: ignore[arg-type]


def seen(server: ToolgateProcess, certificates: Certificates) -> x509.Certificate:
    """The certificate that a new connection sees."""
    context = ssl.create_default_context(cafile=str(certificates.ca))
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    host, port = server.target.split(":")
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE) as raw,
        context.wrap_socket(raw) as stream,
    ):
        assert stream.selected_alpn_protocol() == "h2"
        shown = stream.getpeercert(binary_form=True)
        assert shown is not None
        return x509.load_der_x509_certificate(shown)


def names(certificate: x509.Certificate) -> list[str]:
    extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return [str(name.value) for name in extension.value]


def test_every_way_of_calling_works_over_tls(
    start: Start, certificates: Certificates, binary: Path, tmp_path: Path
) -> None:
    server = start(certificates.settings())
    with client(server, Tls(ca=certificates.ca), tenant="acme") as anybody:
        anybody.register_server("notes", NOTES)
        assert anybody.route("write a note").tools
    context = ssl.create_default_context(cafile=str(certificates.ca))
    web = http.client.HTTPSConnection(server.target, timeout=PATIENCE, context=context)
    body = json.dumps({"tenant": "acme", "intents": [{"text": "write a note"}]})
    web.request(
        "POST", "/toolgate.v1.RouterService/Route", body, {"Content-Type": "application/json"}
    )
    assert web.getresponse().status == 200
    web.close()
    env = {"TOOLGATE_ENDPOINT": f"https://{server.target}", "TOOLGATE_TENANT": "acme"}
    done = run(binary, "route", "write a note", "--ca-file", certificates.ca, env=env)
    assert "create_note" in done.stdout, done.stderr
    # Neither without TLS nor by somebody who trusts others.
    plain = http.client.HTTPConnection(server.target, timeout=PATIENCE)
    plain.request("POST", "/", body)
    with pytest.raises((http.client.HTTPException, OSError)):
        plain.getresponse()
    assert run(binary, "route", "a", env=env).returncode != 0
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.load_verify_locations(str(certificates.ca))
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
    host, port = server.target.split(":")
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE) as raw,
        old.wrap_socket(raw, server_hostname=host) as stream,
    ):
        assert stream.version() == "TLSv1.2"
    expiry = seen(server, certificates).not_valid_after_utc.timestamp()
    metric = f"toolgate_tls_certificate_expiry_seconds {int(expiry)}"
    assert metric in server.get("/metrics")[1]


def test_certificates_are_replaced_under_open_connections(
    start: Start, certificates: Certificates
) -> None:
    server = start(certificates.settings())
    with client(server, Tls(ca=certificates.ca), tenant="acme") as anybody:
        anybody.register_server("notes", NOTES)
        before = seen(server, certificates).serial_number
        certificates.write_server("127.0.0.1", "new.example.com")
        failed = 0
        give_up = time.monotonic() + PATIENCE
        while seen(server, certificates).serial_number == before:
            failed += not anybody.route("write a note").tools
            assert time.monotonic() < give_up, server.log_text()[-2000:]
        assert failed == 0
        assert anybody.route("write a note").tools
        assert "new.example.com" in names(seen(server, certificates))
        # A pair that is no good leaves the one before it.
        other = certificates.authority.issue_cert("other.example.com")
        (certificates.folder / "cert.pem").write_bytes(other.cert_chain_pems[0].bytes())
        server.await_log("new certificates are not good")
        assert "new.example.com" in names(seen(server, certificates))
        certificates.write_server("127.0.0.1", "third.example.com")
        wait_until(lambda: "third.example.com" in names(seen(server, certificates)))
        assert anybody.route("write a note").tools


def test_client_certificates_say_who_calls(
    start: Start, certificates: Certificates, binary: Path, tmp_path: Path
) -> None:
    settings = certificates.settings(
        **{
            "tls.client_ca_file": str(certificates.client_ca),
            "auth.methods": "mtls,api-key",
            "auth.trust_domain": "example.org",
            "auth.certificates": "spiffe://example.org/ns/ops/sa/catalog=acme:catalog-writer,cn:boss=*:admin",
        }
    )
    server = start(settings)
    writer = certificates.client("spiffe://example.org/ns/ops/sa/catalog")
    agent = certificates.client("spiffe://example.org/tenant/acme/bot")
    with client(server, writer) as writing, client(server, agent) as asking:
        writing.register_server("notes", NOTES)
        assert asking.route("write a note").tools
        with refused(grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED"):
            writing.route("write a note")
        with refused(grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED"):
            asking.register_server("x", NOTES)
    denied = refused(grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED")
    with client(server, agent, tenant="other") as astray, denied:
        astray.route("write a note")
    with client(server, certificates.client(name="boss"), tenant="acme") as boss:
        assert [s.name for s in boss.list_servers()] == ["notes"]
    for nobody in [
        certificates.client("spiffe://example.org/ns/ops/sa/other"),
        certificates.client("spiffe://other.org/tenant/acme/bot"),
        certificates.client(name="nobody"),
        Tls(ca=certificates.ca),
    ]:
        unknown_caller = refused(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
        with client(server, nobody) as unknown, unknown_caller:
            unknown.route("write a note")
    # Of an authority that is not the clients': no connection at all.
    stranger = certificates.client("spiffe://example.org/tenant/acme/bot", of=trustme.CA())
    with client(server, stranger) as cut, pytest.raises(ToolgateError) as error:
        cut.route("write a note", timeout=3)
    assert error.value.code in (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    )
    # Callers without a certificate may have a key; a bad key is not made good by a certificate.
    key = Keys(binary, tmp_path / "tls0").create("agent")["key"]
    with client(server, Tls(ca=certificates.ca), api_key=key) as keyed:
        assert keyed.route("write a note").tools
    unknown_caller = refused(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
    with client(server, agent, api_key=f"tgk_{'0' * 12}_{'0' * 64}") as both, unknown_caller:
        both.route("write a note")


def test_certificates_can_be_demanded_beside_keys(
    start: Start, certificates: Certificates, binary: Path, tmp_path: Path
) -> None:
    server = start(
        certificates.settings(
            **{"tls.client_ca_file": str(certificates.client_ca), "auth.methods": "api-key"}
        )
    )
    key = Keys(binary, tmp_path / "tls0").create("agent", "catalog-writer")["key"]
    shown = certificates.client(name="anybody")
    with client(server, shown, api_key=key) as both:
        both.register_server("notes", NOTES)
        assert both.route("write a note").tools
    unknown_caller = refused(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
    with client(server, shown) as keyless, unknown_caller:
        keyless.route("write a note")
    bare = client(server, Tls(ca=certificates.ca), api_key=key)
    with bare, pytest.raises(ToolgateError) as error:
        bare.route("write a note", timeout=3)
    assert error.value.code != grpc.StatusCode.UNAUTHENTICATED


def test_mistakes_keep_the_server_from_starting(
    binary: Path, certificates: Certificates, tmp_path: Path
) -> None:
    key = certificates.folder / "key.pem"
    for settings, told in [
        ({"tls.cert_file": "c"}, "tls.key_file"),
        ({"auth.methods": "mtls"}, "tls.client_ca_file"),
        ({"auth.methods": "jwt"}, "auth.issuer"),
        ({"auth.issuer": "x"}, "auth.methods"),
        ({"auth.methods": "basic"}, "api-key, jwt, mtls"),
        (certificates.settings(**{"tls.cert_file": str(key)}), "no certificate in PEM"),
        (certificates.settings(**{"tls.key_file": str(tmp_path / "none")}), "can't be read"),
        ({"auth.methods": "api-key", "auth.admin_key_file": str(key)}, "not one API key"),
    ]:
        process = ToolgateProcess(binary, tmp_path / "mistaken", settings)
        assert process.launch().wait(timeout=START_SECONDS) == 1, settings
        assert told in process.log_text(), (settings, process.log_text()[-800:])
        process.log.unlink()


def test_open_ports_are_warned_of(start: Start, certificates: Certificates) -> None:
    everywhere = {"server.listen": "0.0.0.0:0"}
    keyed = {**everywhere, "auth.methods": "api-key"}
    for settings, told in [
        (everywhere, "without authentication"),
        (keyed, "without TLS"),
        (certificates.settings(**keyed), ""),
    ]:
        log = start(settings).log_text()
        warned = [word for word in ("without authentication", "without TLS") if word in log]
        assert warned == ([told] if told else []), log
