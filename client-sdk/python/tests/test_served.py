"""Lists of MCP servers, and servers whose changed tools can't be listed."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from toolgate import Client, Conversation, _served
from toolgate._served import listed_tools


class Book:
    """A session of a server with these many pages, one tool on each."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    async def list_tools(self, cursor: str = "1") -> Any:
        at = int(cursor)
        return SimpleNamespace(tools=[at], nextCursor=str(at + 1) if at < self.pages else None)


class Endless:
    """A session of a server whose pages all have the same cursor."""

    async def list_tools(self, cursor: str = "") -> Any:
        return SimpleNamespace(tools=[cursor], nextCursor="again")


class Hung:
    """A session of a server that does not answer."""

    async def list_tools(self) -> Any:
        await asyncio.Event().wait()


def test_pages_are_listed_up_to_the_hundredth() -> None:
    assert asyncio.run(listed_tools("git", Book(3))) == [1, 2, 3]
    assert len(asyncio.run(listed_tools("git", Book(100)))) == 100
    for session in (Book(101), Endless()):
        with pytest.raises(RuntimeError, match="git has more than 100 pages of tools"):
            asyncio.run(listed_tools("git", session))


def test_a_server_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _served.LISTING_SECONDS == 30
    monkeypatch.setattr(_served, "LISTING_SECONDS", 0)
    with pytest.raises(TimeoutError, match="git has not listed its tools within 0 s"):
        asyncio.run(listed_tools("git", Hung()))


@pytest.mark.parametrize("fails_by", ["error", "never registered"])
def test_a_server_that_failed_is_listed_again_after_a_pause(fails_by: str) -> None:
    tried: list[float] = []
    now = 7.0
    works = False

    async def listed(_name: str) -> bool:
        tried.append(now)
        if not works and fails_by == "error":
            raise OSError("not now")
        return works

    async def run() -> None:
        nonlocal now, works
        made = await Conversation.from_tools(Client("127.0.0.1:1"), "gemini", {}, lambda *_: "")
        made._clock = lambda: now
        made._list = listed
        made._changed.add("git")
        for at in (7.0, 8.0, 36.9, 37.0, 66.0):
            now = at
            await made._follow()
        assert tried == [7.0, 37.0]
        works, now = True, 67.0
        await made._follow()
        await made._follow()
        assert tried == [7.0, 37.0, 67.0]
        made._changed.add("git")
        await made._follow()
        assert tried == [7.0, 37.0, 67.0, 67.0], "one that was listed since is not waited for"

    asyncio.run(run())
