"""Searches and deferred tools with the options of someone who sets none.

An agent is a loop of one's own over 60 tools with a model's name alone, in each provider's API; or
a client that routes, searches and gates with nothing beside texts.
"""

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from catalogs import tool
from conftest import StartServer
from mcp.types import ListToolsResult
from test_integrations_types import LARGE, LONG_SAID, MODELS
from test_own_loop import CALL, SEARCH, Step, answer

from toolgate import (
    SEARCH_TOOL,
    Call,
    Client,
    Conversation,
    DeferralReason,
    ModelRequest,
    RefusalCode,
    RenderOptions,
    RouteResult,
)

ASKED = LONG_SAID[0]
"""What is said first: so long that the provider caches it."""
REACT = "mcp__slack__slack_add_reaction"
"""A tool that does not fit what is said, so that the model must search for it."""
SELECT: Step = (SEARCH, {"query": f"select:{REACT}"})
REACTING: Step = (REACT, {"channel_id": "C1", "timestamp": "1.0", "reaction": "wave"})
ADDING = ("NATIVE", "ENVELOPE")
BY_API = pytest.mark.parametrize("api", MODELS)


class Talk:
    """A conversation whose model follows a script; keeps its requests and what ran."""

    def __init__(self, api: str) -> None:
        self.requests: list[ModelRequest] = []
        self.ran: list[str] = []
        self._api = api

    async def begin(self, client: Client, **options: Any) -> Conversation:
        """A conversation with the defaults, but for what it goes on with and where."""
        return await Conversation.from_tools(
            client, self._api, LARGE.servers, self._run, model=MODELS[self._api], **options
        )

    async def say(self, conversation: Conversation, text: str, *steps: Step) -> None:
        """Says a text; the model answers with these steps."""
        request: ModelRequest | None = await conversation.say(text)
        for step in steps:
            assert request is not None
            self.requests.append(request)
            request = await conversation.take(answer(self._api, enveloped(request, step)))
        assert request is None, "the script ends with a text"

    def _run(self, _server: str, name: str, _arguments: dict[str, Any]) -> str:
        self.ran.append(name)
        return "done"


def enveloped(request: ModelRequest, step: Step) -> Step:
    """A step as a model takes it that was sent a request: with the envelope if there is one."""
    is_call = not isinstance(step, str) and step[0] != SEARCH
    if is_call and f'"{CALL}"' in json.dumps(request.tools):
        return CALL, {"name": step[0], "arguments": step[1]}
    return step


def play(client: Client, api: str, *steps: Step) -> tuple[Talk, Conversation]:
    """A conversation of one message of the user's."""
    talk = Talk(api)

    async def run() -> Conversation:
        conversation = await talk.begin(client)
        await talk.say(conversation, ASKED, *steps)
        return conversation

    return talk, asyncio.run(run())


def defined(part: Any) -> set[str]:
    """The names of the tools that a part of a request defines, or describes in a text of ours."""
    if isinstance(part, str):
        lines = [line for line in part.splitlines() if line.startswith('{"name":"mcp__')]
        return {json.loads(line)["name"] for line in lines}
    if isinstance(part, list | tuple):
        return set().union(*map(defined, part))
    if isinstance(part, dict):
        fields = {"input_schema", "parameters", "description"}
        is_tool = "name" in part and bool(fields & part.keys())
        named = {str(part["name"])} if is_tool else set()
        return named.union(*map(defined, part.values()))
    return set()


def shown(request: ModelRequest) -> set[str]:
    """The names of the catalog's tools that a request shows the model."""
    return defined([request.tools, list(request.messages)]) & LARGE.names


def said_in(request: ModelRequest) -> str:
    """The messages of a request as a text, without the escapes of texts within texts."""
    return json.dumps(list(request.messages)).replace("\\", "")


@pytest.fixture
def large(client: Client) -> Client:
    """A client of a tenant whose tools are deferred by default."""
    LARGE.listed(client)
    return client


