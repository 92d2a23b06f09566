"""The conversation: routes before the model, shows it the active set, gates its calls after it."""

import copy
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar, Unpack

from agents import (
    Agent,
    FunctionTool,
    Handoff,
    Model,
    ModelResponse,
    MultiProvider,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunContextWrapper,
    Tool,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
)
from agents.items import TResponseStreamEvent
from agents.mcp import MCPServer
from agents.tool_context import ToolContext
from openai.types.responses import ResponseCompletedEvent, ResponseFunctionToolCall

from toolgate._agents import (
    OPENAI_TOOLS,
    REFUSED_CALL,
    SEARCH,
    Turns,
    Verdict,
    checked_grants,
    checked_strategy,
    no_such_tool,
    opened,
    refuse_arguments,
    system_tokens,
    tell_many,
    tell_own,
)
from toolgate._endpoints import Endpoint
from toolgate._requests import RegisterArguments, RouteArguments
from toolgate.aio import AsyncClient
from toolgate.client import Client
from toolgate.enums import PromptStrategy
from toolgate.gating import Call
from toolgate.offering import SEARCH_TOOL
from toolgate.openai_agents import _items
from toolgate.openai_agents._mcp import GivenTools, McpTools
from toolgate.openai_agents._tools import own_definitions, refuse_unprepared, sent_tools
from toolgate.rendering import ModelRequest
from toolgate.report import Report

_LOG = logging.getLogger("toolgate.openai_agents")

Grants = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
Context = TypeVar("Context")


