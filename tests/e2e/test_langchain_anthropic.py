"""LangChain's ChatAnthropic with tools amid the conversation, against a scripted Messages API."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from anthropic_api import AnthropicApi, Call, serving
from catalogs import NOTES, WEATHER, body
from catalogs import tool as tool_body
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from pydantic import SecretStr
from waiting import PATIENCE

from toolgate import SEARCH_TOOL, Client
from toolgate.langchain import (
    ToolgateMiddleware,
    ToolgateState,
    calls_condition,
    model_node,
    tool_node,
)

FIND, DELETE = "mcp__notes__find_notes", "mcp__notes__delete_note"
FORECAST = "mcp__weather__get_forecast"
SEARCH = SEARCH_TOOL.model_name
BETAS = ["mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"]
RAIN = "what will the weather be in Oslo in the coming days?"
OSLO: Call = (FORECAST, {"city": "Oslo"})


@pytest.fixture
def tools(client: Client) -> list[BaseTool]:
    client.register_server("notes", NOTES)
    client.register_server("weather", WEATHER)
    return [
        StructuredTool(
            name=one.model_name,
            description=one.definition.get("description") or one.name,
            args_schema=one.definition["inputSchema"],
            func=lambda **_: "done",
        )
        for one in client.list_tools()
    ]


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


def model_at(api: AnthropicApi, name: str = "claude-opus-5-5") -> ChatAnthropic:
    key = SecretStr("none")
    return ChatAnthropic(
        model_name=name, api_key=key, base_url=api.url, timeout=PATIENCE, stop=None
    )


def model_behind(
    api: AnthropicApi, base_url: str = "http://api.anthropic.com", name: str = "claude-opus-5-5"
) -> ChatAnthropic:
    """A model of the provider's own host, which the script stands in for as a proxy."""
    return ChatAnthropic(
        model_name=name,
        api_key=SecretStr("none"),
        base_url=base_url,
        anthropic_proxy=api.url,
        timeout=PATIENCE,
        stop=None,
    )


class Routed:
    """Keeps what a client's Route was asked with."""

    def __init__(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[dict[str, Any]] = []
        route = client.route

        def kept(*given: Any, **named: Any) -> Any:
            self.asked.append(named)
            return route(*given, **named)

        monkeypatch.setattr(client, "route", kept)


def native(client: Client, tools: Sequence[BaseTool], **options: Any) -> ToolgateMiddleware:
    options = {"top_k": 1, "deferral": "always", "strategy": "native", **options}
    return ToolgateMiddleware(client, tools, **options)


def added(request: dict[str, Any]) -> list[str]:
    """The tools that are defined amid the messages of a request."""
    systems = [one["content"] for one in request["messages"] if one["role"] == "system"]
    return [block["tool"]["definition"]["name"] for blocks in systems for block in blocks]


def defined(request: dict[str, Any]) -> list[str]:
    return [one["name"] for one in request["tools"]]


@pytest.mark.parametrize("strategy", ["native", "envelope"])
def test_the_search_lists_what_the_caller_asks_for(
    client: Client, tools: list[BaseTool], strategy: str
) -> None:
    api = AnthropicApi("Hello.")
    listed = {"prompt_listing": "summaries", "prompt_listing_tokens": 60}
    with serving(api):
        middleware = native(client, tools, strategy=strategy, **listed)
        agent = create_agent(model_at(api), tools=[], middleware=[middleware])
        agent.invoke({"messages": [HumanMessage(RAIN)]})
    defined = api.requests[0]["tools"]
    (described,) = (one["description"] for one in defined if one["name"] == SEARCH)
    assert " It finds:\nmcp__" in described
    assert described.endswith(" more")


def test_what_changes_in_the_catalog_is_told_and_the_prefix_stays(
    client: Client, tools: list[BaseTool]
) -> None:
    api = AnthropicApi([OSLO], "Rain.", "Still rain.", "Sun.")
    with serving(api):
        agent = create_agent(
            model_at(api),
            tools=[],
            middleware=[native(client, tools)],
            checkpointer=InMemorySaver(),
        )
        thread: Any = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [HumanMessage(RAIN)]}, thread)
        client.register_server("tides", body([tool_body("tides", "Reads the tides of a harbour.")]))
        for text in ("and now?", "and tomorrow?"):
            agent.invoke({"messages": [HumanMessage(text)]}, thread)
    for one, two in pairwise(api.requests):
        assert two["tools"] == one["tools"]
        assert two["messages"][: len(one["messages"])] == one["messages"]
    told = "and now?\n\n[Toolgate] The search finds more tools: mcp__tides__tides."
    assert api.requests[2]["messages"][-1]["content"] == told


