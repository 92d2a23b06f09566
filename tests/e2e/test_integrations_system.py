"""The tokens of the system prompt, as the Python integrations tell them to Route (A19)."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import agents
import pytest
from agents import Runner
from agents.testing import assistant_message
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import ModelMessage
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset
from scripted_model import ScriptedModel, says

from toolgate import Client, openai_agents
from toolgate.langchain import ToolgateMiddleware, ToolgateState, model_node
from toolgate.pydantic_ai import Toolgate

SYSTEM = ("Help with notes." * 25, "Help with notes." * 50)
"""Of 100 and of 200 tokens, as they are estimated."""
SAID = ("find my notes", "find them again", "and once more")
Talk = Callable[..., Coroutine[Any, Any, None]]


def find_notes(text: str) -> str:
    """Find notes by a word in their text."""
    return text


async def langchain(client: Client, systems: Sequence[str], **options: Any) -> None:
    """Has an agent of LangChain say three things, whose prompt changes with the last."""
    toolgate = await ToolgateMiddleware.from_tools(client, {"notes": [find_notes]}, **options)
    checkpointer = InMemorySaver()
    for text, system in zip(SAID, systems, strict=True):
        model = ScriptedModel(script=[says("None.")])
        agent = create_agent(
            model,
            middleware=[toolgate],
            system_prompt=system or None,
            checkpointer=checkpointer,
        )
        thread: Any = {"configurable": {"thread_id": "1"}}
        await agent.ainvoke({"messages": [HumanMessage(text)]}, thread)


async def langgraph(client: Client, systems: Sequence[str], **options: Any) -> None:
    """Has a graph say the same."""
    toolgate = await ToolgateMiddleware.from_tools(client, {"notes": [find_notes]}, **options)
    checkpointer = InMemorySaver()
    for text, system in zip(SAID, systems, strict=True):
        model = ScriptedModel(script=[says("None.")])
        graph = StateGraph(ToolgateState)
        graph.add_node("model", model_node(toolgate, model, prompt=system or None))
        graph.add_edge(START, "model")
        thread: Any = {"configurable": {"thread_id": "1"}}
        compiled = graph.compile(checkpointer=checkpointer)
        await compiled.ainvoke({"messages": [HumanMessage(text)]}, thread)


async def agents_sdk(client: Client, systems: Sequence[str], **options: Any) -> None:
    """Has an agent of the OpenAI Agents SDK say the same, with `instructions`."""
    agents.set_tracing_disabled(True)
    tools = {"notes": [agents.function_tool(find_notes)]}
    conversation = await openai_agents.Conversation.from_tools(client, tools, **options)
    session = agents.SQLiteSession("talk")
    for text, system in zip(SAID, systems, strict=True):
        model = agents.testing.ScriptedModel([[assistant_message("None.")]])
        agent = agents.Agent(name="desk", model=model, instructions=system or None)
        await Runner.run(conversation.agent(agent), text, session=session)


async def pydantic_ai(client: Client, systems: Sequence[str], **options: Any) -> None:
    """Has an agent of Pydantic AI say the same, with `instructions`."""
    toolset: Any = FunctionToolset([find_notes])
    toolgate = Toolgate.from_tools(client, {"notes": toolset}, **options)
    history: list[ModelMessage] = []
    for text, system in zip(SAID, systems, strict=True):
        agent = PydanticAgent(
            TestModel(call_tools=[]), instructions=system or None, capabilities=[toolgate]
        )
        history = (await agent.run(text, message_history=history)).all_messages()


def told(client: Client, monkeypatch: pytest.MonkeyPatch, talk: Any) -> list[int | None]:
    """Returns the tokens of the system prompt that each Route of a talk was told."""
    route, asked = client.route, []

    def recorded(*arguments: Any, **named: Any) -> Any:
        asked.append(named.get("system_tokens"))
        return route(*arguments, **named)

    monkeypatch.setattr(client, "route", recorded)
    asyncio.run(talk)
    return asked


TALKS: list[Talk] = [langchain, langgraph, agents_sdk, pydantic_ai]


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
def test_a19_route_is_told_the_tokens_of_the_system_prompt(
    client: Client, monkeypatch: pytest.MonkeyPatch, talk: Talk
) -> None:
    short, long = SYSTEM
    tokens = told(client, monkeypatch, talk(client, (short, short, long)))
    # LangChain shows the prompt only after the routing: that of the request before counts.
    is_late = talk in (langchain, langgraph)
    assert tokens == [100, 100, 100 if is_late else 200]


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
@pytest.mark.parametrize(
    ("options", "systems", "expected"),
    [
        ({}, ("", "", ""), None),
        ({"system_tokens": 7}, (SYSTEM[0],) * 3, 7),
        ({"count_tokens": None}, (SYSTEM[0],) * 3, None),
    ],
    ids=["without a prompt", "told by the agent", "not counted"],
)
def test_a19_what_the_agent_tells_of_its_system_prompt_stands(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    talk: Talk,
    options: dict[str, Any],
    systems: tuple[str, ...],
    expected: int | None,
) -> None:
    tokens = told(client, monkeypatch, talk(client, systems, **options))
    assert tokens == [expected] * 3


def test_a19_system_prompts_among_the_messages_of_pydantic_ai_count_too(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolset: Any = FunctionToolset([find_notes])
    toolgate = Toolgate.from_tools(client, {"notes": toolset})
    agent = PydanticAgent(
        TestModel(call_tools=[]),
        system_prompt=SYSTEM[0],
        instructions=SYSTEM[1],
        capabilities=[toolgate],
    )
    assert told(client, monkeypatch, agent.run("find my notes")) == [300]
