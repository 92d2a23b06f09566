"""The forty messages to agents that search for tools with what their framework has for it."""

import array
import importlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import httpx2
import node_talk
import openai_agents_talk
from agents import (
    Agent,
    FunctionTool,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    ToolSearchTool,
    set_tracing_disabled,
    tool_namespace,
)
from agents.mcp import MCPUtil
from anthropic_api import serving
from fastmcp.client.transports import StdioTransport
from forty_messages import TURNS, Request, commands
from hosted_search import MessagesApi, ResponsesApi
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    LLMToolSelectorMiddleware,
    ProviderToolSearchMiddleware,
)
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_talk import TalkingModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import ToolNode
from langgraph.store.memory import InMemoryStore
from mcp_sessions import sessions
from openai import AsyncOpenAI
from pydantic import SecretStr
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import ModelMessage
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from searching import SearchingTalk
from waiting import wait_until

from toolgate import Client
from toolgate._gen.v1 import encoder_pb2, encoder_pb2_grpc
from toolgate.langchain import ToolgateMiddleware
from toolgate.openai_agents import Conversation

CLAUDE = "claude-opus-4-8"
GPT = "gpt-5.5"
ENCODED = 64
"""Texts that are embedded at a time."""


@dataclass(frozen=True)
class Played:
    """A talk that was had."""

    requests: list[Request]
    hosted: int = 0
    """The searches that the provider executed: each makes a request that no client sent."""


@dataclass(frozen=True)
class Setting:
    """Means of a talk."""

    folder: Path
    """Names the MCP servers, as `forty_messages.commands` takes it."""
    binary: Path
    """The program `toolgate`, which is the encoder of `bigtool`."""


Play = Callable[[Setting], Coroutine[Any, Any, Played]]


async def converse(talk: SearchingTalk, api: ResponsesApi, agent: Callable[..., Any]) -> Played:
    """Has the talk with an agent that is made of a model."""
    set_tracing_disabled(True)
    http = httpx2.AsyncClient(transport=api.transport())
    async with AsyncOpenAI(api_key="none", http_client=http) as client:
        model = OpenAIResponsesModel(GPT, client)
        session = SQLiteSession("talk")
        for _ in range(TURNS):
            await Runner.run(agent(model), talk.say(), session=session)
    return Played(talk.requests, api.searches)


async def openai_toolgate(client: Client, folder: Path, **options: Any) -> Played:
    """Toolgate in the OpenAI Agents SDK, over Responses."""
    talk = SearchingTalk()
    async with openai_agents_talk.serving(commands(folder)) as servers:
        conversation = await Conversation.from_mcp(client, servers, **options)
        return await converse(
            talk,
            ResponsesApi(talk),
            lambda model: conversation.agent(Agent(name="desk", model=model)),
        )


async def openai_functions(setting: Setting) -> Played:
    """Deferred functions, each by itself."""
    return await _openai_search(setting, has_namespaces=False)


async def openai_namespaces(setting: Setting) -> Played:
    """Deferred functions in namespaces, one for each MCP server."""
    return await _openai_search(setting, has_namespaces=True)


async def _openai_search(setting: Setting, *, has_namespaces: bool) -> Played:
    talk = SearchingTalk()
    async with openai_agents_talk.serving(commands(setting.folder)) as servers:
        tools: list[FunctionTool] = []
        for name, server in servers.items():
            prefix = "" if has_namespaces else f"mcp__{name}__"
            own = [
                replace(
                    MCPUtil.to_function_tool(
                        tool, server, False, tool_name_override=prefix + tool.name
                    ),
                    defer_loading=True,
                )
                for tool in await server.list_tools()
            ]
            told = f"Tools of {name}, such as {', '.join(tool.name for tool in own[:3])}."
            tools += (
                tool_namespace(name=name, description=told, tools=own) if has_namespaces else own
            )
        return await converse(
            talk,
            ResponsesApi(talk),
            lambda model: Agent(name="desk", model=model, tools=[*tools, ToolSearchTool()]),
        )