@BY_API
def test_a7_by_default_tools_stand_behind_the_message_that_they_are_for(
    client: Client, api: str
) -> None:
    talk = Talk(api)
    texts = (ASKED, "add a reaction to the last Slack message")

    async def run() -> None:
        conversation = await talk.begin(client)
        for text in texts:
            await talk.say(conversation, text, "Done.")

    asyncio.run(run())
    first, second = talk.requests
    assert second.strategy == first.strategy
    assert first.strategy in ADDING
    assert REACT in shown(second) - shown(first)
    sent = json.dumps(list(second.messages))
    assert sent.index(texts[1]) < sent.index(REACT), "behind the message"
    assert second.messages[: len(first.messages)] == first.messages, "what was sent stays"
    assert second.tools == first.tools


@BY_API
def test_b8_by_default_what_is_found_is_defined_behind_the_prefix_and_may_be_called(
    client: Client, api: str
) -> None:
    talk, _ = play(client, api, SELECT, REACTING, "Done.")
    asked, found, _ = talk.requests
    assert asked.strategy in ADDING
    assert REACT not in shown(asked)
    assert REACT in shown(found)
    assert found.tools == asked.tools
    assert found.messages[: len(asked.messages)] == asked.messages, "the cached prefix stays"
    for request in talk.requests:
        sent = json.dumps([request.tools, list(request.messages)])
        assert "defer_loading" not in sent
        assert "tool_reference" not in sent, "definitions, not references"
    assert talk.ran == ["slack_add_reaction"]


def test_b8_by_default_a_search_gives_definitions(large: Client) -> None:
    (found,) = large.search_tools(f"select:{REACT}")
    (definition,) = (one for one in LARGE.servers["slack"] if one["name"] == "slack_add_reaction")
    assert found.input_schema == definition["inputSchema"]
    assert found.description == definition["description"]


@BY_API
def test_b9_by_default_what_was_found_outlives_a_compaction(client: Client, api: str) -> None:
    talk = Talk(api)

    async def run() -> None:
        before = await talk.begin(client)
        await talk.say(before, ASKED, SELECT, "It is there.")
        # The agent keeps a summary of its own in place of the messages.
        after = await talk.begin(client, snapshot=before.snapshot())
        await talk.say(after, ASKED, REACTING, "Done.")

    asyncio.run(run())
    compacted = talk.requests[2]
    assert '"select:' not in json.dumps(list(compacted.messages))
    assert REACT in shown(compacted)
    assert talk.ran == ["slack_add_reaction"]


def test_b9_by_default_discoveries_add_up_and_need_no_handle(large: Client) -> None:
    time = "mcp__time__convert_time"
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    first = large.route(ASKED, state={"messages": messages})
    assert not {REACT, time} & {one.model_name for one in first}
    for number, name in enumerate((REACT, time)):
        found = large.answer_search(Call(SEARCH, {"query": f"select:{name}"}))
        use = {"type": "tool_use", "id": f"t{number}", "name": SEARCH, "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": found.text}
        messages.append({"role": "assistant", "content": [use]})
        messages.append({"role": "user", "content": [result]})
    snapshot = large.route(ASKED, state={"messages": messages}).conversation_snapshot
    assert snapshot is not None
    summary = [{"role": "user", "content": "A summary of what was said."}]
    for _ in range(2):
        turn = large.route(ASKED, state={"messages": summary, "snapshot": snapshot})
        assert {REACT, time} <= {one.model_name for one in turn}
        assert turn.conversation_snapshot == snapshot, "once more changes nothing"


class Listed:
    """A session with an MCP server that lists tools."""

    def __init__(self, tools: list[dict[str, Any]]) -> None:
        self._tools = tools

    async def list_tools(self) -> ListToolsResult:
        return ListToolsResult.model_validate({"tools": self._tools})


class Connecting:
    """A session with a server that is not there yet."""

    async def list_tools(self) -> ListToolsResult:
        raise ConnectionError("it still starts")