def test_native_adds_tools_amid_the_messages_of_anthropic(
    client: Client, tools: list[BaseTool]
) -> None:
    search = (SEARCH, {"query": f"select:{FIND}"})
    api = AnthropicApi([OSLO], "Rain.", [search], [(FIND, {"text": "milk"})], "One.")
    with serving(api):
        agent = create_agent(
            model_at(api),
            tools=[clock],
            middleware=[native(client, tools)],
            system_prompt="Be brief.",
            checkpointer=InMemorySaver(),
        )
        thread: Any = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [HumanMessage(RAIN)]}, thread)
        result = agent.invoke({"messages": [HumanMessage("and in Bergen?")]}, thread)
    assert [defined(request) for request in api.requests] == [["clock", SEARCH]] * 5
    assert api.betas == [BETAS] * 5, "named from the first request on: the provider caches by them"
    assert added(api.requests[0]) == [FORECAST]
    assert FIND in added(api.requests[3])
    for before, after in pairwise(request["messages"] for request in api.requests):
        assert after[: len(before)] == before, "the cached prefix stays"
    messages: list[AnyMessage] = result["messages"]
    assert not [one for one in messages if isinstance(one, SystemMessage)], "nor is it in the state"
    assert [one.name for one in messages if isinstance(one, ToolMessage)] == [
        FORECAST,
        SEARCH,
        FIND,
    ]


def test_native_holds_in_a_graph_of_ones_own(client: Client, tools: list[BaseTool]) -> None:
    toolgate = native(client, tools)
    api = AnthropicApi([OSLO, (DELETE, {"title": "milk"})], "Rain.")
    with serving(api):
        graph: Any = StateGraph(ToolgateState)
        graph.add_node("model", model_node(toolgate, model_at(api)))
        graph.add_node("tools", tool_node(toolgate))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", calls_condition, ["tools", "model", END])
        graph.add_edge("tools", "model")
        result = graph.compile().invoke({"messages": [HumanMessage(RAIN)]})
    assert [defined(request) for request in api.requests] == [[SEARCH]] * 2
    assert [added(request) for request in api.requests] == [[FORECAST]] * 2
    assert api.betas == [BETAS] * 2
    answers = [one for one in result["messages"] if isinstance(one, ToolMessage)]
    statuses = {str(one.name): one.status for one in answers}
    assert statuses == {FORECAST: "success", DELETE: "error"}, "what was not shown is refused"


def test_native_survives_a_history_that_lost_messages(
    client: Client, tools: list[BaseTool]
) -> None:
    toolgate = native(client, tools)
    api = AnthropicApi("Hello.", [OSLO], "Rain.")
    with serving(api):
        agent = create_agent(model_at(api), middleware=[toolgate])
        first = agent.invoke({"messages": [HumanMessage(RAIN)]})
        kept: Any = {**first, "messages": [HumanMessage(RAIN)]}
        result = agent.invoke(kept)
    assert added(api.requests[1]) == added(api.requests[2]) == [FORECAST]
    assert result["messages"][-1].text == "Rain."


def test_where_all_tools_are_sent_native_sends_them_as_definitions(
    client: Client, tools: list[BaseTool]
) -> None:
    api = AnthropicApi("Hello.")
    with serving(api):
        agent = create_agent(model_at(api), middleware=[native(client, tools, deferral="off")])
        agent.invoke({"messages": [HumanMessage(RAIN)]})
    assert len(set(added(api.requests[0])) | set(defined(api.requests[0])) - {SEARCH}) == len(tools)


