"""LangChain's ChatOpenAI with each of its APIs, against a script of them."""

import asyncio
import itertools
import json
from typing import Any

import pytest
from desk import FIND, FORECAST, SEARCH, Desk
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from openai_api import OpenAIApi, serving
from pydantic import SecretStr
from routed import routed

from toolgate import Client
from toolgate.langchain import ToolgateMiddleware

CALL = "toolgate_call_tool"
LONG = "Here is what I know of the weather. " * 150
THREAD: Any = {"configurable": {"thread_id": "1"}}


def model_behind(api: OpenAIApi, *, responses: bool, name: str) -> ChatOpenAI:
    """A model of the provider's own host, which the script stands in for as a proxy."""
    return ChatOpenAI(
        model=name,
        api_key=SecretStr("none"),
        base_url="http://api.openai.com/v1",
        openai_proxy=api.url.removesuffix("/v1"),
        use_responses_api=responses,
    )


def over_the_desk(client: Client, desk: Desk, **options: Any) -> ToolgateMiddleware:
    servers: Any = {"notes": [desk.find_notes, desk.create_note], "weather": [desk.get_forecast]}
    return asyncio.run(ToolgateMiddleware.from_tools(client, servers, top_k=1, **options))


def added(request: dict[str, Any]) -> list[str]:
    """The tools that are defined amid the items of a request."""
    items = [item for item in request["input"] if item.get("type") == "additional_tools"]
    return [tool["name"] for item in items for tool in item["tools"]]


@pytest.mark.parametrize("strategy", ["auto", "native"])
def test_tools_are_added_amid_the_items_of_responses(
    client: Client, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    desk, asked = Desk(), routed(client, monkeypatch)
    search = (SEARCH, {"query": f"select:{FIND}"})
    api = OpenAIApi((FORECAST, {"city": "Oslo"}), "Rain.", search, (FIND, {"text": "milk"}), "One.")
    with serving(api):
        toolgate = over_the_desk(client, desk, strategy=strategy)
        model = model_behind(api, responses=True, name="gpt-6-astra")
        agent = create_agent(model, middleware=[toolgate], checkpointer=InMemorySaver())
        agent.invoke({"messages": [HumanMessage(LONG + "what will the weather be?")]}, THREAD)
        result = agent.invoke({"messages": [HumanMessage("and the other one?")]}, THREAD)
    assert desk.ran == ["get_forecast", "find_notes"]
    assert len({json.dumps(request["tools"]) for request in api.requests}) == 1, "tools stay"
    assert FIND in added(api.requests[3])
    for before, after in itertools.pairwise(request["input"] for request in api.requests):
        assert after[: len(before)] == before, "the cached prefix stays"
    assert {(one["model"], one["render"].format) for one in asked} == {
        ("gpt-6-astra", "openai_responses")
    }
    messages = result["messages"]
    assert not [one for one in messages if isinstance(one, SystemMessage)], "nor in the state"
    assert [m.name for m in messages if isinstance(m, ToolMessage)] == [FORECAST, SEARCH, FIND]


@pytest.mark.parametrize(
    ("responses", "name", "form"),
    [(True, "gpt-5", "openai_responses"), (False, "gpt-6-astra", "openai_chat")],
)
def test_others_get_descriptions_in_their_form(
    client: Client, monkeypatch: pytest.MonkeyPatch, responses: bool, name: str, form: str
) -> None:
    desk, asked = Desk(), routed(client, monkeypatch)

    def call(tool: str, **given: str) -> Any:
        return CALL, {"name": tool, "arguments": given}

    api = OpenAIApi(call(FORECAST, city="Oslo"), "Rain.", call(FIND, text="milk"), "One.")
    with serving(api):
        toolgate = over_the_desk(client, desk)
        model = model_behind(api, responses=responses, name=name)
        agent = create_agent(model, middleware=[toolgate], checkpointer=InMemorySaver())
        agent.invoke({"messages": [HumanMessage(LONG + "what will the weather be?")]}, THREAD)
        agent.invoke({"messages": [HumanMessage("search through my notes")]}, THREAD)
    assert desk.ran == ["get_forecast", "find_notes"]
    assert {(one["model"], one["render"].format) for one in asked} == {(name, form)}
    key = "input" if responses else "messages"
    for before, after in itertools.pairwise(request[key] for request in api.requests):
        assert after[: len(before)] == before, "the cached prefix stays"
    assert f'"name":"{FIND}"' in api.requests[2][key][-1]["content"]


def test_native_is_refused_with_chat_completions(client: Client) -> None:
    api = OpenAIApi()
    toolgate = over_the_desk(client, Desk(), strategy="native")
    with serving(api):
        model = model_behind(api, responses=False, name="gpt-6-astra")
        agent = create_agent(model, middleware=[toolgate])
        with pytest.raises(ValueError, match="use_responses_api=True"):
            agent.invoke({"messages": [HumanMessage("what will the weather be?")]})


def test_the_report_is_of_the_conversation(client: Client) -> None:
    desk = Desk()
    search = (SEARCH, {"query": f"select:{FIND}"})
    api = OpenAIApi("Rain.", search, "One.", "Other.")
    with serving(api):
        toolgate = over_the_desk(client, desk)
        model = model_behind(api, responses=True, name="gpt-6-astra")
        agent = create_agent(model, middleware=[toolgate], checkpointer=InMemorySaver())
        agent.invoke({"messages": [HumanMessage(LONG + "what will the weather be?")]}, THREAD)
        agent.invoke({"messages": [HumanMessage("and the other one?")]}, THREAD)
        agent.invoke({"messages": [HumanMessage("hello")]}, {"configurable": {"thread_id": "2"}})
        report = toolgate.report(agent.get_state(THREAD).values)
    assert (report.requests, report.searches) == (3, 1)
    assert report.strategies == {"native": 3}
    assert report.price is not None
    assert report.saved_tokens == report.all_tools_tokens - report.shown_tokens
    assert report.price.sent < report.shown_tokens + 3 * len(LONG) / 4, "the rest was cached"
    assert "3 requests" in str(report)
