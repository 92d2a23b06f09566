"""The forty messages to a graph of one's own, of LangGraph."""

from collections.abc import Mapping
from typing import Any

from forty_messages import TURNS, Framework, Request, Talk
from langchain_core.messages import HumanMessage
from langchain_talk import scripted
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from mcp import ClientSession
from mcp_sessions import sessions

from toolgate import Client
from toolgate.langchain import (
    ToolgateMiddleware,
    ToolgateState,
    calls_condition,
    model_node,
    tool_node,
)


async def talk(
    client: Client,
    servers: Mapping[str, ClientSession],
    *,
    anthropic: str | None = None,
    responses: str | None = None,
    **options: Any,
) -> list[Request]:
    """Has the talk; the model's requests. The arguments are those of `langchain_talk.talk`."""
    toolgate = await ToolgateMiddleware.from_mcp(client, servers, **options)
    talk = Talk()
    with scripted(talk, {"anthropic": anthropic, "responses": responses}) as chat:
        graph = StateGraph(ToolgateState)
        graph.add_node("model", model_node(toolgate, chat))
        graph.add_node("tools", tool_node(toolgate))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", calls_condition)
        graph.add_edge("tools", "model")
        agent = graph.compile(checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        for _ in range(TURNS):
            await agent.ainvoke({"messages": [HumanMessage(talk.say())]}, thread)
    return talk.requests


FRAMEWORK = Framework(sessions, talk)