async def pydantic_words(setting: Setting) -> Played:
    """Pydantic AI's own search, by words, for a model whose provider has none."""
    talk = SearchingTalk()
    http = httpx2.AsyncClient(transport=talk.transport())
    async with AsyncOpenAI(api_key="none", http_client=http) as api:
        model = OpenAIChatModel("gpt", provider=OpenAIProvider(openai_client=api))
        return await _pydantic_search(setting, talk, model)


async def pydantic_anthropic(setting: Setting) -> Played:
    """Pydantic AI with Anthropic's search."""
    talk = SearchingTalk()
    with serving(MessagesApi(talk)) as api:
        provider = AnthropicProvider(api_key="none", base_url=api.url)
        # Longer answers would be streamed.
        model = AnthropicModel(CLAUDE, provider=provider, settings={"max_tokens": 1_000})
        played = await _pydantic_search(setting, talk, model)
        return replace(played, hosted=searches_of(api))


async def _pydantic_search(setting: Setting, talk: SearchingTalk, model: Model) -> Played:
    async with AsyncExitStack() as stack:
        servers = {
            name: await stack.enter_async_context(
                MCPToolset[None](StdioTransport(sys.executable, arguments), init_timeout=60)
            )
            for name, arguments in commands(setting.folder).items()
        }
        tools = [
            server.prefixed(f"mcp__{name}_").defer_loading() for name, server in servers.items()
        ]
        agent = PydanticAgent(model, toolsets=tools, capabilities=[ToolSearch()])
        history: list[ModelMessage] = []
        for _ in range(TURNS):
            history = (await agent.run(talk.say(), message_history=history)).all_messages()
    return Played(talk.requests)


async def langchain_selector(setting: Setting) -> Played:
    """LangChain's middleware that asks a model which tools to define."""
    talk = SearchingTalk()
    async with langchain_tools(setting.folder) as tools:
        await _langchain(talk, TalkingModel(talk), tools, LLMToolSelectorMiddleware())
    return Played(talk.requests)


async def langchain_toolgate(client: Client, folder: Path, **options: Any) -> Played:
    """Toolgate in LangChain, with Anthropic's API at the provider's own host."""
    talk = SearchingTalk()
    with serving(MessagesApi(talk)) as api:
        # The script stands in for the provider as a proxy: `native` is for the own host alone.
        model = ChatAnthropic(
            model_name=CLAUDE,
            api_key=SecretStr("none"),
            base_url="http://api.anthropic.com",
            anthropic_proxy=api.url,
            timeout=60,
            stop=None,
        )
        async with sessions(commands(folder)) as servers:
            middleware = await ToolgateMiddleware.from_mcp(client, servers, **options)
            await _langchain(talk, model, [], middleware)
    return Played(talk.requests)


async def langchain_anthropic_search(setting: Setting) -> Played:
    """LangChain's middleware for the searches of providers, with Anthropic's."""
    talk = SearchingTalk()
    async with langchain_tools(setting.folder) as tools:
        with serving(MessagesApi(talk)) as api:
            key = SecretStr("none")
            model = ChatAnthropic(
                model_name=CLAUDE, api_key=key, base_url=api.url, timeout=60, stop=None
            )
            middleware = ProviderToolSearchMiddleware(searchable_tools=[*tools])
            await _langchain(talk, model, tools, middleware)
            return Played(talk.requests, searches_of(api))


def searches_of(api: Any) -> int:
    """The searches that a scripted Messages API executed."""
    assert isinstance(api, MessagesApi)
    return api.searches


@asynccontextmanager
async def langchain_tools(folder: Path) -> AsyncIterator[list[BaseTool]]:
    """The tools of the MCP servers, as LangChain has them."""
    servers: Any = {
        name: {"transport": "stdio", "command": sys.executable, "args": arguments}
        for name, arguments in commands(folder).items()
    }
    client = MultiServerMCPClient(servers)
    async with AsyncExitStack() as stack:
        tools: list[BaseTool] = []
        for name in servers:
            session = await stack.enter_async_context(client.session(name))
            for tool in await load_mcp_tools(session):
                tools.append(tool.model_copy(update={"name": f"mcp__{name}__{tool.name}"}))
        yield tools


