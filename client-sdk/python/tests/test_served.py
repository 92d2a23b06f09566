"""Lists of MCP servers, and servers whose changed tools can't be listed."""

import asyncio
import logging
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import mcp_types
import pytest
from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from toolgate import Client, Conversation, _served
from toolgate._served import ServedTools, listed_tools
from toolgate.langchain import _mcp as langchain_mcp
from toolgate.openai_agents import McpTools
from toolgate.pydantic_ai._mcp import McpToolset


class Book:
    """A session of a server with these many pages, one tool on each."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    async def list_tools(self, cursor: str = "1") -> Any:
        at = int(cursor)
        return SimpleNamespace(tools=[at], nextCursor=str(at + 1) if at < self.pages else None)


class Later:
    """A session of version 2 of the package `mcp`, with its types."""

    async def list_tools(self, *, params: Any = None) -> Any:
        at = 1 if params is None else int(params.cursor)
        tool = mcp_types.Tool(name=f"tool_{at}", input_schema={"type": "object"})
        return mcp_types.ListToolsResult(tools=[tool], next_cursor=str(at + 1) if at < 3 else None)


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
    later = asyncio.run(listed_tools("git", Later()))
    assert [tool.name for tool in later] == ["tool_1", "tool_2", "tool_3"]
    for session in (Book(101), Endless()):
        with pytest.raises(RuntimeError, match="git has more than 100 pages of tools"):
            asyncio.run(listed_tools("git", session))


def test_a_server_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _served.LISTING_SECONDS == 30
    monkeypatch.setattr(_served, "LISTING_SECONDS", 0)
    with pytest.raises(TimeoutError, match="git has not listed its tools within 0 s"):
        asyncio.run(listed_tools("git", Hung()))


class Announced:
    """A client of Toolgate that keeps which servers are announced."""

    def __init__(self) -> None:
        self.servers: list[str] = []

    def announce_server(self, name: str) -> None:
        self.servers.append(name)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives servers no time to list their tools."""
    monkeypatch.setattr(_served, "LISTING_SECONDS", 0)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


LATE = (
    "toolgate: MCP server git can't be listed: TimeoutError: "
    "git has not listed its tools within 0 s"
)


@pytest.mark.usefixtures("impatient")
def test_the_agents_sdk_leaves_out_a_server_that_hangs(caplog: pytest.LogCaptureFixture) -> None:
    client = Announced()
    servers = cast(Any, {"git": Hung()})
    loaded = asyncio.run(McpTools.load(cast(Client, client), servers))
    assert (loaded.tools, client.servers, warnings(caplog)) == ([], ["git"], [LATE])


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("hangs_at", ["connection", "list"])
def test_langchain_leaves_out_a_server_that_hangs(
    hangs_at: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Adapter:
        connections: ClassVar[dict[str, dict[str, Any]]] = {"git": {}}
        callbacks = tool_interceptors = handle_tool_errors = None

        @asynccontextmanager
        async def session(self, _name: str) -> Any:
            if hangs_at == "connection":
                await asyncio.Event().wait()
            yield Hung()

    client = Announced()
    listed = langchain_mcp.McpTools(cast(Client, client), cast(Any, Adapter()), None, {})
    tools = asyncio.run(listed.load())
    assert (tools, client.servers, warnings(caplog)) == ([], ["git"], [LATE])


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("lists", [0, 1])
def test_pydantic_ai_ends_a_run_whose_server_hangs(lists: int) -> None:
    class Listed(FunctionToolset[None]):
        """A toolset of a server that answers these many lists, and caches none."""

        left = lists

        async def list_tools(self) -> list[Any]:
            if self.left == 0:
                await asyncio.Event().wait()
            self.left -= 1
            return []

        async def get_tools(self, ctx: RunContext[None]) -> Any:
            await self.list_tools()
            return await super().get_tools(ctx)

    class Served(ServedTools):
        async def register(self, name: str, tools: Any) -> dict[str, str]:
            return {}

    async def run() -> None:
        served = Served(Client("127.0.0.1:1"), ["git"], None, logging.getLogger())
        toolset = McpToolset(Listed(), "git", served)
        ctx = RunContext[None](deps=None, model=TestModel(), usage=RunUsage())
        async with toolset:
            await toolset.get_tools(ctx)

    with pytest.raises(TimeoutError, match="git has not listed its tools within 0 s"):
        asyncio.run(run())


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
