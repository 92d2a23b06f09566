"""Watching a catalog: where a watch stands, and how it goes on after a broken stream."""

import asyncio
import random
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Protocol, Self, TypeAlias

import grpc
import grpc.aio

from toolgate import errors
from toolgate._gen.v1 import catalog_pb2
from toolgate.catalog import CatalogChange
from toolgate.errors import ToolgateError


class Call(Protocol):
    """A stream of grpcio's blocking face."""

    def __next__(self) -> catalog_pb2.WatchCatalogResponse:
        """Waits for the next answer."""

    def initial_metadata(self) -> object:
        """Waits until the service accepts the call, or the call ends."""

    def is_active(self) -> bool:
        """Returns True if it goes on."""

    def cancel(self) -> object:
        """Ends it."""


AsyncCall: TypeAlias = (
    "grpc.aio.UnaryStreamCall[catalog_pb2.WatchCatalogRequest, catalog_pb2.WatchCatalogResponse]"
)
Open = Callable[[catalog_pb2.WatchCatalogRequest], tuple[Call, float]]
"""Starts a stream; with it the seconds that it may take until the service accepts it."""
OpenAsync = Callable[[catalog_pb2.WatchCatalogRequest], Awaitable[tuple[AsyncCall, float]]]

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


class Position:
    """State of a watch: the last revision seen, and the wait before it asks again."""

    def __init__(
        self, tenant: str, since_revision: int | None, target: str, timeout: float
    ) -> None:
        self._tenant = tenant
        self._revision = since_revision
        self._target = target
        self._timeout = timeout
        self._pause = _FIRST_PAUSE
        self._give_up: float | None = None
        self._refusal: ToolgateError | None = None
        self.accepted = False
        """True if the service ever took the watch: until then, there is a deadline."""

    def request(self) -> catalog_pb2.WatchCatalogRequest:
        """Asks for what came after what was seen."""
        if self._give_up is None:
            self._give_up = time.monotonic() + self._timeout
        return catalog_pb2.WatchCatalogRequest(tenant=self._tenant, since_revision=self._revision)

    def within(self, seconds: float) -> float:
        """Takes the seconds that a stream may take to open by itself; gives those that it has."""
        return seconds if self.accepted else max(0.0, min(seconds, self._left()))

    def saw(self, message: catalog_pb2.WatchCatalogResponse) -> CatalogChange:
        """Moves on to a change."""
        self.accepted = True
        self._revision = message.catalog_revision
        self._pause = _FIRST_PAUSE
        return CatalogChange.from_proto(message)

    def broken(self, failure: grpc.RpcError | None, *, late: bool) -> float:
        """The seconds to wait before asking again.

        Args:
            failure: The error that ended the stream; None: the service ended it without one.
            late: True if it was cancelled here, as the service did not accept it in time.

        Raises:
            ToolgateError: asking again would not help, or there is no time left to.
        """
        error = None if failure is None else self._error(failure, late)
        pause = self._pause * random.uniform(0.8, 1.2)
        if error is not None:
            pause = max(pause, error.retry_after or 0.0)
            if not (self._may_wait(pause, late) and (late or _is_lost(error))):
                raise error
            self._refusal = error
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return pause

    def _left(self) -> float:
        return (self._give_up or 0.0) - time.monotonic()

    def _may_wait(self, pause: float, late: bool) -> bool:
        return self.accepted or (not late and pause < self._left())

    def _error(self, failure: grpc.RpcError, late: bool) -> ToolgateError:
        if late and not self.accepted and self._refusal is not None:
            # The time that a refusal left says nothing of the service, and the refusal does.
            return self._refusal
        if late:
            code = grpc.StatusCode.DEADLINE_EXCEEDED
            return ToolgateError(code, f"{self._target} did not accept the watch in time")
        return errors.from_rpc_error(failure, self._target)


def _is_lost(error: ToolgateError) -> bool:
    # A stream that is cut in the middle has no status: gRPC makes one, which says so only here.
    return error.code is grpc.StatusCode.UNAVAILABLE or "RST_STREAM" in error.message


class CatalogWatch(Iterator[CatalogChange]):
    """The changes of a catalog, one after another, for as long as anybody asks for the next one.

        with client.watch_catalog() as watch:
            for change in watch:
                print(change.revision, change.servers)

    `close()`, which any thread may call, ends the iteration.
    """

    def __init__(self, start: Open, position: Position) -> None:
        """Made by `Client.watch_catalog`; asks for nothing before the first change is wanted."""
        self._start = start
        self._position = position
        self._call: Call | None = None
        self._late = False
        self._closed = threading.Event()

    def __next__(self) -> CatalogChange:
        """Waits for the next change.

        Raises:
            StopIteration: the watch was closed.
            ToolgateError: the watch failed otherwise than by a broken connection.
        """
        while not self._closed.is_set():
            failure = None
            try:
                return self._position.saw(next(self._call or self._opened()))
            except StopIteration:
                pass
            except grpc.RpcError as error:
                failure = error
            self._call = None
            if not self._closed.is_set():
                self._closed.wait(self._position.broken(failure, late=self._late))
        raise StopIteration

    def close(self) -> None:
        """Ends the watch; whoever waits for its next change waits no longer."""
        self._closed.set()
        if (call := self._call) is not None:
            call.cancel()

    def _opened(self) -> Call:
        call, seconds = self._start(self._position.request())
        self._call, self._late = call, False
        if self._closed.is_set():  # Too early for `close` to see the call.
            call.cancel()
        timer = threading.Timer(self._position.within(seconds), self._give_up, [call])
        timer.daemon = True
        timer.start()
        call.initial_metadata()
        timer.cancel()
        self._position.accepted |= call.is_active()
        return call

    def _give_up(self, call: Call) -> None:
        self._late = True
        call.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


async def watch(start: OpenAsync, position: Position) -> AsyncGenerator[CatalogChange, None]:
    """The same, for asyncio."""
    while True:
        failure = None
        late = False
        call, seconds = await start(position.request())
        try:
            await asyncio.wait_for(call.initial_metadata(), position.within(seconds))
            position.accepted |= not call.done()
            async for message in call:
                yield position.saw(message)
        except TimeoutError:
            failure, late = grpc.RpcError(), True
        except grpc.RpcError as error:
            failure = error
        except asyncio.CancelledError:
            # grpcio raises this for a closed client too, which does not cancel the task.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            raise ToolgateError(grpc.StatusCode.CANCELLED, "the client was closed") from None
        finally:
            call.cancel()
        await asyncio.sleep(position.broken(failure, late=late))
