"""Watching a catalog: what is asked for, and what a broken stream changes."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import grpc
import pytest
from conftest import FakeService, fail

from toolgate import AsyncClient, CatalogChange, CatalogWatch, Client, ToolgateError
from toolgate._gen.v1 import catalog_pb2
from toolgate.watching import Position

Answer = catalog_pb2.WatchCatalogResponse
Stream = Callable[[grpc.ServicerContext], Iterator[Answer]]


def streams(service: FakeService, *parts: Stream) -> None:
    """Serves the parts in turn, a stream each; the last one again and again."""
    left = list(parts)

    def serve(_request: object, context: grpc.ServicerContext) -> Iterator[Answer]:
        return (left.pop(0) if len(left) > 1 else left[0])(context)

    service.answer("WatchCatalog", serve)


def sends(*revisions: int, then: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> Stream:
    def stream(context: grpc.ServicerContext) -> Iterator[Answer]:
        for revision in revisions:
            yield Answer(catalog_revision=revision)
        if then is not grpc.StatusCode.OK:
            context.abort(then, "gone")

    return stream


def waits(context: grpc.ServicerContext) -> Iterator[Answer]:
    """Accepts the watch and says nothing until the caller leaves."""
    left = threading.Event()
    if context.add_callback(left.set):
        context.send_initial_metadata(())
        left.wait(20)
    yield from ()


def asked(service: FakeService) -> list[int | None]:
    return [
        request.since_revision if request.HasField("since_revision") else None
        for request in service.requests
    ]


def test_a_change_is_a_plain_value(service: FakeService) -> None:
    answer = Answer(catalog_revision=3, servers=["a", "b"], policy_changed=True, reset=True)
    service.answer("WatchCatalog", lambda _request, _context: iter([answer]))
    with Client(service.target, tenant="acme") as client, client.watch_catalog() as watch:
        assert next(watch) == CatalogChange(3, ("a", "b"), True, True)
    assert service.requests[0].tenant == "acme"


@pytest.mark.parametrize("since", [None, 0, 5])
def test_a_broken_watch_goes_on_from_what_it_saw(service: FakeService, since: int | None) -> None:
    streams(service, sends(6, 7), sends(), sends(8, then=grpc.StatusCode.OK), sends(9), waits)
    with Client(service.target) as client, client.watch_catalog(since_revision=since) as watch:
        assert [next(watch).revision for _ in range(4)] == [6, 7, 8, 9]
    assert [asked(service)[0], asked(service)[-1]] == [since, 8]
    assert set(asked(service)[1:]) == {7, 8}


def test_revision_0_is_seen_too(service: FakeService) -> None:
    streams(service, sends(0), sends(1), waits)
    with Client(service.target) as client, client.watch_catalog() as watch:
        assert [next(watch).revision for _ in range(2)] == [0, 1]
    assert asked(service)[:2] == [None, 0]


def test_asyncio_resumes_too(service: FakeService) -> None:
    streams(service, sends(6, 7), sends(8, then=grpc.StatusCode.OK), waits)

    async def watch() -> list[int]:
        async with AsyncClient(service.target) as client:
            changes = client.watch_catalog(since_revision=5)
            seen = [(await anext(changes)).revision for _ in range(3)]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(changes), 1)
            return seen

    assert asyncio.run(watch()) == [6, 7, 8]
    assert asked(service)[:3] == [5, 7, 8]


def test_other_failures_are_raised(service: FakeService) -> None:
    streams(service, sends(6), sends(then=grpc.StatusCode.PERMISSION_DENIED))
    with Client(service.target) as client, client.watch_catalog() as watch:
        assert next(watch).revision == 6
        with pytest.raises(ToolgateError) as caught:
            next(watch)
    assert caught.value.code is grpc.StatusCode.PERMISSION_DENIED


def test_a_service_that_does_not_serve_it_says_so(service: FakeService) -> None:
    service.answer("WatchCatalog", fail(grpc.StatusCode.UNIMPLEMENTED, "not by this version"))
    with (
        Client(service.target) as client,
        client.watch_catalog() as watch,
        pytest.raises(ToolgateError, match="not by this version"),
    ):
        next(watch)

    async def watch_async() -> None:
        async with AsyncClient(service.target) as client:
            await anext(client.watch_catalog())

    with pytest.raises(ToolgateError, match="not by this version"):
        asyncio.run(watch_async())


def test_a_watch_that_never_began_fails_like_a_call() -> None:
    with (
        Client("127.0.0.1:1") as client,
        client.watch_catalog(timeout=5) as watch,
        pytest.raises(ToolgateError, match="is `toolgate serve` running"),
    ):
        next(watch)


def test_a_service_that_comes_up_in_time_is_watched(service: FakeService) -> None:
    streams(service, *[sends()] * 4, sends(7), waits)
    with (
        Client(service.target) as client,
        client.watch_catalog(since_revision=5, timeout=60) as watch,
    ):
        assert next(watch).revision == 7
    assert set(asked(service)) <= {5, 7}


def hangs(context: grpc.ServicerContext) -> Iterator[Answer]:
    """Does not even accept the watch."""
    left = threading.Event()
    if context.add_callback(left.set):
        left.wait(60)
    yield Answer(catalog_revision=1)


def test_a_service_that_does_not_accept_it_in_time(service: FakeService) -> None:
    streams(service, hangs)
    with (
        Client(service.target) as client,
        client.watch_catalog(timeout=0.2) as watch,
        pytest.raises(ToolgateError, match="did not accept the watch in time") as caught,
    ):
        next(watch)
    assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED

    async def watch_async() -> None:
        async with AsyncClient(service.target) as client:
            await anext(client.watch_catalog(timeout=0.2))

    with pytest.raises(ToolgateError, match="did not accept the watch in time"):
        asyncio.run(watch_async())


def test_what_is_late_after_a_refusal_ends_with_the_refusal(service: FakeService) -> None:
    streams(service, sends(), hangs)
    with (
        Client(service.target) as client,
        client.watch_catalog(timeout=5) as watch,
        pytest.raises(ToolgateError, match="gone") as caught,
    ):
        next(watch)
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert len(service.requests) == 2
    streams(service, sends(), hangs)

    async def watch_async() -> None:
        async with AsyncClient(service.target) as client:
            await anext(client.watch_catalog(timeout=5))

    with pytest.raises(ToolgateError, match="gone"):
        asyncio.run(watch_async())
    assert len(service.requests) == 4


def test_later_streams_have_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("toolgate.watching.time.monotonic", lambda: now)
    position = Position("acme", None, "host:1", 10)
    position.request()
    assert position.within(8) == 8
    now += 7
    position.request()
    assert position.within(8) == 3
    now += 4
    assert position.within(8) == 0
    position.saw(Answer())
    assert position.within(8) == 8


def test_a_watch_that_was_accepted_once_asks_again_when_it_is_late(service: FakeService) -> None:
    streams(service, sends(6), hangs, sends(7), waits)
    with Client(service.target) as client, client.watch_catalog(timeout=5) as watch:
        assert [next(watch).revision for _ in range(2)] == [6, 7]


@pytest.mark.parametrize("closed", ["watch", "client"])
def test_another_thread_ends_a_watch_that_waits(service: FakeService, closed: str) -> None:
    streams(service, waits)
    ended: list[object] = []

    def follow(watch: CatalogWatch) -> None:
        try:
            ended.extend(watch)
        except (ToolgateError, ValueError) as error:
            ended.append(error)
        ended.append("ended")

    with Client(service.target) as client:
        watch = client.watch_catalog()
        thread = threading.Thread(target=follow, args=[watch])
        thread.start()
        while not service.requests:
            time.sleep(0.01)
        (watch if closed == "watch" else client).close()
        thread.join(60)
    assert ended[-1] == "ended"
    assert len(ended) == (1 if closed == "watch" else 2)


def test_a_task_that_watches_is_told_that_the_client_was_closed(service: FakeService) -> None:
    streams(service, sends(1, then=grpc.StatusCode.OK), waits)

    async def watch() -> None:
        client = AsyncClient(service.target)
        changes = client.watch_catalog()
        await anext(changes)
        waiting = asyncio.create_task(anext(changes))
        while len(service.requests) < 2:
            await asyncio.sleep(0.01)
        await client.close()
        await waiting

    # By when it was closed, the stream fails or the next one.
    with pytest.raises((ToolgateError, ValueError), match=r"client (was|is) closed"):
        asyncio.run(watch())


def test_a_closed_watch_gives_no_more(service: FakeService) -> None:
    streams(service, sends(1))
    with Client(service.target) as client:
        watch = client.watch_catalog()
        watch.close()
        assert list(watch) == []
    assert service.requests == []
