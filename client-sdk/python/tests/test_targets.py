"""Targets: what people write, and what gRPC takes."""

import asyncio

import grpc
import pytest
from conftest import FakeService

from toolgate import AsyncClient, Client
from toolgate._channel import target_of
from toolgate._gen.v1 import router_pb2


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
    ("target", "credentials", "says"),
    [
        ("https://tools.example:443", None, "credentials=grpc.ssl_channel_credentials()"),
        ("http://tools.example:80", grpc.ssl_channel_credentials(), "no encryption"),
        ("http://tools.example:80/v1", None, "say host:port"),
        ("http://", None, "say host:port"),
        ("http://tools.example", None, "say host:port"),
        ("https://", grpc.ssl_channel_credentials(), "say host:port"),
    ],
)
def test_a_target_that_cannot_be_meant_is_refused_at_once(
    target: str, credentials: grpc.ChannelCredentials | None, says: str
) -> None:
    with pytest.raises(ValueError, match="://") as caught:
        Client(target, credentials=credentials)
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
    assert target_of(target, encrypted=False) == target


def test_https_has_a_port_of_its_own() -> None:
    assert target_of("https://tools.example/", encrypted=True) == "tools.example"
