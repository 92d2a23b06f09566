"""A loop of one's own over real MCP servers, with answers of a script in each provider's API."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest
from anthropic.types import Message
from catalogs import NOTES, WEATHER
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from toolgate_process import ToolgateProcess

from toolgate import SEARCH_TOOL, AsyncClient, Client, Conversation, ModelRequest, ToolgateError

GROWING = Path(__file__).with_name("growing_mcp_server.py")
NOW, STATUS = "mcp__time__get_current_time", "mcp__git__git_status"
SEARCH, CALL = SEARCH_TOOL.model_name, "toolgate_call_tool"
MODELS = {
    "anthropic": "claude-opus-5-5",
    "openai_chat": "gpt-6.1",
    "openai_responses": "gpt-6.1",
    "gemini": "gemini-3-pro",
}
OSLO, TOKYO = {"timezone": "Europe/Oslo"}, {"timezone": "Asia/Tokyo"}
LONG = "Here is what I know of clocks, at length. " * 600
Step = str | tuple[str, dict[str, Any]]
_ids = count(1)


@asynccontextmanager
async def sessions(**servers: list[str]) -> AsyncIterator[dict[str, ClientSession]]:
    """Connected sessions of MCP servers, which this Python runs."""
    async with AsyncExitStack() as stack:
        connected = {}
        for name, arguments in servers.items():
            process = StdioServerParameters(command=sys.executable, args=arguments)
            streams = await stack.enter_async_context(stdio_client(process))
            connected[name] = await stack.enter_async_context(ClientSession(*streams))
            await connected[name].initialize()
        yield connected


TIME_AND_GIT = {"time": ["-m", "mcp_server_time"], "git": ["-m", "mcp_server_git"]}


def answer(api: str, step: Step) -> Any:
    """A model's answer in an API's form."""
    made = f"call_{next(_ids)}"
    if api == "anthropic":
        block: dict[str, Any] = {"type": "text", "text": step}
        if not isinstance(step, str):
            block = {"type": "tool_use", "id": made, "name": step[0], "input": step[1]}
        usage = {"input_tokens": 1, "output_tokens": 1}
        said: Any = {"id": made, "model": "m", "role": "assistant", "type": "message"}
        return Message.model_validate({**said, "content": [block], "usage": usage})
    if api == "gemini":
        part: Any = {"text": step}
        if not isinstance(step, str):
            part = {"functionCall": {"id": made, "name": step[0], "args": step[1]}}
        return {"candidates": [{"content": {"role": "model", "parts": [part]}}]}
    if isinstance(step, str) and api == "openai_chat":
        return {"choices": [{"message": {"role": "assistant", "content": step}}]}
    if isinstance(step, str):
        content = [{"type": "output_text", "text": step, "annotations": []}]
        return {"output": [{"type": "message", "role": "assistant", "content": content}]}
    arguments = json.dumps(step[1])
    if api == "openai_chat":
        function = {"name": step[0], "arguments": arguments}
        call = {"id": made, "type": "function", "function": function}
        return {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}
    if step[0] == SEARCH:
        search = {"type": "tool_search_call", "call_id": made, "arguments": step[1]}
        return {"output": [{**search, "execution": "client"}]}
    item = {"type": "function_call", "call_id": made, "name": step[0], "arguments": arguments}
    return {"output": [item]}


class Loop:
    """Plays a script; keeps the requests."""

    def __init__(self, conversation: Conversation, api: str, *steps: Step) -> None:
        self.requests: list[ModelRequest] = []
        self._conversation = conversation
        self._api = api
        self._steps = iter(steps)

    async def say(self, text: str) -> str:
        request: ModelRequest | None = await self._conversation.say(text)
        while request is not None:
            self.requests.append(request)
            request = await self._conversation.take(answer(self._api, next(self._steps)))
        return self._conversation.text

    @property
    def tools(self) -> list[str]:
        """The definitions of each request, as JSON."""
        return [json.dumps(request.tools) for request in self.requests]


@pytest.mark.parametrize("api", MODELS)
def test_each_api_keeps_its_prefix_and_runs_what_gate_allows(client: Client, api: str) -> None:
    is_native = api in ("anthropic", "openai_responses")

    def call(name: str, given: dict[str, Any]) -> Step:
        return (name, given) if is_native else (CALL, {"name": name, "arguments": given})

    async def run() -> tuple[Conversation, Loop]:
        async with sessions(**TIME_AND_GIT) as connected:
            conversation = await Conversation.from_mcp(
                client, api, connected, model=MODELS[api], top_k=1
            )
            search = (SEARCH, {"query": f"select:{STATUS}"})
            steps = (call(NOW, OSLO), "Noon.", search, call(STATUS, {"repo_path": "/x"}), "None.")
            loop = Loop(conversation, api, *steps)
            assert await loop.say(LONG + "what time is it in Oslo right now?") == "Noon."
            assert await loop.say("and the other one?") == "None."
            return conversation, loop

    conversation, loop = asyncio.run(run())
    assert {str(request.strategy) for request in loop.requests} == {
        "NATIVE" if is_native else "ENVELOPE"
    }
    assert len(set(loop.tools)) == 1, "the definitions stay"
    for before, after in pairwise(request.messages for request in loop.requests):
        assert after[: len(before)] == before, "the cached prefix stays"
    assert STATUS in json.dumps(loop.requests[3].messages)
    told = json.dumps(loop.requests[1].messages)
    assert "is_dst" in told
    assert "Europe/Oslo" in told
    failed = "error" if api != "anthropic" else '"is_error": true'
    assert failed in json.dumps(conversation.messages[-2]), "there is no such path"
    kept = json.dumps(conversation.messages)
    assert "[Toolgate]" not in kept
    assert "additional_tools" not in kept
    report = conversation.report()
    assert (report.requests, report.searches) == (5, 1)
    assert report.price is not None
    assert report.price.sent < report.price.routed_anew


def test_the_search_lists_what_the_caller_asks_for(client: Client) -> None:
    async def run() -> ModelRequest | None:
        async with sessions(**TIME_AND_GIT) as connected:
            listed: dict[str, Any] = {"prompt_listing": "summaries", "prompt_listing_tokens": 60}
            conversation = await Conversation.from_mcp(
                client, "anthropic", connected, strategy="native", **listed
            )
            return await conversation.say("what time is it in Oslo right now?")

    request = asyncio.run(run())
    assert request is not None
    (search,) = request.tools
    assert " It finds:\nmcp__" in search["description"]
    assert search["description"].endswith(" more")


def test_a_search_that_the_provider_executes_is_left_to_it(client: Client) -> None:
    def run_tool(server: str, name: str, arguments: dict[str, Any]) -> Any:
        raise AssertionError(f"{server}/{name} was not called")

    async def run() -> tuple[Conversation, ModelRequest | None]:
        conversation = await Conversation.from_tools(
            client, "openai_responses", {"notes": NOTES}, run_tool, model="gpt-6.1"
        )
        await conversation.say("find the note about milk")
        search = {"type": "tool_search_call", "execution": "server", "arguments": {}}
        said = answer("openai_responses", "It says two litres.")
        return conversation, await conversation.take({"output": [search, *said["output"]]})

    conversation, request = asyncio.run(run())
    assert request is None, "the turn is over"
    assert conversation.text == "It says two litres."
    assert len(conversation.messages) == 3, "nothing was answered"


def test_refusals_and_failures_are_told_and_own_tools_are_run(client: Client) -> None:
    ran: list[Any] = []

    def run_tool(server: str, name: str, arguments: dict[str, Any]) -> Any:
        ran.append((server, name, arguments))
        if name == "create_note":
            raise OSError("the disk is full")
        return {"found": 1}

    own = {"name": "clock", "description": "Tells the time.", "input_schema": {"type": "object"}}

    async def run() -> Conversation:
        conversation = await Conversation.from_tools(
            client,
            "anthropic",
            {"notes": NOTES, "weather": WEATHER},
            run_tool,
            own_tools=[own],
            pinned_tools=["notes/find_notes", "notes/create_note"],
        )
        find, create = "mcp__notes__find_notes", "mcp__notes__create_note"
        steps: list[Step] = [
            (find, {"text": 7}),
            (find, {"text": "milk"}),
            (create, {"title": "milk"}),
            ("mcp__notes__burn", {}),
            ("clock", {}),
            "Done.",
        ]
        await Loop(conversation, "anthropic", *steps).say("search through my notes")
        return conversation

    messages = asyncio.run(run()).messages
    results = [one["content"][0] for one in messages if "tool_use_id" in str(one["content"])]
    assert [result["is_error"] for result in results] == [True, False, True, True, False]
    assert json.loads(results[0]["content"])["error"] == "arguments_invalid"
    assert results[2]["content"] == "the disk is full"
    assert json.loads(results[3]["content"])["error"] == "unknown_tool"
    assert ran == [
        ("notes", "find_notes", {"text": "milk"}),
        ("notes", "create_note", {"title": "milk"}),
        ("", "clock", {}),
    ]


def test_changed_tools_are_followed_and_lost_ones_registered_again(
    server: ToolgateProcess, tenant: str, client: Client
) -> None:
    build, water = "mcp__garden__build_greenhouse", "mcp__garden__water_tomatoes"
    text = "build a greenhouse in the garden and water the tomatoes"

    async def run() -> tuple[Conversation, Loop]:
        async with (
            sessions(garden=[str(GROWING)]) as connected,
            AsyncClient(server.target, tenant=tenant, timeout=30) as own,
        ):
            conversation = await Conversation.from_mcp(own, "openai_chat", connected)
            loop = Loop(conversation, "openai_chat", (build, {}), (water, {}), "Done.", "Again.")
            await loop.say(text)
            await asyncio.to_thread(client.unregister_server, "garden")
            await loop.say(text)
            return conversation, loop

    conversation, loop = asyncio.run(run())
    assert [one["content"] for one in conversation.messages if one["role"] == "tool"] == [
        "built",
        "watered",
    ]
    assert [water in json.dumps([r.tools, r.messages]) for r in loop.requests][:2] == [False, True]
    assert [one.name for one in client.list_servers()] == ["garden"]


def test_a_conversation_goes_on_elsewhere_and_survives_an_outage(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> list[ModelRequest]:
        async with sessions(**TIME_AND_GIT) as connected:
            named: Any = {"model": MODELS["anthropic"], "top_k": 1}
            first = await Conversation.from_mcp(client, "anthropic", connected, **named)
            loop = Loop(first, "anthropic", (NOW, OSLO), "Noon.", (NOW, TOKYO), "Late.")
            await loop.say(LONG + "what time is it in Oslo right now?")
            kept = json.loads(json.dumps([first.messages, first.snapshot()]))
            named |= {"messages": kept[0], "snapshot": kept[1]}
            second = await Conversation.from_mcp(client, "anthropic", connected, **named)
            loop._conversation = second

            def gone(*_given: Any, **_named: Any) -> Any:
                raise ToolgateError(grpc.StatusCode.UNAVAILABLE, "gone")

            request: Any = await second.say("what time is it in Tokyo right now?")
            loop.requests.append(request)
            monkeypatch.setattr(client, "route", gone)
            request = await second.take(answer("anthropic", (NOW, TOKYO)))
            loop.requests.append(request)
            assert await second.take(answer("anthropic", "Late.")) is None
            assert second.report().requests == 3
            return loop.requests

    requests = asyncio.run(run())
    for before, after in pairwise(requests):
        assert after.messages[: len(before.messages)] == before.messages, "nothing is lost"
        assert after.tools == before.tools
    assert "Asia/Tokyo" in json.dumps(requests[-1].messages[-1])


def test_mistakes_are_refused_at_once(client: Client) -> None:
    with pytest.raises(ValueError, match=r"api is one of anthropic, .*, not 'mcp'"):
        asyncio.run(Conversation.from_tools(client, "mcp", {}, lambda *_: ""))
    with pytest.raises(TypeError, match="did you mean top_k"):
        asyncio.run(Conversation.from_tools(client, "gemini", {}, lambda *_: "", top_n=3))
