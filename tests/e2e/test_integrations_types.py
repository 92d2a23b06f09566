"""Requests that the Python integrations send, held to the providers' own types."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    set_tracing_disabled,
)
from anthropic import AsyncAnthropic
from catalogs import NOTES, SHIPPED, WEATHER
from google import genai
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from llm_provider import Answer, Json, Provider, Sent, serving
from llm_provider import answer as in_one_piece
from openai import AsyncOpenAI
from provider_types import check_request
from pydantic import SecretStr
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import ModelMessage, Tool
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openai import OpenAIResponsesModel as PydanticResponses
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.toolsets import FunctionToolset
from waiting import PATIENCE

from toolgate import SEARCH_TOOL, Client, Conversation, ModelRequest
from toolgate import openai_agents as agents_sdk
from toolgate.catalog import Tool as CatalogTool
from toolgate.langchain import (
    ToolgateMiddleware,
    ToolgateState,
    calls_condition,
    model_node,
    tool_node,
)
from toolgate.pydantic_ai import Toolgate

FORECAST, FIND = "mcp__weather__get_forecast", "mcp__notes__find_notes"
CALL = "toolgate_call_tool"
MODELS = {
    "anthropic": "claude-opus-5-5",
    "openai_chat": "gpt-6-astra",
    "openai_responses": "gpt-6-astra",
    "gemini": "gemini-3-pro",
}
SAID = ("what will the weather be in Oslo in the coming days?", "search through my notes")
Step = str | tuple[str, Json]
SCRIPT: tuple[Step, ...] = (
    (FORECAST, {"city": 7}),
    (FORECAST, {"city": "Oslo"}),
    "Rain.",
    (SEARCH_TOOL.model_name, {"query": f"select:{FIND}"}),
    (FIND, {"text": "milk"}),
    "One note.",
)
DEFERRED: Json = {"top_k": 1, "deferral": "always"}
"""Arguments of Route with a strategy that is chosen, unless a test has others."""


@dataclass(frozen=True)
class Desk:
    """The tools of a talk."""

    servers: dict[str, list[Json]]
    """The definitions by the names of the servers."""
    returns: str = "done"
    """What each tool returns."""

    def listed(self, client: Client) -> list[CatalogTool]:
        """Registers the servers; returns their tools."""
        for name, tools in self.servers.items():
            client.register_server(name, tools)
        return list(client.list_tools())

    @property
    def names(self) -> set[str]:
        """The names that the model sees."""
        return {
            f"mcp__{server}__{tool['name']}"
            for server, tools in self.servers.items()
            for tool in tools
        }


def shipped(*servers: str) -> dict[str, list[Json]]:
    """The definitions of shipped servers."""
    return {name: json.loads((SHIPPED / f"{name}.json").read_text())["tools"] for name in servers}


SMALL = Desk({"notes": NOTES, "weather": WEATHER})
LARGE = Desk({**SMALL.servers, **shipped("filesystem", "git", "slack", "time")})
"""So many tools that they are deferred by default."""
LONG_SAID = (SAID[0] + " " + "I will be on foot and the roads are long there. " * 300, SAID[1])
"""What is said where no strategy is chosen: so long that the provider caches it."""


def options_of(strategy: str, route: Json) -> Json:
    """Returns the options of an integration: none of ours with "auto", which is the default."""
    return route if strategy == "auto" else {"strategy": strategy, **DEFERRED, **route}


USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


def answered(api: str, script: Sequence[Step] = SCRIPT) -> Iterator[Callable[[Sent], Answer]]:
    """The script's answers in an API's form; calls are in an envelope where there is one."""

    def answer(sent: Sent, number: int, step: Step) -> Answer:
        if not isinstance(step, str) and step[0].startswith("mcp__"):
            has_envelope = f'"{CALL}"' in json.dumps(sent.json["tools"])
            step = (CALL, {"name": step[0], "arguments": step[1]}) if has_envelope else step
        return in_one_piece(FORMS[api](step, f"call_{number}"))

    for number, step in enumerate(script):
        yield lambda sent, number=number, step=step: answer(sent, number, step)  # type: ignore[misc]


def of_anthropic(step: Step, made: str) -> Json:
    block: Json = {"type": "text", "text": step}
    if not isinstance(step, str):
        block = {"type": "tool_use", "id": made, "name": step[0], "input": step[1]}
    said = {"id": made, "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    reason = "end_turn" if isinstance(step, str) else "tool_use"
    return {**said, "content": [block], "stop_reason": reason, "usage": USAGE}


def of_chat(step: Step, made: str) -> Json:
    message: Json = {"role": "assistant", "content": step}
    if not isinstance(step, str):
        function = {"name": step[0], "arguments": json.dumps(step[1])}
        call = {"id": made, "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "stop" if isinstance(step, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    said = {"id": made, "object": "chat.completion", "created": 1, "model": "m"}
    return {**said, "choices": [choice]}


def of_responses(step: Step, made: str) -> Json:
    if isinstance(step, str):
        text = {"type": "output_text", "text": step, "annotations": []}
        item: Json = {"id": f"msg_{made}", "type": "message", "role": "assistant"}
        item |= {"content": [text], "status": "completed"}
    else:
        item = {"id": f"fc_{made}", "type": "function_call", "call_id": made, "name": step[0]}
        item |= {"arguments": json.dumps(step[1]), "status": "completed"}
    said = {"id": made, "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    said |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**said, "output": [item]}


def of_gemini(step: Step, made: str) -> Json:
    part: Json = {"text": step}
    if not isinstance(step, str):
        part = {"functionCall": {"id": made, "name": step[0], "args": step[1]}}
    content = {"role": "model", "parts": [part]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}


FORMS: dict[str, Callable[[Step, str], Json]] = {
    "anthropic": of_anthropic,
    "openai_chat": of_chat,
    "openai_responses": of_responses,
    "gemini": of_gemini,
}


def langchain_model(api: str, url: str) -> BaseChatModel:
    """A model of LangChain's."""
    key = SecretStr("none")
    if api == "anthropic":
        return ChatAnthropic(
            model_name=MODELS[api], api_key=key, base_url=url, timeout=PATIENCE, stop=None
        )
    return ChatOpenAI(
        model=MODELS[api],
        api_key=key,
        base_url=f"{url}/v1",
        use_responses_api=api == "openai_responses",
    )