def test_native_is_refused_where_the_model_can_not_carry_it(
    client: Client, tools: list[BaseTool]
) -> None:
    toolgate = native(client, tools)
    with serving(AnthropicApi()) as api:
        agent = create_agent(model_at(api, "claude-haiku-4-5"), middleware=[toolgate])
        with pytest.raises(ValueError, match=r'mid_conversation_tools, not .*: take "auto"'):
            agent.invoke({"messages": [HumanMessage(RAIN)]})
    assert api.requests == []


LONG = "Here is what I know of the weather so far, at length. " * 120


def test_by_default_tools_are_added_amid_the_messages_where_the_model_takes_them(
    client: Client, tools: list[BaseTool], monkeypatch: pytest.MonkeyPatch
) -> None:
    routed = Routed(client, monkeypatch)
    api = AnthropicApi([OSLO], "Rain.", [(FIND, {"text": "milk"})], "One.")
    with serving(api):
        toolgate = ToolgateMiddleware(client, tools, top_k=1)
        agent = create_agent(model_behind(api), middleware=[toolgate], checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [HumanMessage(LONG + RAIN)]}, thread)
        agent.invoke({"messages": [HumanMessage("search through my notes for milk")]}, thread)
    assert [set(defined(r)) >= {SEARCH} for r in api.requests] == [True] * 4
    assert len({tuple(defined(request)) for request in api.requests}) == 1, "tools stay"
    assert FIND in added(api.requests[3])
    assert api.betas == [BETAS] * 4
    for before, after in pairwise(request["messages"] for request in api.requests):
        assert after[: len(before)] == before, "the cached prefix stays"
    assert {asked["model"] for asked in routed.asked} == {"claude-opus-5-5"}
    assert {asked["model_base_url"] for asked in routed.asked} == {"http://api.anthropic.com"}
    assert {asked["context_window"] for asked in routed.asked} == {1_000_000}
    renders = [asked["render"] for asked in routed.asked]
    assert {(one.format, one.without_native) for one in renders} == {("anthropic", False)}
    assert len(routed.asked) == 4, "one for each call of the model, the first too"


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("http://proxy.example", "claude-opus-5-5"),
        ("http://api.anthropic.com", "claude-sonnet-4-5"),
    ],
)
def test_by_default_other_models_and_hosts_get_descriptions(
    client: Client, tools: list[BaseTool], base_url: str, name: str
) -> None:
    api = AnthropicApi([("toolgate_call_tool", {"name": OSLO[0], "arguments": OSLO[1]})], "Rain.")
    with serving(api):
        toolgate = ToolgateMiddleware(client, tools, top_k=1)
        agent = create_agent(model_behind(api, base_url, name), middleware=[toolgate])
        result = agent.invoke({"messages": [HumanMessage(LONG + RAIN)]})
    assert api.betas == [[], []]
    assert [set(defined(r)) >= {SEARCH, "toolgate_call_tool"} for r in api.requests] == [True] * 2
    assert len(defined(api.requests[0])) < len(tools), "tools are deferred there too"
    assert [m.name for m in result["messages"] if isinstance(m, ToolMessage)] == [FORECAST]


def test_another_model_is_routed_for_anew(
    client: Client, tools: list[BaseTool], monkeypatch: pytest.MonkeyPatch
) -> None:
    routed = Routed(client, monkeypatch)
    api = AnthropicApi("Rain.", "Snow.")
    with serving(api):
        toolgate = ToolgateMiddleware(client, tools, top_k=1)
        saver, thread = InMemorySaver(), {"configurable": {"thread_id": "1"}}
        for name in ("claude-opus-5-5", "claude-haiku-4-5"):
            model = model_behind(api, name=name)
            agent: Any = create_agent(model, middleware=[toolgate], checkpointer=saver)
            agent.invoke({"messages": [HumanMessage(LONG + RAIN)]}, thread)
    asked = [one["model"] for one in routed.asked]
    assert asked == ["claude-opus-5-5", "claude-opus-5-5", "claude-haiku-4-5"]
    assert api.betas == [BETAS, []]
    assert added(api.requests[1]) == []
