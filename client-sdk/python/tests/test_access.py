"""Keys and tokens: where they go, and where they never go."""

import asyncio
import time
from typing import Any

import grpc
import pytest
from conftest import FakeService

from toolgate import AsyncClient, Client, ToolgateError
from toolgate._gen.v1 import router_pb2

SECRET = "tg-s3cret"


@pytest.fixture
def heard(service: FakeService) -> list[Any]:
    """The authorization of each call that came."""
    headers: list[Any] = []

    def answer(_request: object, context: grpc.ServicerContext) -> router_pb2.RouteResponse:
        headers.append(dict(context.invocation_metadata()).get("authorization"))
        return router_pb2.RouteResponse()

    service.answer("Route", answer)
    return headers


def test_without_credentials_there_is_no_header(service: FakeService, heard: list[Any]) -> None:
    with Client(service.target) as client:
        client.route("x")
    assert heard == [None]


def test_a_key_goes_with_every_call(service: FakeService, heard: list[Any]) -> None:
    with Client(service.target, api_key=SECRET) as client:
        client.route("x")
        client.route("x")
    assert heard == [f"Bearer {SECRET}"] * 2


def test_a_token_is_asked_for_before_each_call(service: FakeService, heard: list[Any]) -> None:
    tokens = iter(("one", "two"))
    with Client(service.target, token=lambda: next(tokens)) as client:
        client.route("x")
        client.route("x")
    assert heard == ["Bearer one", "Bearer two"]


def test_asyncio_takes_plain_and_async_token_functions(
    service: FakeService, heard: list[Any]
) -> None:
    async def fetch() -> str:
        await asyncio.sleep(0)
        return "fetched"

    async def route(**options: Any) -> None:
        async with AsyncClient(service.target, **options) as client:
            await client.route("x")

    for options in ({"token": fetch}, {"token": lambda: "plain"}, {"api_key": SECRET}, {}):
        asyncio.run(route(**options))
    assert heard == ["Bearer fetched", "Bearer plain", f"Bearer {SECRET}", None]


def test_finding_the_token_counts_against_the_deadline(
    service: FakeService, heard: list[Any]
) -> None:
    def slow() -> str:
        time.sleep(0.3)
        return "late"

    with Client(service.target, token=slow) as client, pytest.raises(ToolgateError) as caught:
        client.route("x", timeout=0.2)
    assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED

    async def fails() -> str:
        raise TimeoutError("of the token's issuer")

    async def never() -> str:
        await asyncio.Event().wait()
        return ""

    async def route(token: Any) -> None:
        async with AsyncClient(service.target, token=token) as client:
            await client.route("x", timeout=0.2)

    with pytest.raises(ToolgateError, match=r"gave no token within 0\.2 s"):
        asyncio.run(route(never))
    with pytest.raises(TimeoutError, match="of the token's issuer"):
        asyncio.run(route(fails))
    assert heard == []


@pytest.mark.parametrize("secret", ["", "two words", "line\n", "clé", "\x00"])
def test_a_key_that_no_header_carries_is_refused_without_saying_it(secret: str) -> None:
    with pytest.raises(ValueError, match="visible ASCII") as caught:
        Client(api_key=secret)
    assert not secret or secret not in str(caught.value)
    with (
        Client(token=lambda: secret) as client,
        pytest.raises(ValueError, match="what token= gave"),
    ):
        client.route("x")


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"api_key": SECRET, "token": lambda: SECRET}, ValueError, "not both"),
        ({"api_key": SECRET.encode()}, TypeError, "not bytes"),
        ({"token": SECRET}, TypeError, "function"),
    ],
)
def test_mistaken_credentials_are_refused_at_once(
    options: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as caught:
        Client(**options)
    assert SECRET not in str(caught.value)


def test_the_blocking_client_takes_no_async_token_function() -> None:
    async def fetch() -> str:
        return SECRET

    with (
        Client(token=fetch) as client,  # type: ignore[arg-type]
        pytest.raises(TypeError, match="AsyncClient"),
    ):
        client.route("x")


@pytest.mark.parametrize("target", ["tools.example:7070", "http://10.0.0.1:80", "dns:///a.b:1"])
def test_a_secret_stays_off_open_networks(target: str) -> None:
    with pytest.raises(ValueError, match="sent unencrypted") as caught:
        Client(target, api_key=SECRET)
    assert SECRET not in str(caught.value)
    with pytest.raises(ValueError, match="sent unencrypted"):
        AsyncClient(target, token=lambda: SECRET)
    Client(target, api_key=SECRET, allow_insecure_credentials=True).close()


@pytest.mark.parametrize(
    "target",
    [
        "localhost:7070",
        "127.0.0.2:7070",
        "http://[::1]:7070",
        "ipv4:127.0.0.1:7070",
        "dns:///localhost:7070",
        "unix:/run/toolgate",
        "https://tools.example:443",
    ],
)
def test_a_secret_may_stay_on_this_machine_or_go_encrypted(target: str) -> None:
    Client(target, api_key=SECRET).close()


@pytest.mark.parametrize(
    "target",
    [
        "ipv4:127.0.0.1:7070,10.0.0.1:7070",
        "127.0.0.1.example:80",
        "xds:///localhost:80",
        "dns://10.0.0.1/localhost:80",
    ],
)
def test_what_looks_like_this_machine_is_not_taken_for_it(target: str) -> None:
    with pytest.raises(ValueError, match="sent unencrypted"):
        Client(target, api_key=SECRET)


def test_no_text_form_says_the_secret(service: FakeService) -> None:
    with Client("127.0.0.1:1", api_key=SECRET, timeout=0.5) as client:
        with pytest.raises(ToolgateError) as caught:
            client.route("x")
        assert SECRET not in f"{client!r} {vars(client)!r} {caught.value!r} {caught.value}"