@BY_API
def test_b13_by_default_a_search_without_a_result_names_servers_that_still_connect(
    client: Client, api: str
) -> None:
    talk = Talk(api)
    none: Step = (SEARCH, {"query": "+sprint +burndown"})

    async def run() -> None:
        servers = {name: Listed(tools) for name, tools in LARGE.servers.items()}
        conversation = await Conversation.from_mcp(
            client, api, {**servers, "jira": Connecting()}, model=MODELS[api]
        )
        await talk.say(conversation, ASKED, none, "It is not there yet.")

    asyncio.run(run())
    asked, found = talk.requests
    assert asked.strategy in ADDING
    assert "still connecting" in said_in(found)
    assert '"pending_servers": ["jira"]' in said_in(found)
    if api == "openai_responses":
        output, reason = list(found.messages)[-2:]
        assert (output["type"], output["tools"]) == ("tool_search_output", [])
        assert reason["role"] == "developer", "since the output has definitions alone"
        assert "burndown" not in reason["content"], "the developer repeats no words of the model's"
    client.register_server("jira", [tool("burndown", "Draws the burndown of a sprint.")])
    assert client.search_tools("+sprint +burndown").pending_servers == ()


@BY_API
def test_b15_by_default_a_call_to_what_was_not_found_names_its_search(
    client: Client, api: str
) -> None:
    talk, _ = play(client, api, REACTING, SELECT, REACTING, "Done.")
    asked, refused, _, _ = talk.requests
    assert REACT not in shown(asked)
    assert '"error": "tool_not_available"' in said_in(refused)
    assert f'"search": "select:{REACT}"' in said_in(refused)
    assert talk.ran == ["slack_add_reaction"], "once it was found"


def test_b15_by_default_gate_names_the_search(large: Client) -> None:
    turn = large.route(ASKED)
    (verdict,) = large.gate(turn.handle, Call(*REACTING))
    assert (verdict.code, verdict.search_query) == (
        RefusalCode.TOOL_NOT_AVAILABLE,
        f"select:{REACT}",
    )
    assert verdict.search_query in verdict.message
    found = large.search_tools(verdict.search_query, handle=turn.handle)
    (verdict,) = large.gate(found.handle, Call(*REACTING))
    assert verdict.allowed, verdict.message


@BY_API
def test_b18_by_default_the_request_decides_whether_it_can_be_searched_in(
    large: Client, api: str
) -> None:
    said: dict[str, Any] = {"role": "user", "content": ASKED}
    if api == "gemini":
        said = {"role": "user", "parts": [{"text": ASKED}]}

    def asked(*, search: bool = True, **route: Any) -> tuple[bool, ModelRequest]:
        render = RenderOptions(api, strategy="auto", search_tool=search)
        turn = large.route(
            ASKED, state={"messages": [said]}, model=MODELS[api], render=render, **route
        )
        return turn.deferral.offer_search, turn.request

    is_offered, request = asked()
    assert is_offered
    assert '"tool_search"' in json.dumps(request.tools) or SEARCH in json.dumps(request.tools)
    assert len(shown(request)) < len(LARGE.names) / 2
    _, unable = asked(search=False)
    is_offered_there, elsewhere = asked(model_base_url="https://llm.corp.example/v1")
    assert not is_offered_there
    for whole in (unable, elsewhere):
        assert whole.strategy == "PASS"
        assert shown(whole) == LARGE.names, "all tools go"
        assert SEARCH not in json.dumps(whole.tools)


def test_b18_the_model_and_the_tokens_decide_whether_the_request_is_searched_in(
    start_server: StartServer,
) -> None:
    with start_server({"deferral.denied_models": "haiku"}).client() as client:
        LARGE.listed(client)
        for api, model in MODELS.items():
            said: dict[str, Any] = {"role": "user", "content": ASKED}
            if api == "gemini":
                said = {"role": "user", "parts": [{"text": ASKED}]}
            render = RenderOptions(api, strategy="auto", search_tool=True)
            ask = partial(client.route, ASKED, state={"messages": [said]}, render=render)
            half: dict[str, Any] = {"model": model, "deferral": "auto", "context_window": 100_000}
            offered = (
                ask(model=model),
                ask(**half, deferral_percent=4),
                # Of so small a window, the definitions are a tenth.
                ask(model=model, deferral="auto", context_window=40_000),
            )
            for turn in offered:
                assert turn.deferral.offer_search
                assert shown(turn.request) < LARGE.names
                assert '"tool_search"' in json.dumps(turn.request.tools) or SEARCH in json.dumps(
                    turn.request.tools
                )
            gates = (
                (DeferralReason.MODEL_UNSUPPORTED, ask(model="claude-haiku-4-5")),
                (DeferralReason.MODEL_UNSUPPORTED, ask(model="my-haiku", deferral="always")),
                (DeferralReason.UNDER_THRESHOLD, ask(**half, deferral_percent=5)),
                (DeferralReason.UNDER_THRESHOLD, ask(**half)),
            )
            for reason, turn in gates:
                assert turn.deferral.reason is reason
                assert not turn.deferral.offer_search
                whole = turn.request
                assert (whole.strategy, whole.betas) == ("PASS", ())
                assert shown(whole) == LARGE.names, "all tools go"
                sent = json.dumps([whole.tools, list(whole.messages)])
                for ours in (SEARCH, CALL, '"tool_search"', "defer_loading"):
                    assert ours not in sent, (api, reason, ours)
                assert whole.messages == [said]


