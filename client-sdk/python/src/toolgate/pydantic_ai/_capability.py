"""The capability: routes before the model, shows it the active set, gates its calls after it."""

import copy
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, Unpack

from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset

from toolgate._agents import (
    CALL_TOOL,
    REFUSED_CALL,
    SEARCH,
    Turns,
    Verdict,
    checked_grants,
    checked_strategy,
    is_model_facing,
    no_such_tool,
    opened,
    refuse_arguments,
    tell_many,
    tell_own,
)
from toolgate._endpoints import Endpoint
from toolgate._forms import Additions, added, formed, own_form
from toolgate._requests import RegisterArguments, RouteArguments
from toolgate._served import ServedTools
from toolgate._tally import Tally
from toolgate.aio import AsyncClient
from toolgate.client import Client
from toolgate.enums import PromptStrategy
from toolgate.gating import Call
from toolgate.offering import SEARCH_TOOL
from toolgate.pydantic_ai import _messages
from toolgate.pydantic_ai._endpoint import endpoint_of
from toolgate.pydantic_ai._mcp import GivenToolset, McpToolset, given_toolset, refuse_other
from toolgate.pydantic_ai._toolset import (
    ManagedToolset,
    defined_name,
    own_definitions,
    sent_tools,
)
from toolgate.rendering import ModelRequest
from toolgate.report import Report

_LOG = logging.getLogger("toolgate.pydantic_ai")
_KEPT = "toolgate"
"""Where a response's metadata holds the handle and the active set."""

Grants = Mapping[str, Any] | Callable[[RunContext[Any]], Mapping[str, Any]]
RawArguments = str | dict[str, Any]


