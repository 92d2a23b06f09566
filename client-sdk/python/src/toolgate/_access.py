"""The caller's identity: the API key or the token that goes with each call."""

import asyncio
import inspect
import re
import time
from collections.abc import Awaitable, Callable

import grpc

from toolgate.errors import ToolgateError

Metadata = tuple[tuple[str, str], ...]
TokenSource = Callable[[], str]
AsyncTokenSource = Callable[[], str | Awaitable[str]]

# gRPC says the whole header in its error when it can't carry it: a secret must not get that far.
_HEADER_TEXT = re.compile(r"[\x21-\x7e]+")


class Access:
    """The header of each call; knows a secret, and has no text form that says it."""

    def __init__(self, api_key: str | None, token: AsyncTokenSource | None) -> None:
        """Takes one of both, or none.

        Raises:
            TypeError: a key that is no text, or a token source that is no function.
            ValueError: both, or a key that no header can carry.
        """
        if api_key is not None and token is not None:
            raise ValueError("give api_key= or token=, not both")
        if token is not None and not callable(token):
            raise TypeError(
                f"token= is a function that gives the token, not {type(token).__name__}"
            )
        self._api_key = None if api_key is None else _header(api_key, "api_key=")
        self._token = token

    def __bool__(self) -> bool:
        return self._api_key is not None or self._token is not None

    def metadata(self, timeout: float) -> tuple[Metadata, float]:
        """The header, and the seconds left once it was found.

        Raises:
            ToolgateError: the token source took longer than the call may.
        """
        if self._token is None:
            return self._api_key or (), timeout
        began = time.monotonic()
        token = self._token()
        if inspect.isawaitable(token):
            if inspect.iscoroutine(token):
                token.close()
            raise TypeError("token= is an async function: only AsyncClient takes those")
        return _header(token, "what token= gave"), _left(began, timeout)

    async def metadata_async(self, timeout: float) -> tuple[Metadata, float]:
        """The same, for asyncio."""
        if self._token is None:
            return self._api_key or (), timeout
        began = time.monotonic()
        token = self._token()
        if inspect.isawaitable(token):
            token = await _awaited(token, timeout)
        return _header(token, "what token= gave"), _left(began, timeout)


async def _awaited(token: Awaitable[str], timeout: float) -> str:
    try:
        async with asyncio.timeout(timeout) as limit:
            return await token
    except TimeoutError:
        if not limit.expired():  # The token source's own.
            raise
        raise _late(timeout) from None


def _left(began: float, timeout: float) -> float:
    left = began + timeout - time.monotonic()
    if left <= 0:
        raise _late(timeout)
    return left


def _late(timeout: float) -> ToolgateError:
    code = grpc.StatusCode.DEADLINE_EXCEEDED
    return ToolgateError(code, f"token= gave no token within {timeout} s")


def _header(secret: object, given: str) -> Metadata:
    if not isinstance(secret, str):
        raise TypeError(f"{given} must be a text, not {type(secret).__name__}")
    if not _HEADER_TEXT.fullmatch(secret):
        raise ValueError(
            f"{given} must be visible ASCII characters, at least one: no space and no line's end"
        )
    return (("authorization", f"Bearer {secret}"),)
