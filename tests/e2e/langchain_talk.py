"""Forty messages to a LangChain agent over real MCP servers, and the requests that its model gets.

    TOOLGATE_BIN=target/debug/toolgate PYTHONPATH=client-sdk/python/src:tests/e2e \
      python tests/e2e/langchain_talk.py

prints the table of docs/frameworks.md; counting tokens needs the package `tiktoken`.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field, PrivateAttr
from toolgate_process import ToolgateProcess

from toolgate import Client
from toolgate.langchain import ToolgateMiddleware

CALL = "toolgate_call_tool"
CHANGING = Path(__file__).with_name("changing_mcp_server.py")
TURNS = 40
CALLS_EVERY = 5
"""Turns from one in which the model calls a tool to the next: each call starts an MCP server."""
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


def texts() -> list[tuple[str, str]]:
    """The tool that each message is about, and the message."""
    house = [(f"mcp__house__{name}", f"please {name.replace('_', ' ')}") for name in HOUSE]
    topics = [*house[::2], *OTHERS, *house[1::2]]
    return [topics[n % len(topics)] for n in range(TURNS)]


@dataclass(frozen=True)
class Request:
    """A request to the model, as a provider's cache sees it."""

    tools: list[str]
    """The names of the tools that are defined."""
    text: str
    """Its JSON, definitions first."""


class TalkingModel(BaseChatModel):
    """Calls the tool that a message is about every few messages, and keeps its requests."""

    requests: list[Request] = Field(default_factory=list)
    _tools: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "talking"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[Any, AIMessage]:
        bound = self.model_copy()  # It shares the list of requests.
        bound._tools = [convert_to_openai_tool(tool) for tool in tools]
        return bound

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        names = [tool["function"]["name"] for tool in self._tools]
        body = {"tools": self._tools, "messages": convert_to_openai_messages(messages)}
        self.requests.append(Request(names, json.dumps(body, ensure_ascii=False)))
        said = sum(isinstance(message, HumanMessage) for message in messages) - 1
        answer = AIMessage(ANSWER)
        if isinstance(messages[-1], HumanMessage) and said % CALLS_EVERY == 0:
            answer = AIMessage("", tool_calls=[self._call(said, CALL in names)])
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _call(self, said: int, is_enveloped: bool) -> Any:
        name, _ = texts()[said]
        given: dict[str, Any] = {"text": "now"} if "house" in name else {"timezone": "Asia/Tokyo"}
        if is_enveloped:
            name, given = CALL, {"name": name, "arguments": given}
        return {"name": name, "args": given, "id": f"call_{said}"}


def stdio(*arguments: str) -> Any:
    return {"transport": "stdio", "command": sys.executable, "args": [*arguments]}


async def play(client: Client, folder: Path, strategy: str) -> list[Request]:
    """Has the conversation; the model's requests."""
    names = folder / "names.txt"
    names.write_text(" ".join(HOUSE))
    mcp = MultiServerMCPClient(
        {
            "time": stdio("-m", "mcp_server_time"),
            "git": stdio("-m", "mcp_server_git"),
            "house": stdio(str(CHANGING), str(names)),
        }
    )
    toolgate = await ToolgateMiddleware.from_mcp(client, mcp, strategy=strategy)
    model = TalkingModel()
    agent = create_agent(model, middleware=[toolgate], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": strategy}}
    for _, text in texts():
        await agent.ainvoke({"messages": [HumanMessage(text)]}, thread)
    return model.requests


def described(request: Request) -> list[str]:
    """The names of the tools that its messages describe, in their order."""
    opening = json.dumps('{"name":"mcp__')[1:-1]
    return [part.split("\\", 1)[0] for part in request.text.split(opening)[1:]]


def cached(requests: list[Request]) -> list[str]:
    """Returns what each request but the first shares with the beginning of the one before it."""
    return [_prefix(before.text, after.text) for before, after in pairwise(requests)]


def _prefix(before: str, after: str) -> str:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    return "".join(character for character, _ in same)


def _row(strategy: str, requests: list[Request], count: Callable[[str], int]) -> str:
    sent = sum(count(request.text) for request in requests)
    kept = sum(map(count, cached(requests)))
    shown = sum(len(request.tools) for request in requests) / len(requests)
    sets = len({tuple(request.tools) for request in requests})
    each, new = sent / len(requests), (sent - kept) / len(requests)
    return (
        f"| `{strategy}` | {shown:.1f} | {sets} | {each:,.0f} | {kept / sent:.1%} | {new:,.0f} | "
        f"{new + (each - new) / 10:,.0f} |"
    )


def main() -> None:
    """Prints the table."""
    import tiktoken  # type: ignore[import-not-found, unused-ignore]

    encoding = tiktoken.get_encoding("cl100k_base")
    folder = Path(tempfile.mkdtemp())
    server = ToolgateProcess(Path(os.environ["TOOLGATE_BIN"]), folder / "server").start()
    try:
        for strategy in ("cut", "envelope"):
            with server.client(strategy) as client:
                requests = asyncio.run(play(client, folder, strategy))
            print(
                _row(
                    strategy,
                    requests,
                    lambda text: len(encoding.encode(text, disallowed_special=())),
                )
            )
    finally:
        server.stop()


if __name__ == "__main__":
    main()