async def _langchain(
    talk: SearchingTalk,
    model: BaseChatModel,
    tools: list[BaseTool],
    middleware: AgentMiddleware[Any, Any, Any],
) -> None:
    agent = create_agent(model, tools=tools, middleware=[middleware], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    for _ in range(TURNS):
        await agent.ainvoke({"messages": [HumanMessage(talk.say())]}, thread)


async def langgraph_bigtool(setting: Setting) -> Played:
    """langgraph-bigtool over a store with the embeddings of Toolgate's model as it is."""
    talk = SearchingTalk()
    # bigtool 0.0.3 calls a method that langgraph 1 has no more; none of these tools has
    # arguments that it would fill in.
    ToolNode.inject_tool_args = lambda _node, call, *_: call  # type: ignore[attr-defined]
    bigtool = importlib.import_module("langgraph_bigtool")
    async with langchain_tools(setting.folder) as listed:
        with encoder(setting.binary) as embed:
            index: Any = {"dims": 384, "embed": embed, "fields": ["description"]}
            store = InMemoryStore(index=index)
            for tool in listed:
                told = {"description": f"{tool.name}: {tool.description}"}
                store.put(("tools",), tool.name, told)
            graph = bigtool.create_agent(TalkingModel(talk), {tool.name: tool for tool in listed})
            agent = graph.compile(store=store, checkpointer=InMemorySaver())
            thread: Any = {"configurable": {"thread_id": "1"}}
            for _ in range(TURNS):
                await agent.ainvoke({"messages": [HumanMessage(talk.say())]}, thread)
    return Played(talk.requests)


@contextmanager
def encoder(binary: Path) -> Iterator[Callable[[Sequence[str]], list[list[float]]]]:
    """A function that embeds texts with Toolgate's default model, without the adapter for tools."""
    options = ["--device=cpu", "--adapter=none", "--log-format=json"]
    ports = ["--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"]
    worker = subprocess.Popen(
        [binary, "encoder-worker", *options, *ports], stderr=subprocess.PIPE, text=True
    )
    try:
        assert worker.stderr is not None
        events = (json.loads(line) for line in worker.stderr)
        address = next(str(one["grpc"]) for one in events if one.get("message") == "listening")
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=60)
            stub = encoder_pb2_grpc.EncoderServiceStub(channel)
            wait_until(lambda: is_ready(stub), "the encoder worker did not get ready")
            yield lambda texts: embeddings(stub, texts)
    finally:
        worker.terminate()
        worker.wait(timeout=60)


def is_ready(stub: encoder_pb2_grpc.EncoderServiceStub) -> bool:
    """Tells whether the worker has loaded its model."""
    try:
        stub.Embed(encoder_pb2.EmbedRequest(texts=["ready?"]), timeout=60)
    except grpc.RpcError:
        return False
    return True


def embeddings(
    stub: encoder_pb2_grpc.EncoderServiceStub, texts: Sequence[str]
) -> list[list[float]]:
    """The embeddings of texts."""
    found: list[list[float]] = []
    for start in range(0, len(texts), ENCODED):
        asked = encoder_pb2.EmbedRequest(texts=texts[start : start + ENCODED])
        answer = stub.Embed(asked, timeout=60, wait_for_ready=True)
        numbers = array.array("f", answer.embeddings)
        size = answer.dimensions
        found += [list(numbers[at : at + size]) for at in range(0, len(numbers), size)]
    return found


async def ai_sdk(setting: Setting) -> Played:
    """`toolSearch` of the Vercel AI SDK, version 7."""
    nobody = "127.0.0.1:1"
    return Played(node_talk.play("ai-search-talk", nobody, "", setting.folder))
