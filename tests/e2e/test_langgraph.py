"""LangGraph graphs of one's own, without `create_agent`, over real MCP servers."""

import asyncio
import json
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import tools_condition
from scripted_model import ScriptedModel, calls, says
from toolgate_process import ToolgateProcess

from toolgate import SEARCH_TOOL, AsyncClient, Client
from toolgate.langchain import (
    ToolgateMiddleware,
    ToolgateState,
    calls_condition,
    mcp_definitions,
    model_facing,
    model_node,
    tool_node,
)

NOW, CONVERT = "mcp__time__get_current_time", "mcp__time__convert_time"
STATUS = "mcp__git__git_status"
SEARCH, CALL = SEARCH_TOOL.model_name, "toolgate_call_tool"
TOKYO, OSLO = {"timezone": "Asia/Tokyo"}, {"timezone": "Europe/Oslo"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


def stdio(module: str) -> Any:
    return {"transport": "stdio", "command": sys.executable, "args": ["-m", module]}


def graph_of(
    toolgate: ToolgateMiddleware,
    model: ScriptedModel,
    *,
    edge: Callable[[Any], str] = calls_condition,
    saver: Any = None,
    own: Any = (),
    **named: Any,
) -> Any:
    graph = StateGraph(ToolgateState)
    graph.add_node("model", model_node(toolgate, model, own, **named))
    graph.add_node("tools", tool_node(toolgate, own))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", edge, ["tools", "model", "__end__"])
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


async def over_servers(client: Client | AsyncClient, **options: Any) -> ToolgateMiddleware:
    mcp = MultiServerMCPClient({"time": stdio("mcp_server_time"), "git": stdio("mcp_server_git")})
    options = {"top_k": 1, "deferral": "always", **options}
    return await ToolgateMiddleware.from_mcp(client, mcp, **options)


def asked(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def answers(messages: list[AnyMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def called(messages: list[Any]) -> list[str]:
    return [call["name"] for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]


def test_a_checkpointed_graph_goes_on_with_parallel_calls_of_which_one_is_refused(
    client: Client,
) -> None:
    model = ScriptedModel(
        script=[
            calls((NOW, TOKYO), (NOW, {"city": "Oslo"})),
            calls((NOW, OSLO)),
            says("Late, and noon."),
            calls((STATUS, {"repo_path": "/nowhere"})),
            says("There is none."),
        ]
    )
    saver = InMemorySaver()

    async def run() -> list[AnyMessage]:
        graph = graph_of(await over_servers(client), model, saver=saver)
        await graph.ainvoke(asked("what time is it in Tokyo and Oslo right now?"), THREAD)
        elsewhere = graph_of(await over_servers(client), model, saver=saver)
        result = await elsewhere.ainvoke(asked("show me the git status here"), THREAD)
        messages: list[AnyMessage] = result["messages"]
        return messages

    messages = asyncio.run(run())
    refused, tokyo, oslo, status = answers(messages)
    assert json.loads(refused.text)["error"] == "arguments_invalid"
    assert ("Asia/Tokyo" in tokyo.text, "Europe/Oslo" in oslo.text) == (True, True)
    assert status.name == STATUS
    # From the second request on, tools are described in the messages: the list stays as it is.
    assert model.shown_tools == [[SEARCH, NOW]] + [[SEARCH, "toolgate_call_tool"]] * 4
    assert called(messages) == [NOW, NOW, NOW, STATUS]


def test_a_call_that_was_refused_never_runs_whatever_the_edges_are(client: Client) -> None:
    ran: list[str] = []

    @tool
    def add_event(title: str, hour: int) -> str:
        """Add an event to today's calendar."""
        ran.append(f"{title} {hour}")
        return "added"

    def always_tools(state: ToolgateState) -> str:
        message = next(m for m in reversed(state["messages"]) if isinstance(m, AIMessage))
        return tools_condition([message])

    client.register_server("calendar", mcp_definitions([add_event]))
    managed = model_facing([add_event], client.list_tools("calendar"))
    add = managed[0].name
    model = ScriptedModel(
        script=[
            calls((add, {"title": "Lunch", "hour": "noon"}), (add, {"title": "Tea", "hour": 16})),
            calls((add, {"title": "Lunch", "hour": "noon"})),
            calls((add, {"title": "Lunch", "hour": 12})),
            says("Added."),
        ]
    )
    toolgate = ToolgateMiddleware(client, managed)
    result = graph_of(toolgate, model, edge=always_tools).invoke(asked("add lunch at noon"))
    assert ran == ["Tea 16", "Lunch 12"]
    statuses = [answer.status for answer in answers(result["messages"])]
    assert statuses == ["error", "success", "error", "success"], "one answer to each call"


def test_a_refusal_alone_goes_back_to_the_model_and_a_search_shows_what_it_found(
    server: ToolgateProcess, tenant: str
) -> None:
    model = ScriptedModel(
        script=[
            calls(("mcp__time__tell_fortune", {})),
            calls((SEARCH, {"query": f"select:{CONVERT}"})),
            calls((CONVERT, {"source_timezone": "UTC", "time": "12:00", "target_timezone": "UTC"})),
            says("Noon."),
        ]
    )

    async def run() -> Any:
        async with AsyncClient(server.target, tenant=tenant, timeout=30) as own:
            graph = graph_of(await over_servers(own, strategy="cut"), model)
            steps = graph.astream(asked("what is the current time in Tokyo?"))
            return [name async for step in steps for name in step]

    assert asyncio.run(run()) == ["model"] * 3 + ["tools", "model"]
    assert CONVERT not in model.shown_tools[1]
    assert CONVERT in model.shown_tools[2]


def test_with_the_envelope_definitions_and_prefix_stay(client: Client) -> None:
    model = ScriptedModel(
        script=[
            calls((CALL, {"name": NOW, "arguments": TOKYO})),
            says("Late."),
            calls((CALL, {"name": STATUS, "arguments": {"repo_path": "/nowhere"}})),
            says("There is none."),
        ]
    )

    async def run() -> list[AnyMessage]:
        toolgate = await over_servers(client, strategy="envelope")
        graph = graph_of(toolgate, model, saver=InMemorySaver(), prompt="Be brief.")
        await graph.ainvoke(asked("what time is it in Tokyo right now?"), THREAD)
        result = await graph.ainvoke(asked("show me the git status here"), THREAD)
        messages: list[AnyMessage] = result["messages"]
        return messages

    messages = asyncio.run(run())
    assert called(messages) == [NOW, STATUS], "the state has the tools' own names"
    assert "Asia/Tokyo" in answers(messages)[0].text
    assert model.shown_tools == [[SEARCH, CALL]] * 4
    assert {shown[0].text for shown in model.shown_messages} == {"Be brief."}
    for before, after in pairwise(model.shown_messages):
        assert [m.content for m in after[: len(before)]] == [m.content for m in before]


def test_tools_of_the_graphs_own_are_shown_and_run(client: Client) -> None:
    @tool
    def roll_dice() -> str:
        """Roll a die."""
        return "four"

    model = ScriptedModel(script=[calls(("roll_dice", {})), says("A four.")])

    async def run() -> Any:
        graph = graph_of(await over_servers(client), model, own=[roll_dice])
        return await graph.ainvoke(asked("what time is it in Tokyo right now?"))

    (answer,) = answers(asyncio.run(run())["messages"])
    assert answer.text == "four"
    assert model.shown_tools[0] == ["roll_dice", SEARCH, NOW]