def langchain_middleware(client: Client, desk: Desk, options: Json) -> ToolgateMiddleware:
    """The middleware over the tools of a desk."""
    tools: list[BaseTool] = [
        StructuredTool(
            name=one.model_name,
            description=one.definition["description"],
            args_schema=one.definition["inputSchema"],
            func=lambda **_: desk.returns,
        )
        for one in desk.listed(client)
    ]
    return ToolgateMiddleware(client, tools, **options)


async def with_langchain(
    client: Client,
    api: str,
    url: str,
    strategy: str,
    said: Sequence[str] = SAID,
    desk: Desk = SMALL,
    **route: Any,
) -> None:
    """The talk with LangChain."""
    toolgate = langchain_middleware(client, desk, options_of(strategy, route))
    agent = create_agent(
        langchain_model(api, url), middleware=[toolgate], checkpointer=InMemorySaver()
    )
    for text in said:
        thread: Any = {"configurable": {"thread_id": "1"}}
        await agent.ainvoke({"messages": [HumanMessage(text)]}, thread)


async def with_langgraph(
    client: Client,
    api: str,
    url: str,
    strategy: str,
    said: Sequence[str] = SAID,
    desk: Desk = SMALL,
    **route: Any,
) -> None:
    """The talk with a graph of LangGraph's."""
    toolgate = langchain_middleware(client, desk, options_of(strategy, route))
    graph = StateGraph(ToolgateState)
    graph.add_node("model", model_node(toolgate, langchain_model(api, url)))
    graph.add_node("tools", tool_node(toolgate))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", calls_condition)
    graph.add_edge("tools", "model")
    agent = graph.compile(checkpointer=InMemorySaver())
    for text in said:
        thread: Any = {"configurable": {"thread_id": "1"}}
        await agent.ainvoke({"messages": [HumanMessage(text)]}, thread)