@BY_API
def test_b22_by_default_a_search_says_how_many_tools_are_deferred_in_all(
    client: Client, api: str
) -> None:
    talk, _ = play(client, api, SELECT, "It is there.")
    asked, found = talk.requests
    told = f'"deferred_tools": {len(LARGE.names) - len(shown(asked))}'
    assert told in said_in(found)


def test_b22_by_default_the_answer_to_a_search_counts_what_is_deferred(large: Client) -> None:
    turn = large.route(ASKED)
    deferred = len(LARGE.names) - len(turn)
    assert 0 < deferred < len(LARGE.names)
    found = large.search_tools("react to a message", handle=turn.handle)
    assert found.deferred_tools == deferred
    told = large.answer_search(Call(*SELECT), handle=turn.handle)
    assert json.loads(told.text)["deferred_tools"] == deferred


def test_b12_a_loop_of_ones_own_is_at_the_providers_host_unless_it_says_another(
    client: Client,
) -> None:
    async def first(**options: Any) -> ModelRequest:
        conversation = await Talk("anthropic").begin(client, **options)
        return await conversation.say(ASKED)

    assert asyncio.run(first()).strategy == "NATIVE"
    elsewhere = {"model_base_url": "https://llm.corp.example/v1"}
    untold = asyncio.run(first(**elsewhere))
    assert (untold.strategy, shown(untold)) == ("PASS", LARGE.names)
    chosen = asyncio.run(first(**elsewhere, deferral="always"))
    assert chosen.strategy == "ENVELOPE"
    assert len(shown(chosen)) < len(LARGE.names)


TOPICS = (
    ASKED,
    "add a reaction to the last Slack message",
    "show me the unstaged changes in this repository",
    "what time is it in Tokyo?",
)
DONE = "It is done. " + "This is what it means for the rest of the week. " * 60
"""So long an answer that no tool is dropped for it to be written to the cache again."""


@BY_API
def test_a19_by_default_the_report_of_a_conversation_adds_up_its_turns(
    client: Client, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[RouteResult] = []
    route = client.route

    def kept(*arguments: Any, **options: Any) -> RouteResult:
        turns.append(route(*arguments, **options))
        return turns[-1]

    monkeypatch.setattr(client, "route", kept)
    talk = Talk(api)
    tokens: dict[str, int] = {}
    least: list[int] = []

    async def run() -> None:
        conversation = await talk.begin(client)
        tokens.update((one.model_name, one.schema_tokens) for one in client.list_tools())
        for text in TOPICS:
            await talk.say(conversation, text, DONE)
            catalog = sum(tokens[name] for name in shown(talk.requests[-1]))
            least.append(catalog + SEARCH_TOOL.schema_tokens)
            report = conversation.report()
            told = [turn.accounting for turn in turns]
            assert report.requests == len(told) == len(least)
            assert report.all_tools_tokens == sum(turn.full_catalog_tokens for turn in told)
            assert report.saved_tokens == report.all_tools_tokens - report.shown_tokens
            sent = sum(turn.phase1_tokens + turn.phase2_tokens for turn in told)
            assert sum(least) <= report.shown_tokens == sent
            assert report.rho == told[-1].conversation_rho
            assert report.highest_rho == max(turn.conversation_rho or 0 for turn in told)

    asyncio.run(run())
    assert least == sorted(set(least)), "each topic's tools stay in the requests that follow"
