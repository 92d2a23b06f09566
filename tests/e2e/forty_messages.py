"""A talk of forty messages, the same for each agent framework, and the requests that it makes.

Three MCP servers stand behind it: `mcp-server-time`, `mcp-server-git`, and one of 18 tools.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
from scripted_answers import answered, api_of

from toolgate import Client

CALL = "toolgate_call_tool"
CHANGING = Path(__file__).with_name("changing_mcp_server.py")
CATALOG = Path(__file__).with_name("catalog_mcp_server.py")
TURNS = int(os.environ.get("TALK_TURNS", "40"))
"""The messages; fewer to try the benchmark."""
CALLS_EVERY = 5
"""Turns from one in which the model calls a tool to the next: for some frameworks, each call starts
an MCP server."""
CLOSING = len("]}")
"""The characters at the end of a request that another message moves."""
HOUSE = tuple(
    f"{verb}_{thing}"
    for verb, things in {
        "water": ("tomatoes", "orchids", "lawn"),
        "feed": ("cat", "goldfish", "chickens"),
        "open": ("garage", "greenhouse", "letterbox"),
        "dim": ("bedroom_lights", "kitchen_lights", "porch_lights"),
        "vacuum": ("carpet", "stairs", "car"),
        "sharpen": ("knives", "scissors", "axe"),
    }.items()
    for thing in things
)
OTHERS = (
    ("mcp__time__get_current_time", "what time is it in Tokyo right now?"),
    ("mcp__git__git_log", "show the git log of the last ten commits"),
    ("mcp__git__git_status", "show me the git status of the working tree"),
    ("mcp__time__convert_time", "convert the time 14:30 from Oslo to Tokyo time"),
)


@dataclass(frozen=True)
class Request:
    """A request to the model, as a provider's cache sees it."""

    turn: int
    """The message that it is about, from 0."""
    is_first: bool
    """True if nothing was called in its turn yet."""
    tools: list[str]
    """The names of the tools that are defined."""
    text: str
    """The JSON of its definitions, then of its messages or items, in the form of its API."""


class Talk:
    """The scripted model's side: calls the right tool every few messages; keeps its requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._turn = -1

    def say(self) -> str:
        """Begins the next turn: its message."""
        self._turn += 1
        return texts()[self._turn][1]

    def answer(self, tools: list[Any], messages: list[Any]) -> tuple[str, dict[str, Any]] | None:
        """The call that answers a request; None: `ANSWER` does."""
        request = self.keep(tools, messages)
        if not request.is_first or self._turn % CALLS_EVERY:
            return None
        name, _ = texts()[self._turn]
        given = arguments_of(name)
        is_enveloped = CALL in request.tools
        return (CALL, {"name": name, "arguments": given}) if is_enveloped else (name, given)

    def keep(self, tools: list[Any], messages: list[Any]) -> Request:
        """Keeps a request."""
        names = [name_of(tool) for tool in tools]
        is_first = not self.requests or self.requests[-1].turn != self._turn
        body = {"tools": tools, "messages": messages}
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        request = Request(self._turn, is_first, names, text)
        self.requests.append(request)
        return request

    def respond(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """A provider's answer to a request at a path of its API."""
        messages = body["messages"] if "messages" in body else body["input"]
        call = self.answer(body.get("tools", []), messages)
        return answered(api_of(path), call, len(self.requests))

    def transport(self) -> httpx2.MockTransport:
        """A provider that answers so, for clients that take a transport of HTTP."""

        def respond(request: httpx2.Request) -> httpx2.Response:
            answer = self.respond(request.url.path, json.loads(request.content))
            return httpx2.Response(200, json=answer)

        return httpx2.MockTransport(respond)


def name_of(tool: dict[str, Any]) -> str:
    """The name in a definition of any API; the type of a provider's own tool."""
    defined = tool.get("function", tool)
    return str(defined.get("name") or tool.get("type", ""))


@dataclass(frozen=True)
class Framework:
    """An agent framework that has the talk."""

    serving: Callable[[Mapping[str, list[str]]], AbstractAsyncContextManager[Any]]
    """Connects the MCP servers that Python runs with these arguments, by their names."""
    talk: Callable[..., Awaitable[list[Request]]]
    """Has the talk, given a client, the servers and options of the integration; the model's
    requests."""

    async def plays(
        self, client: Client, folder: Path, *each: Mapping[str, Any]
    ) -> list[list[Request]]:
        """Has the talk with each of these options, over the same MCP servers.

        Args:
            client: The client of Toolgate.
            folder: What `commands` takes.
            *each: Options of the integration.
        """
        async with self.serving(commands(folder)) as servers:
            return await self.plays_over(client, servers, *each)

    async def plays_over(
        self, client: Client, servers: Any, *each: Mapping[str, Any]
    ) -> list[list[Request]]:
        """Has the talk with each of these options, over MCP servers that are connected."""
        return [await self.talk(client, servers, **options) for options in each]


