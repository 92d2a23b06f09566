"""A loop of one's own over real MCP servers, with answers of a script in each provider's API."""

import asyncio
import json
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest
from anthropic.types import Message
from catalogs import NOTES, SHIPPED, WEATHER
from mcp_sessions import sessions
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import SEARCH_TOOL, AsyncClient, Client, Conversation, ModelRequest, ToolgateError

GARDEN = {"garden": [str(Path(__file__).with_name("growing_mcp_server.py"))]}
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
        async with sessions(TIME_AND_GIT) as connected:
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
    assert report.rho is not None
    assert report.highest_rho is not None
    assert 0.5 < report.rho <= report.highest_rho < 1, "the message is most of the requests"


def test_the_search_lists_what_the_caller_asks_for(client: Client) -> None:
    async def run() -> ModelRequest | None:
        async with sessions(TIME_AND_GIT) as connected:
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
            sessions(GARDEN) as connected,
            AsyncClient(server.target, tenant=tenant, timeout=PATIENCE) as own,
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
        async with sessions(TIME_AND_GIT) as connected:
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


READ = "mcp__filesystem__read_text_file"


@pytest.mark.parametrize(
    ("returned", "tool"),
    [
        ("1. Post a message to the Slack channel that the release is ready.", "slack_post_message"),
        ("Commit the changes, then send a reply to the Slack thread.", "slack_reply_to_thread"),
        ("Add an emoji reaction to the Slack message.", "slack_add_reaction"),
    ],
)
def test_what_a_call_returned_brings_its_tool_into_the_next_request(
    client: Client, returned: str, tool: str
) -> None:
    definitions = {
        server: json.loads((SHIPPED / f"{server}.json").read_text())["tools"]
        for server in ("filesystem", "git", "slack", "time")
    }

    async def before_and_after(api: str, result: str) -> list[bool]:
        conversation = await Conversation.from_tools(
            client, api, definitions, lambda *_call: result, model=MODELS[api]
        )
        named = f'"name": "mcp__slack__{tool}"'
        first = await conversation.say("read the file TODO.txt")
        call = (READ, {"path": "/TODO.txt"})
        is_described = first.strategy == "ENVELOPE"
        enveloped = (CALL, {"name": call[0], "arguments": call[1]})
        second = await conversation.take(answer(api, enveloped if is_described else call))
        assert second is not None
        assert result in json.dumps(second.messages)
        requests = (json.dumps([one.tools, one.messages]) for one in (first, second))
        return [named in text.replace('\\"', '"').replace('":"', '": "') for text in requests]

    for api in MODELS:
        assert asyncio.run(before_and_after(api, returned)) == [False, True], api
        assert asyncio.run(before_and_after(api, "Nothing is left to do.")) == [False, False], api


def test_what_failed_can_be_tried_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run_tool(_server: str, name: str, _arguments: dict[str, Any]) -> str:
        ran.append(name)
        return "milk, bread"

    def fail_once(method: str) -> None:
        """Has the next call of the client's refused as a wrong argument would be."""
        right = getattr(client, method)

        def wrong(*_given: Any, **_named: Any) -> Any:
            monkeypatch.setattr(client, method, right)
            raise ToolgateError(grpc.StatusCode.INVALID_ARGUMENT, "once")

        monkeypatch.setattr(client, method, wrong)

    async def talk(*, fails: bool) -> tuple[list[Any], list[ModelRequest | None]]:
        conversation = await Conversation.from_tools(
            client, "openai_chat", {"notes": NOTES}, run_tool, pinned_tools=["notes/find_notes"]
        )
        requests: list[ModelRequest | None] = []

        async def tried(method: str, step: Any, *failing: str) -> None:
            for one in failing if fails else ():
                before = json.dumps(conversation.messages)
                fail_once(one)
                with pytest.raises(ToolgateError, match="once"):
                    await getattr(conversation, method)(step)
                assert json.dumps(conversation.messages) == before
            requests.append(await getattr(conversation, method)(step))

        calls = calling(
            ("mcp__notes__find_notes", {"text": "milk"}), (SEARCH, {"query": "write a note"})
        )
        await tried("say", "search through my notes for milk", "route")
        await tried("take", calls, "gate", "answer_search", "route")
        await tried("take", answer("openai_chat", "Two litres."))
        await tried("say", "and bread?", "route", "route")
        assert conversation.report().requests == 3
        assert conversation.text == "Two litres."
        fail_once("route")
        with pytest.raises(ToolgateError, match="once"):
            await conversation.take(calls)
        await tried("say", "never mind, search through my notes for jam")
        await tried("take", calls)
        return conversation.messages, requests

    steady = asyncio.run(talk(fails=False))
    assert ran == ["find_notes"] * 3, "an answer that was left is another one when it comes again"
    assert asyncio.run(talk(fails=True)) == steady
    assert ran == ["find_notes"] * 6, "nothing runs twice"