class Toolgate(AbstractCapability[Any]):
    """Shows the model the active set of its turn, and lets only calls run that Gate allows.

        agent = Agent(model, capabilities=[Toolgate(client, toolset)])

    Each model request is routed by the user's last prompt and, within a turn, by what the last tool
    answered. Calls that may not run fail with the refusal, in words for the model, so that it can
    correct itself; no retry is counted. So do calls of names that no tool has, which the messages
    show as calls of `toolgate_refused_call`. Where tools are deferred, the model also sees a search
    for them. Everything that a conversation needs is in its messages: one instance serves any
    number of them, and a run with `message_history=` goes on where the last one ended.

    When Toolgate can't be reached, the model keeps the active set that it has, or sees all tools;
    calls are refused until they can be checked.
    """

    def __init__(
        self,
        client: Client | AsyncClient,
        toolset: AbstractToolset[Any] | Sequence[AbstractToolset[Any]],
        *,
        grants: Grants | None = None,
        search: bool = True,
        count_tokens: Callable[[Sequence[ModelMessage]], int] | None = _messages.tokens,
        strategy: PromptStrategy | str = "auto",
        **route: Unpack[RouteArguments],
    ) -> None:
        """Takes over the tools that the agent has from MCP servers.

        Args:
            client: Blocking, which is called in a thread; or asynchronous, when all runs are in its
                event loop.
            toolset: All tools that Toolgate manages, under model-facing names (`model_facing`).
                Don't give them to the agent too. Tools given there are always shown and never
                gated.
            grants: The agent's `scopes`, `milestones` and `attributes`, which no history can say: a
                mapping, or a function of the run's context. Default: none.
            search: True if the model may search for tools that it does not see (`SEARCH_TOOL`).
                Without, no tool is deferred, unless `deferral` says otherwise.
            count_tokens: Counts the tokens of the messages. Route is told (`history_tokens`), and
                changes the set only where that is worth its price. Default: an estimate, a token
                for four bytes of text. None: not told; with a strategy Route estimates it then.
            strategy: The way of tools into requests. "auto": Route chooses, by what costs least;
                "cut" without `search`. "envelope": `tools` stay the same from turn to turn, and so
                does the provider's cache of the conversation; this turn's tools are described at
                the end of the messages of this request, and called through `toolgate_call_tool`.
                The run's messages have neither: calls are kept under the tools' own names. "cut":
                the active set stands in `tools`, and a change of it costs the cached prefix.
                "pass": all tools, in `tools`.
            **route: Further arguments of `route`, such as `top_k` or `servers`.

        Raises:
            TypeError: an argument that `route` does not have or that is filled in by itself, or
                grants with other keys.
            ValueError: no such strategy.
        """
        refuse_arguments("Toolgate", route, ("grants", "search", "count_tokens", "strategy"))
        self._strategy = checked_strategy(strategy, search=search)
        if not callable(grants):
            checked_grants(grants)
        self._client = client
        self._given = toolset
        self._grants = grants
        self._search = search
        self._count_tokens = count_tokens
        self._route = route
        self._served: ServedTools | None = None
        self._begin()

    @classmethod
    def from_mcp(
        cls,
        client: Client | AsyncClient,
        servers: Mapping[str, AbstractToolset[Any]],
        *,
        register: Mapping[str, RegisterArguments] | None = None,
        **options: Any,
    ) -> Self:
        """Takes over the tools of MCP servers, which each run registers as the servers list them.

            git = MCPToolset(StdioTransport("uvx", ["mcp-server-git"]))
            agent = Agent(model, capabilities=[Toolgate.from_mcp(client, {"git": git})])

        A server that can't be reached is left out of the run with a warning. Tools that are
        rejected or wait for approval are left out with one each. If the service loses its catalog,
        the servers are registered again. When a server says that its tools changed
        (`notifications/tools/list_changed`), the next model request has them.

        Args:
            client: The client of Toolgate; see the constructor.
            servers: `MCPToolset`s by the servers' names in the catalog, also filtered ones or ones
                that ask for approval, but under their own tools' names. Don't give them to the
                agent too.
            register: Further arguments of `register_server` by the server's name, such as
                `{"git": {"required_scopes": ["repo"]}}`. A run whose registration fails raises
                `ToolgateError`.
            **options: Arguments of the constructor. Turns are routed among these servers alone.

        Raises:
            ValueError: a toolset that is not of one MCP server, or arguments for a server that is
                not among them.
        """
        refuse_other(dict(servers))
        served = ServedTools(client, servers, register, _LOG)
        toolsets = [McpToolset(toolset, name, served) for name, toolset in servers.items()]
        return cls._of_served(client, toolsets, served, options)

    @classmethod
    def from_tools(
        cls,
        client: Client | AsyncClient,
        servers: Mapping[str, AbstractToolset[Any] | Iterable[Any]],
        *,
        register: Mapping[str, RegisterArguments] | None = None,
        **options: Any,
    ) -> Self:
        """Takes over tools of one's own, which each run registers with their schemas.

            toolgate = Toolgate.from_tools(client, {"notes": [find_notes]})
            agent = Agent(model, capabilities=[toolgate])

        Args:
            client: The client of Toolgate; see the constructor.
            servers: Functions, `Tool`s or a toolset, by the name of the server that they are to
                have in the catalog. Don't give them to the agent too.
            register: Further arguments of `register_server` by the server's name.
            **options: Arguments of the constructor. Turns are routed among these tools alone.

        Raises:
            ValueError: arguments for a server that is not among them.
        """
        served = ServedTools(client, servers, register, _LOG)
        toolsets = [
            GivenToolset(given_toolset(tools), name, served) for name, tools in servers.items()
        ]
        return cls._of_served(client, toolsets, served, options)

    @classmethod
    def _of_served(
        cls,
        client: Client | AsyncClient,
        toolsets: Sequence[AbstractToolset[Any]],
        served: ServedTools,
        options: dict[str, Any],
    ) -> Self:
        options.setdefault("servers", served.names)
        toolgate = cls(client, toolsets, **options)
        toolgate._served = served
        toolgate._begin()
        return toolgate

    def _begin(self) -> None:
        """Sets what belongs to one run."""
        self._turns = Turns(
            self._client, self._route, search=self._search, log=_LOG, served=self._served
        )
        self._verdicts: dict[str, Verdict] = {}
        given = self._given
        toolset = given if isinstance(given, AbstractToolset) else CombinedToolset(list(given))
        self._managed = ManagedToolset(toolset)

    async def for_run(self, ctx: RunContext[Any]) -> "Toolgate":
        """An instance for this run, which goes on where the messages say."""
        run = copy.copy(self)
        run._begin()
        run._resume(ctx.messages)
        return run

    @staticmethod
    def report(messages: Sequence[ModelMessage]) -> Report:
        """Returns what a conversation cost so far, beside its alternatives.

        Args:
            messages: Its messages, such as `result.all_messages()`.
        """
        return Tally(_kept(messages).get("tally")).report()

    def get_toolset(self) -> AbstractToolset[Any]:
        """The managed tools, the search, and what answers calls of tools that are not there."""
        refusing = Tool.from_schema(
            self._answer_refused,
            REFUSED_CALL,
            "Answers calls of tools that are not there.",
            {"type": "object"},
            takes_ctx=True,
        )
        search = Tool.from_schema(
            self._answer_search,
            SEARCH_TOOL.model_name,
            SEARCH_TOOL.description,
            SEARCH_TOOL.input_schema,
            takes_ctx=True,
        )
        served = [refusing, search] if self._search else [refusing]
        return CombinedToolset([FunctionToolset(served), self._managed])

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Routes, and shows the model the active set."""
        parameters = request_context.model_request_parameters
        managed, own = self._parted(parameters.function_tools)
        messages = request_context.messages
        endpoint = endpoint_of(request_context.model)
        if self._count_tokens is not None:
            endpoint = replace(endpoint, system_tokens=_messages.system_tokens(messages))
        before = None if self._strategy is None else _messages.whole(messages)
        request = additions = None
        if before is None:
            await self._routed(ctx, _messages.entries(ctx.messages), endpoint, None)
        else:
            sent = formed(before, endpoint.api)
            definitions = own_definitions([*own, *parameters.output_tools])
            own_tools = own_form(definitions, endpoint.api)
            request = await self._routed(ctx, sent.items, endpoint, own_tools)
            additions = None if request is None else added(request, sent)
        if request is None or additions is None:
            shown = self._shown(managed)
        else:
            shown = sent_tools(request.tools, managed)
            messages = self._with_additions(messages, request, additions)
        tell_many(_LOG, len(own) + len(shown) + len(parameters.output_tools))
        return replace(
            request_context,
            messages=messages,
            model_request_parameters=replace(parameters, function_tools=[*own, *shown]),
        )

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Sends the tools that came amid the run as the others, where the kill switch is thrown.

        The framework itself defers them and adds them amid the messages, for models that take it.
        """
        if not self._turns.is_killed:
            return request_context
        parameters = request_context.model_request_parameters
        whole = replace(parameters, introduced_tool_names=set())
        return replace(request_context, model_request_parameters=whole)

    def _with_additions(
        self, messages: Sequence[ModelMessage], request: ModelRequest, additions: Additions
    ) -> list[ModelMessage]:
        """The messages to send; with calls as the model made them, where it had an envelope."""
        defined = {defined_name(tool) for tool in request.tools}
        is_enveloped = request.strategy is PromptStrategy.ENVELOPE

        def wraps(name: str) -> bool:
            ours = name in self._managed.names or is_model_facing(name)
            return is_enveloped and ours and name not in defined

        return _messages.with_additions(messages, additions.texts, wraps)

    async def _routed(
        self,
        ctx: RunContext[Any],
        entries: Iterable[dict[str, Any]],
        endpoint: Endpoint,
        own: list[dict[str, Any]] | None,
    ) -> ModelRequest | None:
        """Routes; the request of the strategy, if there is one.

        Args:
            ctx: The run's context.
            entries: The messages.
            endpoint: The model that is asked.
            own: The definitions before Toolgate's, for the strategy; None: without one.
        """
        render = None
        if own is not None:
            render = endpoint.render(self._strategy, search_tool=self._search, own_tools=own)
        self._turns.read(entries, self._granted(ctx))
        tokens = None if self._count_tokens is None else self._count_tokens(ctx.messages)
        intents = _messages.intents(ctx.messages)
        return await self._turns.turn(intents, tokens, endpoint, render)

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        response: ModelResponse,
    ) -> ModelResponse:
        """Gates the calls, all at once, and keeps the handle beside them."""
        parameters = request_context.model_request_parameters
        known = {tool.name for tool in (*parameters.function_tools, *parameters.output_tools)}
        gated = [part for part in response.parts if self._is_ours(part, known - {CALL_TOOL})]
        parts = [part for part in gated if isinstance(part, ToolCallPart)]
        calls = [Call(part.tool_name, part.args or {}, part.tool_call_id) for part in parts]
        verdicts = await self._turns.gate(calls, self._managed.names)
        self._verdicts = {
            call.call_id: verdict for call, verdict in zip(calls, verdicts, strict=True)
        }
        settled = {id(p): self._settled(p, v) for p, v in zip(parts, verdicts, strict=True)}
        # The history is in the messages themselves.
        kept = {k: v for k, v in self._turns.snapshot().items() if k != "history"}
        return replace(
            response,
            parts=[settled.get(id(part), part) for part in response.parts],
            metadata={**(response.metadata or {}), _KEPT: kept},
        )

    async def before_tool_validate(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: RawArguments,
    ) -> RawArguments:
        """Fails a call that was refused, before its arguments are looked at."""
        if not self._manages(call):
            return args
        verdict = self._verdicts.get(call.tool_call_id)
        if verdict is None:  # A call that was deferred, and is made now, before the model speaks.
            self._read(ctx)
            asked = Call(call.tool_name, args, call.tool_call_id)
            (verdict,) = await self._turns.gate([asked], self._managed.names)
        if verdict.refusal:
            raise ToolFailed(verdict.refusal)
        return verdict.arguments_json or args

    async def _answer_refused(self, ctx: RunContext[Any], **_arguments: Any) -> str:
        verdict = self._verdicts.get(ctx.tool_call_id or "")
        raise ToolFailed(verdict.refusal if verdict else no_such_tool(REFUSED_CALL))

    async def _answer_search(self, ctx: RunContext[Any], **arguments: Any) -> str:
        call = Call(SEARCH, arguments, ctx.tool_call_id or "")
        text, failed = await self._turns.search(call, self._managed.names)
        if failed:
            raise ToolFailed(text)
        return text

    def _read(self, ctx: RunContext[Any]) -> None:
        self._turns.read(_messages.entries(ctx.messages), self._granted(ctx))

    def _granted(self, ctx: RunContext[Any]) -> Mapping[str, Any]:
        return checked_grants(self._grants(ctx) if callable(self._grants) else self._grants)

    def _manages(self, call: ToolCallPart) -> bool:
        return call.tool_name in self._managed.names

    def _is_ours(self, part: Any, known: set[str]) -> bool:
        """Returns True if Gate decides on a call: on all but those of the agent's own tools."""
        if not isinstance(part, ToolCallPart):
            return False
        return self._manages(part) or part.tool_name not in known

    def _settled(self, part: ToolCallPart, verdict: Verdict) -> ToolCallPart:
        """A call of the tool that the model meant, or of what answers for those that are not."""
        if self._manages(part):
            return part
        if verdict.tool:
            return replace(part, tool_name=verdict.tool, args=verdict.arguments_json or part.args)
        held = opened(part.tool_name, part.args_as_json_str())
        if held is not None and held.tool in self._managed.names:
            return replace(part, tool_name=held.tool, args=str(held.arguments))
        called = part.tool_name if held is None else held.tool
        return replace(part, tool_name=REFUSED_CALL, args={"tool": called})

    def _parted(
        self, tools: Sequence[ToolDefinition]
    ) -> tuple[dict[str, ToolDefinition], list[ToolDefinition]]:
        """The managed tools and the search by their names, and the agent's own tools."""
        ours = {*self._managed.names, *([SEARCH] if self._search else [])}
        own = [tool for tool in tools if tool.name not in {*ours, REFUSED_CALL}]
        tell_own(_LOG, tuple(sorted(tool.name for tool in own)))
        return {tool.name: tool for tool in tools if tool.name in ours}, own

    def _shown(self, managed: Mapping[str, ToolDefinition]) -> list[ToolDefinition]:
        """The active set in its order, so that caches hold."""
        order = self._turns.active if self._turns.active is not None else list(managed)
        shown = [name for name in order if name in managed and self._turns.shows(name)]
        return [managed[name] for name in shown]

    def _resume(self, messages: Sequence[ModelMessage]) -> None:
        kept = _kept(messages)
        if isinstance(kept.get("handle"), str) and isinstance(kept.get("active"), list):
            self._turns.resume({**kept, "ledger": kept.get("ledger") or ""})


def _kept(messages: Sequence[ModelMessage]) -> dict[str, Any]:
    """Returns what the last of the model's messages has kept of the conversation."""
    for message in reversed(messages):
        kept = (message.metadata or {}).get(_KEPT)
        if isinstance(message, ModelResponse) and isinstance(kept, dict):
            return kept
    return {}
