"""Encryption: whom the client trusts, and what it shows of itself."""

import asyncio
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import pytest
from certificates import Authority, Issued
from conftest import FakeService

from toolgate import AsyncClient, Client, Tls, ToolgateError
from toolgate._gen.v1 import router_pb2, router_pb2_grpc
from toolgate.tls import _system_authorities


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def encrypted(authority: Authority) -> Iterator[FakeService]:
    yield from serving(authority, authority.issue("localhost"), ask=False)


@pytest.fixture
def mutual(authority: Authority) -> Iterator[FakeService]:
    """Serves callers with a certificate only, and calls itself by another name."""
    yield from serving(authority, authority.issue("tools.example"), ask=True)


def serving(authority: Authority, own: Issued, *, ask: bool) -> Iterator[FakeService]:
    fake = FakeService()
    fake.answer("Route", router_pb2.RouteResponse(catalog_revision=7))
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    router_pb2_grpc.add_RouterServiceServicer_to_server(fake, server)  # type: ignore[arg-type]
    credentials = grpc.ssl_server_credentials(
        [(own.key, own.certificate)], authority.pem if ask else None, ask
    )
    fake.target = f"localhost:{server.add_secure_port('localhost:0', credentials)}"
    server.start()
    yield fake
    server.stop(None).wait()


@pytest.mark.parametrize("written", ["{}", "https://{}"])
def test_an_authority_may_be_a_path_or_its_text(
    encrypted: FakeService, authority: Authority, written: str, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    for ca in (authority.pem, tmp_path / "ca.pem", str(tmp_path / "ca.pem")):
        with Client(written.format(encrypted.target), tls=Tls(ca), api_key="k") as client:
            assert client.route("x").catalog_revision == 7


@pytest.mark.parametrize("tls", [True, None, Tls(Authority().pem)])
def test_an_unknown_authority_is_not_trusted(
    encrypted: FakeService, tls: Tls | bool | None
) -> None:
    with (
        Client(f"https://{encrypted.target}", tls=tls) as client,
        pytest.raises(ToolgateError) as caught,
    ):
        client.route("x")
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert encrypted.requests == []


def test_asyncio(mutual: FakeService, authority: Authority) -> None:
    own = authority.issue("agent")
    tls = Tls(authority.pem, own.certificate, own.key, "tools.example")

    async def route() -> int:
        async with AsyncClient(mutual.target, tls=tls) as client:
            return (await client.route("x")).catalog_revision

    assert asyncio.run(route()) == 7


def test_a_certificate_of_ones_own_under_another_name(
    mutual: FakeService, authority: Authority, tmp_path: Path
) -> None:
    own = authority.issue("agent")
    certificate, key = tmp_path / "me.pem", tmp_path / "me.key"
    certificate.write_bytes(own.certificate)
    key.write_bytes(own.key)
    tls = Tls(authority.pem, certificate, key, "tools.example")
    with Client(mutual.target, tls=tls) as client:
        assert client.route("x").catalog_revision == 7
    for lacking in (
        Tls(authority.pem, certificate, key),
        Tls(authority.pem, server_name="tools.example"),
    ):
        with Client(mutual.target, tls=lacking) as client, pytest.raises(ToolgateError):
            client.route("x", timeout=2)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"certificate": "a.pem"}, ValueError, "has no key="),
        ({"key": "a.key"}, ValueError, "has no certificate="),
        ({"ca": "-----BEGIN CERTIFICATE-----\n"}, ValueError, "as bytes"),
        ({"ca": 7}, TypeError, "not int"),
    ],
)
def test_mistakes_are_told_at_once(
    arguments: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Tls(**arguments)  # type: ignore[arg-type]


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.pem"):
        Client("https://tools.example:443", tls=Tls("absent.pem"))


def test_two_ways_to_say_it_contradict_each_other() -> None:
    with pytest.raises(ValueError, match="not both"):
        Client(tls=True, credentials=grpc.ssl_channel_credentials())
    with pytest.raises(TypeError, match="not str"):
        Client(tls="ca.pem")  # type: ignore[arg-type]


def test_the_key_is_not_shown() -> None:
    assert "s3cret" not in repr(Tls(certificate="me.pem", key=b"s3cret"))


def test_the_systems_authorities_are_found_where_openssl_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bundle.pem").write_bytes(b"one")
    (tmp_path / "ca-certificates.crt").write_bytes(b"all")
    monkeypatch.delenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "bundle.pem"))
    assert _system_authorities() == b"one"
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent"))
    assert _system_authorities() == b"all"
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "elsewhere")
    assert _system_authorities() is None
