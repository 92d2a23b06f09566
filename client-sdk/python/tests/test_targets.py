"""Targets: what people write, and what gRPC takes."""

import asyncio
from typing import Any

import grpc
import pytest
from conftest import FakeService

from toolgate import AsyncClient, Client, Tls
from toolgate._channel import endpoint, target_of
from toolgate._gen.v1 import router_pb2

TRUSTING = grpc.ssl_channel_credentials()


@pytest.mark.parametrize("written", ["{}", "http://{}", "http://{}/", "dns:///{}"])
def test_a_target_may_be_written_as_an_address(service: FakeService, written: str) -> None:
    service.answer("Route", router_pb2.RouteResponse(catalog_revision=7))
    target = written.format(service.target)
    with Client(target) as client:
        assert client.route("x").catalog_revision == 7

    async def route() -> int:
        async with AsyncClient(target) as client:
            return (await client.route("x")).catalog_revision

    assert asyncio.run(route()) == 7


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        ("https://tools.example:443", {"tls": False}, "tls=False"),
        ("http://tools.example:80", {"tls": True}, "no encryption"),
        ("http://tools.example:80", {"tls": Tls()}, "no encryption"),
        ("http://tools.example:80", {"credentials": TRUSTING}, "no encryption"),
        ("http://tools.example:80/v1", {}, "say host:port"),
        ("http://", {}, "say host:port"),
        ("http://tools.example", {}, "say host:port"),
        ("https://tools.example", {}, "say host:port"),
        ("https://", {}, "say host:port"),
        ("https://tools.example:443//", {}, "say host:port"),
    ],
)
def test_a_target_that_cannot_be_meant_is_refused_at_once(
    target: str, options: Any, says: str
) -> None:
    with pytest.raises(ValueError, match="://") as caught:
        Client(target, **options)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "target", ["", " ", "127.0.0.1", "localhost", "localhost:", "localhost:port", "::1", "[::1]"]
)
def test_a_target_without_a_port_is_refused_at_once(target: str) -> None:
    with pytest.raises(ValueError, match=r"say host:port, such as 127\.0\.0\.1:7070"):
        Client(target)


@pytest.mark.parametrize(
    "target",
    [
        "localhost:7070",
        "[::1]:7070",
        "dns:tools.example:7070",
        "unix:/run/t",
        "ipv4:127.0.0.1:7070",
    ],
)
def test_what_grpc_takes_beside_is_left_as_it_is(target: str) -> None:
    assert target_of(target, None) == (target, False)


@pytest.mark.parametrize(
    ("target", "authority"),
    [
        ("ipv4:10.0.0.1:7070,10.0.0.2:7070", ["10.0.0.1:7070"]),
        ("ipv6:[::1]:7070,[::2]:7070", ["[::1]:7070"]),
        ("ipv4:10.0.0.1:7070", []),
        ("tools.example:7070", []),
    ],
)
def test_of_several_addresses_one_is_the_authority(target: str, authority: list[str]) -> None:
    options = endpoint(target, None, None, []).options
    assert [value for name, value in options if name == "grpc.default_authority"] == authority


@pytest.mark.parametrize(
    ("target", "asked", "encrypted"),
    [
        ("https://tools.example:443/", None, True),
        ("https://tools.example:443", True, True),
        ("http://tools.example:443", None, False),
        ("http://tools.example:443", False, False),
        ("tools.example:443", True, True),
        ("tools.example:443", None, False),
    ],
)
def test_the_scheme_says_whether_to_encrypt(
    target: str, asked: bool | None, encrypted: bool
) -> None:
    assert target_of(target, asked) == ("tools.example:443", encrypted)