async def with_agents_sdk(
    client: Client,
    api: str,
    url: str,
    strategy: str,
    said: Sequence[str] = SAID,
    desk: Desk = SMALL,
    **route: Any,
) -> None:
    """The talk with the OpenAI Agents SDK."""
    set_tracing_disabled(True)

    async def done(_context: Any, _arguments: str) -> str:
        return desk.returns

    def function(one: CatalogTool) -> FunctionTool:
        described, schema = one.definition["description"], one.definition["inputSchema"]
        return FunctionTool(one.model_name, described, schema, done, False)

    tools = list(map(function, desk.listed(client)))
    conversation = agents_sdk.Conversation(client, tools, **options_of(strategy, route))
    session = SQLiteSession("talk")
    async with AsyncOpenAI(api_key="none", base_url=f"{url}/v1") as asked:
        model: Model = OpenAIChatCompletionsModel(MODELS[api], asked)
        if api == "openai_responses":
            model = OpenAIResponsesModel(MODELS[api], asked)
        agent = Agent(name="desk", model=model)
        for text in said:
            await Runner.run(conversation.agent(agent), text, session=session)


async def with_pydantic_ai(
    client: Client,
    api: str,
    url: str,
    strategy: str,
    said: Sequence[str] = SAID,
    desk: Desk = SMALL,
    **route: Any,
) -> None:
    """The talk with Pydantic AI."""
    tools = [
        Tool[None].from_schema(
            lambda **_: desk.returns,
            one.model_name,
            one.definition["description"],
            one.definition["inputSchema"],
        )
        for one in desk.listed(client)
    ]
    model: Any
    if api == "anthropic":
        model = AnthropicModel(
            MODELS[api],
            provider=AnthropicProvider(api_key="none", base_url=url),
            settings={"max_tokens": 1_000},
        )
    elif api == "gemini":
        model = GoogleModel(MODELS[api], provider=GoogleProvider(api_key="none", base_url=url))
    else:
        kind = PydanticResponses if api == "openai_responses" else OpenAIChatModel
        provider = OpenAIProvider(api_key="none", base_url=f"{url}/v1")
        model = kind(MODELS[api], provider=provider)
    toolgate = Toolgate(client, FunctionToolset(tools), **options_of(strategy, route))
    agent = PydanticAgent(model, capabilities=[toolgate])
    history: list[ModelMessage] = []
    for text in said:
        history = (await agent.run(text, message_history=history)).all_messages()


async def with_a_loop(
    client: Client,
    api: str,
    url: str,
    strategy: str,
    said: Sequence[str] = SAID,
    desk: Desk = SMALL,
    **route: Any,
) -> None:
    """The talk in a loop of one's own."""
    conversation = await Conversation.from_tools(
        client,
        api,
        desk.servers,
        lambda *_call: desk.returns,
        model=MODELS[api],
        **options_of(strategy, route),
    )
    for text in said:
        request: ModelRequest | None = await conversation.say(text)
        while request is not None:
            request = await conversation.take(await asked(api, url, request))


async def asked(api: str, url: str, request: ModelRequest) -> Any:
    """Returns an answer as the provider's package has it."""
    tools: Any = request.tools
    messages: Any = request.messages
    model = MODELS[api]
    if api == "anthropic":
        async with AsyncAnthropic(api_key="none", base_url=url) as anthropic:
            return await anthropic.beta.messages.create(
                model=model,
                max_tokens=99,
                tools=tools,
                messages=messages,
                betas=list(request.betas),
            )
    if api == "gemini":
        google = genai.Client(api_key="none", http_options={"base_url": url})
        config: Any = {"tools": [{"function_declarations": tools}]}
        return await google.aio.models.generate_content(
            model=model, contents=messages, config=config
        )
    async with AsyncOpenAI(api_key="none", base_url=f"{url}/v1") as openai:
        if api == "openai_chat":
            return await openai.chat.completions.create(model=model, tools=tools, messages=messages)
        return await openai.responses.create(model=model, tools=tools, input=messages)


def sent_tools(api: str, body: Json) -> Any:
    """The definitions of a request."""
    if api == "gemini":
        return [one for tool in body["tools"] for one in tool["functionDeclarations"]]
    return body["tools"]