def calling(*steps: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Several calls in one answer of Chat Completions, whose IDs are always the same."""
    calls = [
        {
            "id": f"call_of_{name}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(given)},
        }
        for name, given in steps
    ]
    return {"choices": [{"message": {"role": "assistant", "tool_calls": calls}}]}


def test_a_cancelled_task_leaves_the_conversation_as_it_was(
    server: ToolgateProcess, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, create = "mcp__notes__find_notes", "mcp__notes__create_note"
    ran: list[str] = []

    async def run() -> None:
        asked, hangs = asyncio.Event(), True

        async def hang() -> None:
            asked.set()
            await asyncio.Event().wait()

        async def run_tool(_server: str, name: str, _arguments: dict[str, Any]) -> str:
            if name == "create_note" and hangs:
                await hang()
            ran.append(name)
            return "milk"

        async def cancelled(work: Any) -> None:
            task = asyncio.ensure_future(work)
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            asked.clear()

        async with AsyncClient(server.target, tenant=tenant, timeout=PATIENCE) as own:
            pinned = ["notes/find_notes", "notes/create_note"]
            conversation = await Conversation.from_tools(
                own, "openai_chat", {"notes": NOTES}, run_tool, pinned_tools=pinned
            )
            route = own.route
            monkeypatch.setattr(own, "route", lambda *_given, **_named: hang())
            await cancelled(conversation.say("milk?"))
            monkeypatch.setattr(own, "route", route)
            assert conversation.messages == []
            request = await conversation.say("milk?")
            assert request.messages == [{"role": "user", "content": "milk?"}]
            calls = calling((find, {"text": "milk"}), (create, {"title": "milk"}))
            await cancelled(conversation.take(calls))
            assert len(conversation.messages) == 1
            hangs = False
            assert await conversation.take(calls) is not None
            assert len(conversation.messages) == 4
            assert ran == ["find_notes", "create_note"], "what has its result is kept"

    asyncio.run(run())


def test_a_server_that_changed_is_listed_until_it_can_be(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    build, water = "mcp__garden__build_greenhouse", "mcp__garden__water_tomatoes"
    text = "build a greenhouse in the garden and water the tomatoes"

    async def run() -> Loop:
        async with sessions(GARDEN) as connected:
            conversation = await Conversation.from_mcp(client, "openai_chat", connected)
            now = 0.0
            conversation._clock = lambda: now
            loop = Loop(conversation, "openai_chat", (build, {}), "Done.", "Not yet.", "And now?")
            session: Any = connected["garden"]
            listed, fails = session.list_tools, iter([True])

            async def list_tools(*given: Any) -> Any:
                if next(fails, False):
                    raise OSError("not now")
                return await listed(*given)

            session.list_tools = list_tools
            await loop.say(text)
            await loop.say(text)
            now = 30.0
            await loop.say(text)
            return loop

    loop = asyncio.run(run())
    shown = [water in json.dumps([one.tools, one.messages]) for one in loop.requests]
    assert shown == [False, False, False, True], "the next request after the pause has it"
    told = [record.getMessage() for record in caplog.records if "followed" in record.getMessage()]
    assert told == ["toolgate: changed tools of garden can't be followed: OSError: not now"]


def test_a_request_that_was_not_routed_says_why(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_tool(*_call: Any) -> str:
        raise AssertionError("nothing is called")

    own = {"name": "clock", "description": "Tells the time.", "input_schema": {"type": "object"}}
    image = {"type": "image", "source": {"type": "url", "url": "https://pictures.test/1.png"}}

    def gone(*_given: Any, **_named: Any) -> Any:
        raise ToolgateError(grpc.StatusCode.UNAVAILABLE, "gone")

    async def run() -> None:
        made = Conversation.from_tools
        none = await made(client, "anthropic", {}, run_tool, own_tools=[own])
        request = await none.say("what is the time?")
        assert request.reason_message == (
            "there are no servers to route among: the agent's own tools alone"
        )
        assert request.tools == [own]
        burn: Any = await none.take(answer("anthropic", ("mcp__notes__burn", {})))
        assert "unknown_tool" in json.dumps(burn.messages[-1])
        notes = await made(client, "anthropic", {"notes": NOTES}, run_tool)
        request = await notes.say([image])
        assert request.reason_message == (
            "there is no text to route by: the agent's own tools alone"
        )
        request = await notes.say("find the note about milk")
        routed = request.tools
        assert request.strategy != "UNSPECIFIED"
        request = await notes.say([image])
        assert request.reason_message == (
            "there is no text to route by: the tools are those of before"
        )
        assert request.tools == routed
        monkeypatch.setattr(client, "route", gone)
        request = await notes.say("and bread?")
        assert request.reason_message == "Toolgate could not route: the tools are those of before"
        assert notes.report().requests == 1

    asyncio.run(run())


def test_mistakes_are_refused_at_once(client: Client) -> None:
    with pytest.raises(ValueError, match=r"api is one of anthropic, .*, not 'mcp'"):
        asyncio.run(Conversation.from_tools(client, "mcp", {}, lambda *_: ""))
    with pytest.raises(TypeError, match="did you mean top_k"):
        asyncio.run(Conversation.from_tools(client, "gemini", {}, lambda *_: "", top_n=3))
