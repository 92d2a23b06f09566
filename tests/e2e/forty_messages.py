"""A talk of forty messages, the same for each agent framework, and what its requests cost.

Three MCP servers stand behind it: `mcp-server-time`, `mcp-server-git`, and one of 18 tools.
"""

import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import httpx2
from toolgate_process import ToolgateProcess

from toolgate import Client

CALL = "toolgate_call_tool"
CHANGING = Path(__file__).with_name("changing_mcp_server.py")
TURNS = 40
CALLS_EVERY = 5
"""Turns from one in which the model calls a tool to the next: for some frameworks, each call starts
an MCP server."""
CLOSING = len("]}")
"""The characters at the end of a request that another message moves."""
STRATEGIES: dict[str, dict[str, Any]] = {
    "all tools": {"deferral": "off"},
    "auto": {},
    "cut": {"strategy": "cut"},
    "envelope": {"strategy": "envelope"},
}
"""Options of the integrations, by what the table calls them."""
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
ANSWER = "That is done. " + "Here is what came of it, in a few words, as an assistant says it. " * 3


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
    """Its JSON, definitions first, as Chat Completions take it."""


@dataclass(frozen=True)
class Cost:
    """What the requests of a talk come to; tokens a request."""

    defined: float
    """Tools in `tools`, on average."""
    sets: int
    """Different `tools`."""
    whole: float
    cached: float
    """Those in common with the beginning of the request before."""
    right: float
    """The share of turns whose first request shows the tool that the message is about."""

    @property
    def new(self) -> float:
        """Tokens that no cache serves."""
        return self.whole - self.cached

    def row(self, name: str) -> str:
        """A row of the table of docs/frameworks.md."""
        return (
            f"| {name} | {self.defined:.1f} | {self.sets} | {self.whole:,.0f} | "
            f"{self.cached / self.whole:.1%} | {self.new:,.0f} | "
            f"{self.new + self.cached / 10:,.0f} | {self.right:.0%} |"
        )


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
        names = [tool["function"]["name"] for tool in tools]
        is_first = not self.requests or self.requests[-1].turn != self._turn
        text = json.dumps({"tools": tools, "messages": messages}, ensure_ascii=False)
        self.requests.append(Request(self._turn, is_first, names, text))
        if not is_first or self._turn % CALLS_EVERY:
            return None
        name, _ = texts()[self._turn]
        given = {"text": "now"} if "house" in name else {"timezone": "Asia/Tokyo"}
        return (CALL, {"name": name, "arguments": given}) if CALL in names else (name, given)

    def transport(self) -> httpx2.MockTransport:
        """Chat Completions that answer so, for clients that take a transport of HTTP."""

        def respond(request: httpx2.Request) -> httpx2.Response:
            body = json.loads(request.content)
            call = self.answer(body.get("tools", []), body["messages"])
            message: dict[str, Any] = {"role": "assistant", "content": None if call else ANSWER}
            if call is not None:
                function = {"name": call[0], "arguments": json.dumps(call[1])}
                made = {"id": f"call_{self._turn}", "type": "function", "function": function}
                message["tool_calls"] = [made]
            reason = "tool_calls" if call else "stop"
            choice = {"index": 0, "message": message, "finish_reason": reason}
            answer = {"id": "chat", "object": "chat.completion", "created": 1, "model": "gpt"}
            return httpx2.Response(200, json={**answer, "choices": [choice]})

        return httpx2.MockTransport(respond)


Play = Callable[..., Awaitable[list[Request]]]
"""Has the talk, given a client, a folder and options of the integration; the model's requests."""


def texts() -> list[tuple[str, str]]:
    """The tool that each message is about, and the message."""
    house = [(f"mcp__house__{name}", f"please {name.replace('_', ' ')}") for name in HOUSE]
    topics = [*house[::2], *OTHERS, *house[1::2]]
    return [topics[n % len(topics)] for n in range(TURNS)]


def commands(folder: Path) -> dict[str, list[str]]:
    """The arguments of Python that start the MCP servers, by their names."""
    names = folder / "names.txt"
    names.write_text(" ".join(HOUSE))
    return {
        "time": ["-m", "mcp_server_time"],
        "git": ["-m", "mcp_server_git"],
        "house": [str(CHANGING), str(names)],
    }


def described(request: Request) -> list[str]:
    """The names of the tools that its messages describe, in their order."""
    opening = json.dumps('{"name":"mcp__')[1:-1]
    return ["mcp__" + part.split("\\", 1)[0] for part in request.text.split(opening)[1:]]


def cached(requests: list[Request]) -> list[str]:
    """Returns what each request but the first shares with the beginning of the one before it."""
    return [_prefix(before.text, after.text) for before, after in pairwise(requests)]


def cost(requests: list[Request], count: Callable[[str], int] = len) -> Cost:
    """Counts the requests of a talk.

    Args:
        requests: All of them.
        count: Counts a text's tokens. Default: its characters.
    """
    first = [request for request in requests if request.is_first]
    right = [texts()[one.turn][0] in {*one.tools, *described(one)} for one in first]
    return Cost(
        defined=sum(len(request.tools) for request in requests) / len(requests),
        sets=len({tuple(request.tools) for request in requests}),
        whole=sum(count(request.text) for request in requests) / len(requests),
        cached=sum(map(count, cached(requests))) / len(requests),
        right=sum(right) / len(right),
    )


def check_prefix(requests: list[Request]) -> None:
    """Holds that the cached prefix stays with "envelope", or loses tools that nothing uses."""
    assert len(requests) > TURNS
    shown = {tuple(request.tools) for request in requests}
    assert shown == {("toolgate_search_tools", CALL)}
    whole = 0
    for (before, after), prefix in zip(pairwise(requests), cached(requests), strict=True):
        is_whole = len(before.text) - len(prefix) <= CLOSING
        stay = described(after)[: len(described(before))] == described(before)
        assert is_whole is stay, "only descriptions that nothing uses any more are taken out"
        whole += is_whole
    assert whole > len(requests) * 2 / 3


def print_table(play: Play) -> None:
    """Prints a framework's rows; needs the package `tiktoken`."""
    import asyncio

    import tiktoken  # type: ignore[import-not-found, unused-ignore]

    encoding = tiktoken.get_encoding("cl100k_base")
    folder = Path(tempfile.mkdtemp())
    server = ToolgateProcess(Path(os.environ["TOOLGATE_BIN"]), folder / "server").start()
    try:
        for name, options in STRATEGIES.items():
            with server.client(name.replace(" ", "-")) as client:
                requests = asyncio.run(_played(play, client, folder, options))
            tokens = cost(requests, lambda text: len(encoding.encode(text, disallowed_special=())))
            print(tokens.row(name), len(requests), "requests", file=sys.stdout, flush=True)
    finally:
        server.stop()


async def _played(
    play: Play, client: Client, folder: Path, options: dict[str, Any]
) -> list[Request]:
    return await play(client, folder, **options)


def _prefix(before: str, after: str) -> str:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    return "".join(character for character, _ in same)