def declared(talk: Any, api: str, part: Json) -> Json:
    """A tool or a message as the types declare it, where a framework writes it otherwise."""
    if talk is with_langchain and api == "openai_responses":
        if part.get("type") == "function":
            return {"strict": None, **part}
        if part.get("type") == "message" and part["role"] == "assistant":
            return {"status": "completed", **part}
    if talk is with_pydantic_ai and "parameters_json_schema" in part:
        # Google's package writes it so.
        return {
            name.replace("parameters_json_schema", "parametersJsonSchema"): value
            for name, value in part.items()
        }
    return part


Talk = Callable[..., Coroutine[Any, Any, None]]
PLAIN = ("cut", "envelope")
NATIVE = (*PLAIN, "native")
TALKS: dict[str, dict[Talk, tuple[str, ...]]] = {
    "anthropic": {with_langchain: NATIVE, with_pydantic_ai: PLAIN, with_a_loop: NATIVE},
    "openai_chat": {
        with_langchain: PLAIN,
        with_agents_sdk: PLAIN,
        with_pydantic_ai: PLAIN,
        with_a_loop: PLAIN,
    },
    "openai_responses": {
        with_langchain: NATIVE,
        with_agents_sdk: NATIVE,
        with_pydantic_ai: PLAIN,
        with_a_loop: NATIVE,
    },
    "gemini": {with_pydantic_ai: PLAIN, with_a_loop: PLAIN},
}
"""The integrations by API, with their strategies."""
ADDING = {"native": ('"tool_addition"', '"additional_tools"'), "envelope": ("[Toolgate] More",)}
MESSAGES = {"openai_responses": "input", "gemini": "contents"}


@pytest.mark.parametrize("api", TALKS)
def test_every_request_that_is_sent_is_one_that_the_provider_takes(
    client: Client, api: str
) -> None:
    for talk, strategies in TALKS[api].items():
        for strategy in strategies:
            provider = Provider(*answered(api))
            with serving(provider):
                asyncio.run(talk(client, api, provider.url, strategy))
            assert len(provider.sent) == len(SCRIPT)
            try:
                for sent in provider.sent:
                    body = sent.json
                    tools = [declared(talk, api, one) for one in sent_tools(api, body)]
                    messages = body[MESSAGES.get(api, "messages")]
                    check_request(api, tools, [declared(talk, api, one) for one in messages])
            except Exception as error:
                error.add_note(f"{talk.__name__}, {strategy}")
                raise
            text = json.dumps(provider.sent[-1].json)
            ways = {way for way, signs in ADDING.items() if any(sign in text for sign in signs)}
            assert ways == {strategy} - {"cut"}, f"{talk.__name__} adds tools by {strategy}"


OTHER_SAID = (
    LONG_SAID[0] + " show me the unstaged changes",
    "post a message in the slack channel that the fix is out",
    "what time is it in Tokyo",
    "read the file TODO.txt",
)
"""Messages about other things, after which the active set has no place for the forecast."""


@pytest.mark.parametrize(
    ("api", "talk"),
    [
        ("anthropic", with_langchain),
        ("openai_chat", with_langgraph),
        ("openai_responses", with_agents_sdk),
        ("anthropic", with_pydantic_ai),
        ("anthropic", with_a_loop),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a7_by_default_a_tool_of_earlier_turns_that_is_still_shown_runs(
    client: Client, api: str, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    active: list[set[str]] = []
    route = Client.route

    def noted(self: Client, *arguments: Any, **more: Any) -> Any:
        turn = route(self, *arguments, **more)
        active.append({tool.model_name for tool in turn.tools})
        return turn

    monkeypatch.setattr(Client, "route", noted)
    script: list[Step] = ["Fine."] * (len(OTHER_SAID) - 1)
    script += [(FORECAST, {"city": "Oslo"}), "Rain."]
    provider = Provider(*answered(api, script))
    desk = replace(LARGE, returns="a wet afternoon")
    with serving(provider):
        asyncio.run(talk(client, api, provider.url, "auto", OTHER_SAID, desk))
    assert len(provider.sent) == len(script)
    called, answered_with = (json.dumps(sent.json) for sent in provider.sent[-2:])
    assert FORECAST in called, "the request shows it"
    assert FORECAST not in active[-2], "the active set of the turn lacks it"
    assert "a wet afternoon" in answered_with, "so it ran"