class Stage:
    """A loop for many talks, in which frameworks that connect MCP servers alike share them."""

    def __init__(self, folder: Path) -> None:
        self._runner = asyncio.Runner()
        self._commands = commands(folder)
        self._is_over = asyncio.Event()
        self._kept: dict[Any, tuple[asyncio.Task[None], Any]] = {}

    def plays(
        self, framework: Framework, client: Client, *each: Mapping[str, Any]
    ) -> list[list[Request]]:
        """Has the talk with each of these options of the framework's integration."""
        return self._runner.run(self._plays(framework, client, *each))

    def close(self) -> None:
        """Ends the MCP servers."""
        self._runner.run(self._end())
        self._runner.close()

    async def _plays(
        self, framework: Framework, client: Client, *each: Mapping[str, Any]
    ) -> list[list[Request]]:
        serving = framework.serving
        if serving not in self._kept:
            connected = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._keep(serving, connected))
            await asyncio.wait({task, connected}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            self._kept[serving] = task, connected.result()
        return await framework.plays_over(client, self._kept[serving][1], *each)

    async def _keep(self, serving: Callable[..., Any], connected: asyncio.Future[Any]) -> None:
        """Keeps connections open; only the task that opened them may close them."""
        async with serving(self._commands) as servers:
            connected.set_result(servers)
            await self._is_over.wait()

    async def _end(self) -> None:
        self._is_over.set()
        await asyncio.gather(*(task for task, _ in self._kept.values()))


def texts() -> list[tuple[str, str]]:
    """The tool that each message is about, and the message."""
    house = [(f"mcp__house__{name}", f"please {name.replace('_', ' ')}") for name in HOUSE]
    topics = [*house[::2], *OTHERS, *house[1::2]]
    return [topics[n % len(topics)] for n in range(TURNS)]


def arguments_of(tool: str) -> dict[str, Any]:
    """Returns the arguments that the model calls a tool with."""
    return {"text": "now"} if "house" in tool else {"timezone": "Asia/Tokyo"}


def commands(folder: Path) -> dict[str, list[str]]:
    """The arguments of Python that start the MCP servers, by their names.

    Each `NAME.json` of the folder is the catalog of one more server, whose tools do nothing.
    """
    names = folder / "names.txt"
    names.write_text(" ".join(HOUSE))
    return {
        "time": ["-m", "mcp_server_time"],
        "git": ["-m", "mcp_server_git"],
        "house": [str(CHANGING), str(names)],
        **{file.stem: [str(CATALOG), str(file)] for file in sorted(folder.glob("*.json"))},
    }


def described(request: Request) -> list[str]:
    """The names of the tools that its messages describe, in their order."""
    opening = json.dumps('{"name":"mcp__')[1:-1]
    return ["mcp__" + part.split("\\", 1)[0] for part in request.text.split(opening)[1:]]


def added(request: Request) -> list[str]:
    """The names of the tools that it defines amid its messages, as "native" does."""
    names: list[str] = []
    for message in json.loads(request.text)["messages"]:
        if message.get("type") == "additional_tools":
            names += [name_of(tool) for tool in message["tools"]]
        elif message.get("role") == "system" and isinstance(message.get("content"), list):
            # Pydantic AI adds tools by references to definitions in `tools`.
            blocks = [block["tool"] for block in message["content"] if "tool" in block]
            names += [name_of(tool["definition"]) for tool in blocks if "definition" in tool]
    return names


def cached(requests: list[Request]) -> list[str]:
    """Returns what each request but the first shares with the beginning of the one before it."""
    return [common_prefix(before.text, after.text) for before, after in pairwise(requests)]


def right_share(requests: list[Request]) -> float:
    """The share of turns whose first request shows the tool that the message is about."""
    first = [request for request in requests if request.is_first]
    right = [texts()[one.turn][0] in {*one.tools, *described(one), *added(one)} for one in first]
    return sum(right) / len(right)


def check_envelope(requests: list[Request]) -> None:
    """Holds that the cached prefix stays with "envelope", or loses tools that nothing uses."""
    shown = {tuple(request.tools) for request in requests}
    assert shown == {("toolgate_search_tools", CALL)}
    _check_prefix(requests, described)


def check_native(requests: list[Request]) -> None:
    """Holds that the cached prefix stays with "native", or loses tools that nothing uses."""
    shown = {tuple(request.tools) for request in requests}
    assert len(shown) == 1, "the definitions before the messages stay"
    assert not any(name.startswith("mcp__") for name in requests[0].tools)
    assert not any(described(request) for request in requests), "tools are defined amid them"
    _check_prefix(requests, added)


def _check_prefix(requests: list[Request], shown: Callable[[Request], list[str]]) -> None:
    """Holds that each request begins with the one before it, but for tools that are taken out."""
    assert len(requests) > TURNS
    whole = 0
    for (before, after), prefix in zip(pairwise(requests), cached(requests), strict=True):
        is_whole = len(before.text) - len(prefix) <= CLOSING
        stay = shown(after)[: len(shown(before))] == shown(before)
        assert is_whole is stay, "only tools that nothing uses any more are taken out"
        whole += is_whole
    assert whole > len(requests) * 2 / 3


def common_prefix(before: str, after: str) -> str:
    """Returns what two texts begin with."""
    least, most = 0, min(len(before), len(after))
    while least < most:
        middle = (least + most + 1) // 2
        if before[:middle] == after[:middle]:
            least = middle
        else:
            most = middle - 1
    return before[:least]
