"""The forty messages to a graph of one's own, of LangGraph."""

from pathlib import Path
from typing import Any

from forty_messages import TURNS, Request, Talk
from langchain_core.messages import HumanMessage
from langchain_talk import TalkingModel, over_servers
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from toolgate import Client
from toolgate.langchain import ToolgateState, calls_condition, model_node, tool_node


async def play(client: Client, folder: Path, **options: Any) -> list[Request]:
    """Has the talk; the model's requests."""
    toolgate = await over_servers(client, folder, **options)
    talk = Talk()
    graph = StateGraph(ToolgateState)
    graph.add_node("model", model_node(toolgate, TalkingModel(talk)))
    graph.add_node("tools", tool_node(toolgate))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", calls_condition)
    graph.add_edge("tools", "model")
    agent = graph.compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    for _ in range(TURNS):
        await agent.ainvoke({"messages": [HumanMessage(talk.say())]}, thread)
    return talk.requests