class Conversation:
    """One conversation, whose model sees the active set of each turn and calls what Gate allows.

        conversation = Conversation(client, tools)
        result = await Runner.run(conversation.agent(agent), "...", session=session)

    Each model call is routed by the user's last message and, within a turn, by what the last tool
    answered. Calls that may not run are answered with the refusal, in words for the model, so that
    it can correct itself; so are calls of names that no tool has, which the run's items show as
    calls of `toolgate_refused_call`. Where tools are deferred, the model also sees a search for
    them. Make one for each conversation and use it for its runs, one after another; `snapshot()` is
    what to keep of it.

    When Toolgate can't be reached, the model keeps the active set that it has, or sees all tools;
    calls are refused until they can be checked.
    """

    def __init__(
        self,
        client: Client | AsyncClient,
        tools: Sequence[FunctionTool] | McpTools,
        *,
        grants: Grants | None = None,
        search: bool = True,
        count_tokens: Callable[[_items.Items], int] | None = _items.tokens,
        snapshot: Mapping[str, Any] | None = None,
        strategy: PromptStrategy | str = "auto",
        **route: Unpack[RouteArguments],
    ) -> None:
        """Takes over the tools that the agent has from MCP servers.

        Args:
            client: Blocking, which is called in a thread; or asynchronous, when all runs are in its
                event loop.
            tools: All tools that Toolgate manages, under model-facing names (`model_facing`), or
                those of MCP servers (`McpTools`), among which turns are then routed alone. Don't
                give them to the agent too. Tools given there are always shown and never gated.
            grants: The agent's `scopes`, `milestones` and `attributes`, which no history can say: a
                mapping, or a function asked before each model call. Default: none.
            search: True if the model may search for tools that it does not see (`SEARCH_TOOL`).
                Without, no tool is deferred, unless `deferral` says otherwise.
            count_tokens: Counts the tokens of the items. Route is told (`history_tokens`), and
                changes the set only where that is worth its price. Default: an estimate, a token
                for four bytes of text. None: not told; with a strategy Route estimates it then.
            snapshot: The value of `snapshot()`. None: a new conversation.
            strategy: The way of tools into requests. "auto": Route chooses, by what costs least;
                "cut" without `search`. "envelope": `tools` stay the same from turn to turn, and so
                does the provider's cache of the conversation; this turn's tools are described at
                the end of the messages of this request, and called through `toolgate_call_tool`.
                The session has neither: calls are kept under the tools' own names. "cut": the
                active set stands in `tools`, and a change of it costs the cached prefix. "pass":
                all tools, in `tools`. "native": tools are added amid the items, as OpenAI's
                Responses alone take them (`OpenAIResponsesModel`); with `model`, an argument of
                `route`, on Route's list of those that don't, "envelope".
            **route: Further arguments of `route`, such as `top_k` or `servers`.

        Raises:
            TypeError: an argument that `route` does not have or that is filled in by itself, or
                grants with other keys.
            ValueError: tools under other names than model-facing ones, or no such strategy.
        """
        own = ("grants", "search", "count_tokens", "snapshot", "strategy")
        refuse_arguments("Conversation", route, own)
        self._strategy = checked_strategy(strategy, search=search, native=True)
        if not callable(grants):
            checked_grants(grants)
        self._mcp = tools if isinstance(tools, McpTools) else None
        self._given = [] if isinstance(tools, McpTools) else list(tools)
        self._search = search
        self._names: set[str] = set()
        self._tools: list[Tool] = []
        self._taken: list[FunctionTool] = []
        self._take_over()
        self._grants = grants
        self._count_tokens = count_tokens
        served = None if self._mcp is None else self._mcp.served
        if served is not None:
            route.setdefault("servers", served.names)
        self._turns = Turns(client, route, search=search, log=_LOG, served=served)
        self._verdicts: dict[str, Verdict] = {}
        if snapshot is not None:
            self._turns.resume(snapshot)

    @classmethod
    async def from_mcp(
        cls,
        client: Client | AsyncClient,
        servers: Mapping[str, MCPServer],
        *,
        register: Mapping[str, RegisterArguments] | None = None,
        **options: Any,
    ) -> Self:
        """Lists the tools of MCP servers, registers them as listed, and takes them over.

            async with MCPServerStdio({"command": "uvx", "args": ["mcp-server-git"]}) as git:
                conversation = await Conversation.from_mcp(client, {"git": git})
                result = await Runner.run(conversation.agent(agent), "...", session=session)

        Where there are many conversations, `McpTools` serves all of them.

        Args:
            client: The client of Toolgate; see the constructor.
            servers: Connected servers, by their names in the catalog; see `McpTools.load`.
            register: Further arguments of `register_server` by the server's name.
            **options: Arguments of the constructor.

        Raises:
            ValueError: arguments for a server that is not among them.
            ToolgateError: a registration failed.
        """
        return cls(client, await McpTools.load(client, servers, register), **options)

    @classmethod
    async def from_tools(
        cls,
        client: Client | AsyncClient,
        servers: Mapping[str, Iterable[FunctionTool]],
        *,
        register: Mapping[str, RegisterArguments] | None = None,
        **options: Any,
    ) -> Self:
        """Registers function tools of one's own with their schemas, and takes them over.

            conversation = await Conversation.from_tools(client, {"notes": [find_notes]})

        Args:
            client: The client of Toolgate; see the constructor.
            servers: The tools, such as `@function_tool` makes, by the name of the server that they
                are to have in the catalog. Don't give them to the agent too.
            register: Further arguments of `register_server` by the server's name.
            **options: Arguments of the constructor. Turns are routed among these tools alone.

        Raises:
            ValueError: arguments for a server that is not among them.
            ToolgateError: a registration failed.
        """
        tools = GivenTools(client, servers, register)
        await tools.refresh()
        return cls(client, tools, **options)

    async def refresh(self) -> None:
        """Lists the MCP servers again; see `McpTools.refresh`.

        Raises:
            TypeError: the conversation has no `McpTools`.
            ToolgateError: a registration failed.
        """
        if self._mcp is None:
            raise TypeError("only a conversation with McpTools can be refreshed")
        await self._mcp.refresh()

    def _take_over(self) -> None:
        """Takes the tools that there are now."""
        tools = self._given if self._mcp is None else self._mcp.tools
        refuse_unprepared(tools)
        self._taken = tools
        self._names = {tool.name for tool in tools}
        self._tools = [*map(self._gated, tools), self._refusing_tool()]
        if self._search:
            self._tools.append(self._search_tool())

    def agent(self, agent: Agent[Context]) -> Agent[Context]:
        """A copy of the agent for this conversation, whose model sees the active set.

        A `model` in the `RunConfig` would be asked instead of the agent's: leave it out there.

        Args:
            agent: The agent; it may be shared by all conversations.

        Raises:
            ValueError: the strategy is "native", and the agent's model is asked otherwise than by
                OpenAI's Responses.
        """
        self._take_over()
        named = agent.model
        model = named if isinstance(named, Model) else MultiProvider().get_model(named)
        if self._strategy == PromptStrategy.NATIVE and not isinstance(model, OpenAIResponsesModel):
            raise ValueError(
                'strategy "native" needs OpenAI\'s Responses (OpenAIResponsesModel), not '
                f'{type(model).__name__}: take "auto", "cut", "envelope" or "pass"'
            )
        own = list(agent.tools)
        gated = agent.clone(
            tools=[*own, *self._tools],
            model=_Gated(model, self),
            model_settings=agent.model_settings,
        )
        if self._mcp is None:
            return gated
        served, listed = self._mcp, gated.get_all_tools

        async def followed(run_context: RunContextWrapper[Any]) -> list[Tool]:
            """The agent's tools, asked for before each request to the model."""
            await served.follow()
            if served.tools is not self._taken:
                self._take_over()
                gated.tools = [*own, *self._tools]
            return await listed(run_context)

        gated.get_all_tools = followed  # type: ignore[method-assign]
        return gated

    def snapshot(self) -> dict[str, Any]:
        """Returns what to keep between processes, beside the messages: a JSON object."""
        return self._turns.snapshot()

    def report(self) -> Report:
        """Reports the costs of the conversation so far, beside its alternatives."""
        return self._turns.report()

    @property
    def _counts(self) -> bool:
        """Returns True if Route is told of tokens."""
        return self._count_tokens is not None

    async def _shown(
        self,
        items: _items.Items,
        tools: list[Tool],
        handoffs: Sequence[Handoff],
        endpoint: Endpoint,
        *,
        is_openai: bool,
        is_kept_there: bool,
    ) -> "_Shown":
        """Routes; what the model is shown.

        The agent's own tools come first, then the active set in its order, so that caches hold.

        Args:
            items: The messages.
            tools: All tools of the agent, those of its MCP servers too.
            handoffs: The handoffs, which are sent as tools beside them.
            endpoint: The model that is asked.
            is_openai: True if OpenAI is asked, which fails a request with more than 128 tools: the
                last of the active set are left out.
            is_kept_there: True if the provider keeps the messages before these.
        """
        managed = {tool.name: tool for tool in tools if tool.name in self._names | {SEARCH}}
        own = [tool for tool in tools if tool.name not in {*managed, REFUSED_CALL}]
        tell_own(_LOG, tuple(sorted(tool.name for tool in own)))
        request = await self._routed(items, own, handoffs, endpoint, is_kept_there=is_kept_there)
        if request is None:
            order = self._turns.active if self._turns.active is not None else list(managed)
            active = [managed[n] for n in order if n in managed and self._turns.shows(n)]
        else:
            items = request.messages
            active = sent_tools(request.tools, managed)
        count = len(own) + len(handoffs)
        room = max(0, OPENAI_TOOLS - count) if is_openai else len(active)
        tell_many(_LOG, count + len(active), len(active[room:]))
        return _Shown(items, [*own, *active[:room]])

    async def _routed(
        self,
        items: _items.Items,
        own: Sequence[Tool],
        handoffs: Sequence[Handoff],
        endpoint: Endpoint,
        *,
        is_kept_there: bool,
    ) -> ModelRequest | None:
        """Routes; the request of the strategy, where there is one and it can be used."""
        tokens = None if self._count_tokens is None else self._count_tokens(items)
        intents = _items.intents(items)
        uses_strategy = self._strategy is not None and not is_kept_there
        whole = _items.whole(items) if uses_strategy else None
        if whole is None:
            self._turns.read(_items.entries(items), self._granted())
            return await self._turns.turn(intents, tokens, endpoint)
        self._turns.read(whole, self._granted())
        own_tools = own_definitions(own, handoffs)
        render = endpoint.render(self._strategy, search_tool=self._search, own_tools=own_tools)
        return await self._turns.turn(intents, tokens, endpoint, render)

    async def _gate(self, output: Sequence[Any], known: Collection[str]) -> None:
        """Gates the calls of a model's answer, all at once.

        Args:
            output: The answer's items, whose calls are put right.
            known: The names that the SDK has something to call for.
        """
        items = [item for item in output if self._is_ours(item, known)]
        calls = [Call(item.name, item.arguments, item.call_id) for item in items]
        verdicts = await self._turns.gate(calls, self._names)
        self._verdicts = {}
        for item, verdict in zip(items, verdicts, strict=True):
            self._verdicts[item.call_id] = verdict
            if verdict.tool:
                item.name = verdict.tool
                # Those that came otherwise than as a JSON object are put right.
                item.arguments = verdict.arguments_json or item.arguments
                continue
            held = opened(item.name, item.arguments)
            if held is not None:
                item.name, item.arguments = held.tool, str(held.arguments)
            if item.name not in self._names:
                # The SDK ends a run whose model calls a tool that is not there.
                item.arguments = json.dumps({"tool": item.name}, ensure_ascii=False)
                item.name = REFUSED_CALL

    def _is_ours(self, item: Any, known: Collection[str]) -> bool:
        """Returns True if Gate decides on a call: on all but those of the agent's own tools."""
        if not isinstance(item, ResponseFunctionToolCall):
            return False
        # Names in a namespace are of tools that the provider found.
        is_foreign = item.name not in known and not getattr(item, "namespace", None)
        return item.name in self._names or is_foreign

    def _granted(self) -> Mapping[str, Any]:
        return checked_grants(self._grants() if callable(self._grants) else self._grants)

    def _gated(self, tool: FunctionTool) -> FunctionTool:
        guarded = copy.copy(tool)
        guard = ToolInputGuardrail[Any](self._refuse, name="toolgate")
        guarded.tool_input_guardrails = [guard, *(tool.tool_input_guardrails or ())]
        return guarded

    async def _refuse(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        asked = data.context
        verdict = self._verdicts.get(asked.tool_call_id)
        if verdict is None:  # A call that waited for an approval elsewhere, and is made now.
            self._turns.read((), self._granted())
            call = Call(asked.tool_name, asked.tool_arguments, asked.tool_call_id)
            (verdict,) = await self._turns.gate([call], self._names)
        if verdict.refusal:
            return ToolGuardrailFunctionOutput.reject_content(verdict.refusal)
        return ToolGuardrailFunctionOutput.allow()

    def _refusing_tool(self) -> FunctionTool:
        async def refuse(asked: ToolContext[Any], _arguments: str) -> str:
            verdict = self._verdicts.get(asked.tool_call_id)
            return verdict.refusal if verdict else no_such_tool(REFUSED_CALL)

        return FunctionTool(
            name=REFUSED_CALL,
            description="Answers calls of tools that are not there.",
            params_json_schema={"type": "object"},
            on_invoke_tool=refuse,
            strict_json_schema=False,
        )

    def _search_tool(self) -> FunctionTool:
        async def search(asked: ToolContext[Any], arguments: str) -> str:
            call = Call(SEARCH, arguments, asked.tool_call_id)
            text, _failed = await self._turns.search(call, self._names)
            return text

        return FunctionTool(
            name=SEARCH_TOOL.model_name,
            description=SEARCH_TOOL.description,
            params_json_schema=SEARCH_TOOL.input_schema,
            on_invoke_tool=search,
            strict_json_schema=False,
        )


@dataclass(frozen=True, slots=True)
class _Shown:
    """Tools and messages that a request shows to the model."""

    items: Any
    tools: list[Tool]


class _Gated(Model):
    """The agent's model, which is shown the active set and whose calls are gated."""

    def __init__(self, model: Model, conversation: Conversation) -> None:
        self._model = model
        self._conversation = conversation

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002
        model_settings: Any,
        tools: list[Tool],
        output_schema: Any,
        handoffs: list[Handoff],
        *rest: Any,
        **named: Any,
    ) -> ModelResponse:
        shown = await self._shown(system_instructions, input, tools, handoffs, named)
        response = await self._model.get_response(
            *(system_instructions, shown.items, model_settings, shown.tools),
            *(output_schema, handoffs),
            *rest,
            **named,
        )
        await self._conversation._gate(response.output, _known(tools, output_schema, handoffs))
        return response

    async def stream_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002
        model_settings: Any,
        tools: list[Tool],
        output_schema: Any,
        handoffs: list[Handoff],
        *rest: Any,
        **named: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        shown = await self._shown(system_instructions, input, tools, handoffs, named)
        known = _known(tools, output_schema, handoffs)
        async for event in self._model.stream_response(
            *(system_instructions, shown.items, model_settings, shown.tools),
            *(output_schema, handoffs),
            *rest,
            **named,
        ):
            if isinstance(event, ResponseCompletedEvent):
                await self._conversation._gate(event.response.output, known)
            yield event

    async def _shown(
        self,
        instructions: str | None,
        items: _items.Items,
        tools: list[Tool],
        handoffs: Sequence[Handoff],
        named: Mapping[str, Any],
    ) -> "_Shown":
        kept_there = (named.get("previous_response_id"), named.get("conversation_id"))
        said = [instructions or ""] if self._conversation._counts else []
        return await self._conversation._shown(
            items,
            tools,
            handoffs,
            replace(_endpoint(self._model), system_tokens=system_tokens(said)),
            is_openai=_is_openai(self._model),
            is_kept_there=any(kept_there),
        )

    async def close(self) -> None:
        await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self._model.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model._cleanup_on_run_end(owner)


def _endpoint(model: Model) -> Endpoint:
    """Reads the model that is asked. The SDK has items of Responses, whichever API they go to."""
    named = getattr(model, "model", "")
    url = getattr(getattr(model, "_client", None), "base_url", None) or ""
    return Endpoint(
        api="openai_responses",
        model=named if isinstance(named, str) else "",
        base_url=str(url or getattr(model, "base_url", None) or ""),
        carries_native=isinstance(model, OpenAIResponsesModel),
    )


def _is_openai(model: Model) -> bool:
    """Returns whether a model is surely asked of OpenAI, not of a service with the same API."""
    if not isinstance(model, OpenAIResponsesModel | OpenAIChatCompletionsModel):
        return False
    url = getattr(getattr(model, "_client", None), "base_url", None)
    host = getattr(url, "host", "")
    return host == "api.openai.com" or host.endswith(".api.openai.com")


def _known(tools: Sequence[Tool], output_schema: Any, handoffs: Sequence[Handoff]) -> set[str]:
    """Returns the names that the SDK has something to call for."""
    # LiteLLM writes an answer of a type as a call of this name.
    output = {"json_tool_call"} if output_schema is not None else set()
    return {*(tool.name for tool in tools), *(handoff.tool_name for handoff in handoffs), *output}
