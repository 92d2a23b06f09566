"""Tests what gRPC does by itself: health checks and retries."""

import asyncio
from collections.abc import Iterator
from concurrent import futures

import grpc
import pytest
from conftest import FakeService, fail
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from toolgate import AsyncClient, Client, ToolgateError
from toolgate._gen.v1 import router_pb2, router_pb2_grpc

ROUTED = router_pb2.RouteResponse(catalog_revision=7)


@pytest.fixture
def draining() -> Iterator[FakeService]:
    """Would answer, but says that it does not serve."""
    fake = FakeService()
    fake.answer("Route", ROUTED)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    says = health.HealthServicer()
    says.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(says, server)
    router_pb2_grpc.add_RouterServiceServicer_to_server(fake, server)  # type: ignore[arg-type]
    fake.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield fake
    server.stop(None).wait()


def test_a_service_that_does_not_serve_is_not_called(draining: FakeService) -> None:
    with Client(draining.target) as client, pytest.raises(ToolgateError) as caught:
        client.route("x")
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert draining.requests == []


async def route(target: str) -> None:
    async with AsyncClient(target) as client:
        await client.route("x")


def test_nor_by_asyncio(draining: FakeService) -> None:
    with pytest.raises(ToolgateError) as caught:
        asyncio.run(route(draining.target))
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert draining.requests == []


def test_many_failures_end_the_retries(service: FakeService) -> None:
    service.answer("Route", fail(grpc.StatusCode.UNAVAILABLE, "later"))
    with Client(service.target) as client:
        for _ in range(6):
            with pytest.raises(ToolgateError, match="later"):
                client.route("x")
    assert 6 < len(service.requests) < 12


def test_a_closed_client_says_so(service: FakeService) -> None:
    client = Client(service.target)
    client.close()
    with pytest.raises(ValueError, match="closed: make another"):
        client.route("x")
    with pytest.raises(ValueError, match="closed: make another"):
        client.watch_catalog()


def test_a_closed_asyncio_client_says_so(service: FakeService) -> None:
    async def route_after_closing() -> None:
        client = AsyncClient(service.target)
        await client.close()
        await client.route("x")

    with pytest.raises(ValueError, match="closed: make another"):
        asyncio.run(route_after_closing())
