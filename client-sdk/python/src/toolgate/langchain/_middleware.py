"""The middleware: routes before the model, shows it the active set, gates its calls after it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Self, Unpack

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command

from toolgate._agents import (
    NOT_GATED,
    NOT_SEARCHED,
    SEARCH,
    Verdict,
    checked_grants,
    checked_strategy,
    is_model_facing,
    offers_search,
    raise_unless_fault,
    refuse_arguments,
    route_of,
    shown_of,
    system_tokens,
    tell_many,
    tell_own,
    text_of,
    unlisted,
    verdicts_of,
    with_history,
)
from toolgate._endpoints import Endpoint
from toolgate._forms import formed
from toolgate._listed import is_lost, registration
from toolgate._requests import RegisterArguments, RouteArguments
from toolgate._tally import Sent, Tally
from toolgate.aio import AsyncClient
from toolgate.client import Client
from toolgate.enums import ErrorReason, PromptStrategy
from toolgate.errors import ToolgateError
from toolgate.gating import Call
from toolgate.langchain import _messages
from toolgate.langchain._endpoint import endpoint_of, refuse_unable, with_betas
from toolgate.langchain._mcp import GivenTools, McpTools, Registered
from toolgate.langchain._prompt import CALL_TOOL, Prompt, opened
from toolgate.langchain._tools import refuse_unprepared, search_tool
from toolgate.offering import SearchAnswer
from toolgate.report import Report
from toolgate.routing import Intent, RouteResult
from toolgate.state import AgentState as ToolgateAgentState

if TYPE_CHECKING:
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from mcp import ClientSession

_LOG = logging.getLogger("toolgate.langchain")
Ask = Callable[[Any], Any]
"""A call to make with the client, whichever it is."""
Steps = Generator[Ask, Any, dict[str, Any] | None]
"""Steps of a hook: it yields calls, is sent their answers, and returns the state's update."""
Grants = Mapping[str, Any] | Callable[["ToolgateState", "Runtime[Any]"], Mapping[str, Any]]


class ToolgateState(AgentState[Any]):
    """State that the middleware keeps in the graph, and so in its checkpoints."""

    toolgate_handle: NotRequired[Annotated[str, PrivateStateAttr]]
    toolgate_active: NotRequired[Annotated[list[str], PrivateStateAttr]]
    toolgate_history: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    """Route's snapshot of the conversation."""
    toolgate_unread: NotRequired[Annotated[bool, PrivateStateAttr]]
    """True if there are messages that the snapshot may not stand for."""
    toolgate_prompt: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    """Additions of Route to the messages, with a strategy."""
    toolgate_endpoint: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    """The model that the last turn was routed for, with the system prompt that it was sent."""
    toolgate_tally: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    """Costs of the conversation so far."""


class ToolgateMiddleware(AgentMiddleware[Any, Any]):
    """Shows the model the active set of its turn, and lets only calls run that Gate allows.

        agent = create_agent(model, middleware=[ToolgateMiddleware(client, tools)])

    Each model call is routed by the user's last message and, within a turn, by what the last tool
    answered. Calls that may not run, whatever names they have, are answered with the refusal, in
    words for the model, so that it can correct itself. A middleware that adds tools of its own in
    `wrap_model_call` goes before this one: calls of tools that this one does not know of are
    refused. Where tools are deferred, the model also sees a search for them, whose
    calls are answered here: what it finds is in the active set from then on. Everything that a
    conversation needs is in the graph's state: one instance serves any number of them, and a
    checkpointed one goes on elsewhere.

    When Toolgate can't be reached, the model keeps the active set that it has, or sees all tools;
    calls are refused until they can be checked.
    """

    state_schema = ToolgateState

    def __init__(
        self,
        client: Client | AsyncClient,
        tools: Sequence[BaseTool],
        *,
        grants: Grants | None = None,
        search: bool = True,
        strategy: PromptStrategy | str = "auto",
        count_tokens: Callable[[Sequence[AnyMessage]], int] | None = _messages.tokens,
        **route: Unpack[RouteArguments],
    ) -> None:
        """Takes over the tools that the agent has from MCP servers.

        Args:
            client: Blocking, for both `invoke` and `ainvoke` (in a thread); or asynchronous, for
                `ainvoke` alone.
            tools: All tools that Toolgate manages, under model-facing names (`model_facing`). They
                are registered with the agent; don't give them to `create_agent` too. Tools given
                there are always shown and never gated.
            grants: The agent's `scopes`, `milestones` and `attributes`, which no history can say: a
                mapping, or a function of the graph's state and runtime. Default: none.
            search: True if the model may search for tools that it does not see (`SEARCH_TOOL`).
                Without, no tool is deferred, unless `deferral` says otherwise.
            strategy: The way of tools into requests. "auto": Route chooses, by what costs least
                with the model that is asked. "envelope": where tools are deferred, they are
                described in the messages, and the model calls them through `toolgate_call_tool`;
                definitions and the provider's cached prefix stay. The graph's state has neither,
                but calls of the tools' own names. "cut": the active set is defined in each request,
                and a change of it costs the cached prefix. "pass": all tools are defined. "native":
                tools are added amid the messages, as Anthropic's Messages (`tool_addition`) and
                OpenAI's Responses (`additional_tools`) take them; for `ChatAnthropic`, or
                `ChatOpenAI` with `use_responses_api=True`, with a model whose profile has
                `mid_conversation_tools`. Without `search`: always "cut".
            count_tokens: Counts the tokens of the messages. Route is told (`history_tokens`), and
                changes the set only where that is worth its price. Default: an estimate, a token
                for four bytes of text. None: not told; with a strategy Route estimates it then.
            **route: Further arguments of `route`, such as `top_k` or `servers`.

        Raises:
            TypeError: an argument that `route` does not have or that the middleware itself fills,
                or grants with other keys.
            ValueError: tools under other names than model-facing ones, or no such strategy.
        """
        super().__init__()
        own = ("grants", "search", "strategy", "count_tokens")
        refuse_arguments("ToolgateMiddleware", route, own)
        asked = checked_strategy(strategy, search=search, native=True)
        refuse_unprepared(tools)
        if not callable(grants):
            checked_grants(grants)
        self._managed = {tool.name: tool for tool in tools}
        # An agent keeps the tools that it was made with: one that a refresh took away is no tool of
        # the agent's own.
        self._taken_over = set(self._managed)
        self._search = search_tool() if search else None
        self.tools = [*tools] if self._search is None else [*tools, self._search]
        self._client = client
        self._grants = grants
        # Without a search nothing may be described: Route would send the whole catalog.
        self._strategy = asked if search else None
        self._count_tokens = count_tokens
        self._route = route_of(route, search=search)
        self._mcp: Registered | None = None
        self._endpoint: Endpoint | None = None
        """The model that was asked last, by any agent."""

    @classmethod
    async def from_mcp(
        cls,
        client: Client | AsyncClient,
        mcp: "MultiServerMCPClient | Mapping[str, ClientSession]",
        *,
        servers: Iterable[str] | None = None,
        register: Mapping[str, RegisterArguments] | None = None,
        **options: Any,
    ) -> Self:
        """Lists the tools of MCP servers, registers them as listed, and takes them over.

            mcp = MultiServerMCPClient({"git": {"transport": "stdio", "command": "uvx", ...}})
            toolgate = await ToolgateMiddleware.from_mcp(client, mcp)
            agent = create_agent(model, middleware=[toolgate])

        A server that can't be reached is left out with a warning. Tools that are rejected or wait
        for approval are left out with one each. If the service loses its catalog, the servers are
        registered again. What a server says of changes of its tools
        (`notifications/tools/list_changed`) is heard in its sessions, and followed before the next
        call of the model with `ainvoke` and its like: a `MultiServerMCPClient` has a session for
        each call of a tool, and a session that you connect hears it at any time. `refresh` follows
        the changes of others.

        Args:
            client: The client of Toolgate; see the constructor.
            mcp: The MCP servers' connections, or connected sessions by the servers' names. These
                are the servers' names in the catalog.
            servers: The names of those to take. Default: all.
            register: Arguments of `register_server` by the server's name, such as
                `{"git": {"required_scopes": ["repo"]}}`.
            **options: Arguments of the constructor. Turns are routed among these servers alone.

        Raises:
            ValueError: a name that `mcp` has no connection for.
            ToolgateError: a registration failed.
        """
        return await cls._over(client, McpTools(client, mcp, servers, register or {}), options)

    @classmethod
    async def from_tools(
        cls,
        client: Client | AsyncClient,
        servers: Mapping[str, Iterable[BaseTool | Callable[..., Any]]],
        *,
        register: Mapping[str, RegisterArguments] | None = None,
        **options: Any,
    ) -> Self:
        """Registers tools of one's own with their schemas, and takes them over.

            toolgate = await ToolgateMiddleware.from_tools(client, {"notes": [find_notes]})
            agent = create_agent(model, middleware=[toolgate])

        Args:
            client: The client of Toolgate; see the constructor.
            servers: LangChain's tools, or functions to make tools of, by the name of the server
                that they are to have in the catalog. Don't give them to `create_agent` too.
            register: Arguments of `register_server` by the server's name.
            **options: Arguments of the constructor. Turns are routed among these tools alone.

        Raises:
            ValueError: arguments for a server that is not among them.
            ToolgateError: a registration failed.
        """
        return await cls._over(client, GivenTools(client, servers, register or {}), options)

    @classmethod
    async def _over(
        cls, client: Client | AsyncClient, loader: Registered, options: dict[str, Any]
    ) -> Self:
        options.setdefault("servers", loader.names)
        middleware = cls(client, await loader.load(), **options)
        middleware._mcp = loader
        return middleware

    async def refresh(self) -> None:
        """Lists the MCP servers of `from_mcp` again: their tools are registered and shown anew.

        For changes that are not followed by themselves; see `from_mcp`. Agents that have this
        middleware see the change with their next turn.

        Raises:
            TypeError: the middleware was not made by `from_mcp`.
            ToolgateError: a registration failed.
        """
        if self._mcp is None:
            raise TypeError("only a middleware of ToolgateMiddleware.from_mcp can be refreshed")
        self._managed = {tool.name: tool for tool in await self._mcp.load()}
        self._taken_over |= self._managed.keys()

    async def _follow(self) -> None:
        """Lists the servers again if one said since that its tools changed.

        What can't be listed or registered just now is left as it is, with a warning.
        """
        if self._mcp is None or not self._mcp.changed:
            return
        names = ", ".join(sorted(self._mcp.changed))
        try:
            await self.refresh()
        except Exception as error:
            self._mcp.changed.clear()
            _LOG.warning("toolgate: changed tools of %s can't be followed: %s", names, error)

    @staticmethod
    def report(state: Mapping[str, Any]) -> Report:
        """Returns what a conversation cost so far, beside its alternatives.

        Args:
            state: The graph's state with what Toolgate keeps in it, such as
                `agent.get_state(config).values`; not the result of `invoke`, which lacks it.
        """
        return Tally(state.get("toolgate_tally")).report()

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Runs tools that came after the agent was made; see `AgentMiddleware.wrap_tool_call`."""
        return handler(self._with_tool(request))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Runs tools that came after the agent was made; see `AgentMiddleware.awrap_tool_call`."""
        return await handler(self._with_tool(request))

    def _with_tool(self, request: ToolCallRequest) -> ToolCallRequest:
        tool = self._managed.get(request.tool_call["name"])
        return request if tool is None else request.override(tool=tool)

    def before_model(self, state: ToolgateState, runtime: "Runtime[Any]") -> dict[str, Any] | None:
        """Routes; see `AgentMiddleware.before_model`.

        Before it is known which model is asked, `wrap_model_call` does.
        """
        endpoint = self._expected(state)
        return None if endpoint is None else self._run(self._before(state, runtime, endpoint))

    async def abefore_model(
        self, state: ToolgateState, runtime: "Runtime[Any]"
    ) -> dict[str, Any] | None:
        """Routes; see `AgentMiddleware.abefore_model`."""
        await self._follow()
        endpoint = self._expected(state)
        return (
            None if endpoint is None else await self._arun(self._before(state, runtime, endpoint))
        )

    def wrap_model_call(
        self,
        request: "ModelRequest[Any]",
        handler: Callable[["ModelRequest[Any]"], "ModelResponse[Any]"],
    ) -> "ModelResponse[Any] | ExtendedModelResponse[Any]":
        """Shows the model the active set; see `AgentMiddleware.wrap_model_call`.

        Routes where the model that is asked is another than the turn was routed for.
        """
        late = self._late(request)
        update = self._noted(request) if late is None else self._run(late)
        return self._answered(request, handler(self._with_active_set(request, update)), update)

    async def awrap_model_call(
        self,
        request: "ModelRequest[Any]",
        handler: Callable[["ModelRequest[Any]"], Awaitable["ModelResponse[Any]"]],
    ) -> "ModelResponse[Any] | ExtendedModelResponse[Any]":
        """Shows the model the active set; see `AgentMiddleware.awrap_model_call`."""
        late = self._late(request)
        update = self._noted(request) if late is None else await self._arun(late)
        response = await handler(self._with_active_set(request, update))
        return self._answered(request, response, update)

    def _expected(self, state: ToolgateState) -> Endpoint | None:
        """The model that the next call is likely to ask: that of the last one."""
        kept = state.get("toolgate_endpoint")
        return Endpoint.from_dict(kept) if kept else self._endpoint

    def _late(self, request: "ModelRequest[Any]") -> Steps | None:
        """Steps of a turn that was not routed for the model that is asked now."""
        if self._is_native:
            refuse_unable(request.model)
        self._endpoint = self._asked(request)
        state: Any = request.state
        kept = state.get("toolgate_endpoint")
        if kept and Endpoint.from_dict(kept).asks_as(self._endpoint):
            return None
        return self._before(state, request.runtime, self._endpoint)

    def _asked(self, request: "ModelRequest[Any]") -> Endpoint:
        """Returns the model that is asked now, with the system prompt that it is sent."""
        endpoint = endpoint_of(request.model)
        system = request.system_message
        if self._count_tokens is None or system is None:
            return endpoint
        return replace(endpoint, system_tokens=system_tokens([system.text]))

    def _noted(self, request: "ModelRequest[Any]") -> dict[str, Any] | None:
        """Returns the update by which the next turn is told of another system prompt."""
        asked = self._asked(request).to_dict()
        state: Any = request.state
        return None if state.get("toolgate_endpoint") == asked else {"toolgate_endpoint": asked}

    def _answered(
        self,
        request: "ModelRequest[Any]",
        response: "ModelResponse[Any]",
        update: dict[str, Any] | None,
    ) -> "ModelResponse[Any] | ExtendedModelResponse[Any]":
        marked = self._marked(request, response)
        return marked if not update else ExtendedModelResponse(marked, Command(update=update))

    def after_model(self, state: ToolgateState, runtime: "Runtime[Any]") -> dict[str, Any] | None:
        """Gates the model's calls; see `AgentMiddleware.after_model`."""
        return self._run(self._after(state, runtime))

    async def aafter_model(
        self, state: ToolgateState, runtime: "Runtime[Any]"
    ) -> dict[str, Any] | None:
        """Gates the model's calls; see `AgentMiddleware.aafter_model`."""
        return await self._arun(self._after(state, runtime))

    def _before(self, state: ToolgateState, runtime: "Runtime[Any]", endpoint: Endpoint) -> Steps:
        told = {"toolgate_endpoint": endpoint.to_dict()}
        intents = _messages.intents(state["messages"])
        if not intents:
            return {**told, "toolgate_unread": True}
        api = endpoint.api if self._strategy is not None else "openai_chat"
        sent = formed(_messages.chat(state["messages"]), api)
        agent = ToolgateAgentState(
            **self._granted(state, runtime),
            messages=sent.items,
            snapshot=state.get("toolgate_history"),
        )
        handle = state.get("toolgate_handle", "")
        route = self._route_of(state, endpoint)
        try:
            turn = yield from self._routed(intents, agent, handle, route)
        except ToolgateError as error:
            raise_unless_fault(error, _LOG)
            return {**told, "toolgate_unread": True}
        active = [SEARCH] if offers_search(turn, state.get("toolgate_active", [])) else []
        active += [tool.model_name for tool in turn]
        update: dict[str, Any] = {
            **told,
            "toolgate_handle": turn.handle,
            "toolgate_active": active,
        }
        is_whole = False
        if self._strategy is not None:
            prompt = Prompt.of_turn(turn.request, sent, state["messages"])
            update["toolgate_prompt"] = prompt.to_dict()
            is_whole = bool(prompt.tools) or turn.request.strategy is PromptStrategy.PASS
        tally = Tally(state.get("toolgate_tally"))
        tally.add(turn, Sent(active, is_whole=is_whole), endpoint, _LOG)
        update["toolgate_tally"] = tally.to_dict()
        if turn.conversation_snapshot is None:
            return {**update, "toolgate_unread": True}
        covered = {"toolgate_history": turn.conversation_snapshot, "toolgate_unread": False}
        return {**update, **covered}

    def _route_of(self, state: ToolgateState, endpoint: Endpoint) -> RouteArguments:
        """The arguments of this turn's `route`."""
        tokens = None if self._count_tokens is None else self._count_tokens(state["messages"])
        route = with_history(endpoint.told(self._route), tokens)
        if self._strategy is None:
            return unlisted(route)
        prompt = Prompt(state.get("toolgate_prompt"))
        return {**route, "render": prompt.render(endpoint, self._strategy)}

    def _routed(
        self, intents: list[Intent], agent: ToolgateAgentState, handle: str, route: RouteArguments
    ) -> Generator[Ask, Any, RouteResult]:
        """Routes; registers the MCP servers again if the service has lost them."""
        try:
            turn: RouteResult = yield _ask_route(intents, agent, handle, route)
        except ToolgateError as error:
            if handle and error.reason == ErrorReason.HANDLE_INVALID:
                return (yield from self._routed(intents, agent, "", route))
            if not is_lost(error) or self._mcp is None:
                raise
        else:
            if not self._has_lost(turn):
                return turn
        _LOG.warning("toolgate: the service has lost the catalog: MCP servers are registered again")
        yield from self._register_again()
        again: RouteResult = yield _ask_route(intents, agent, handle, route)
        return again

    def _has_lost(self, turn: RouteResult) -> bool:
        """Returns True if the catalog is older than what was registered: it began anew."""
        servers = () if self._mcp is None else self._mcp.servers.values()
        return any(turn.catalog_revision < server.revision for server in servers)

    def _register_again(self) -> Generator[Ask, Any, None]:
        loader = self._mcp
        if loader is None:
            return
        for name, server in loader.servers.items():
            done = yield registration(server)
            loader.servers[name] = replace(server, revision=done.catalog_revision)

    def _after(self, state: ToolgateState, runtime: "Runtime[Any]") -> Steps:
        message, opened = _messages.open_calls(state["messages"])
        if message is None or not opened:
            return None
        foreign = _messages.foreign_calls(message)
        searches = [call for call in opened if self._is_search(call)]
        calls = [
            c for c in opened if c not in searches and (c["id"] in foreign or self._is_ours(c))
        ]
        if not calls and not searches:
            return None
        handle = state.get("toolgate_handle", "")
        if not handle:
            refused = [_refusal(call, text_of(NOT_GATED)) for call in calls]
            return {"messages": refused + [_refusal(c, text_of(NOT_SEARCHED)) for c in searches]}
        agent = self._agent(state, runtime)
        verdicts = yield from self._gated(calls, handle, agent)
        judged = list(zip(calls, verdicts, strict=True))
        messages: list[Any] = [_refusal(call, v.refusal) for call, v in judged if v.refusal]
        renames = {c["id"] or "": v for c, v in judged if v.tool not in ("", c["name"])}
        if renames:
            # In the place of the model's message, since the identifier is the same.
            messages.insert(0, _messages.renamed(message, renames))
        found, handle = yield from self._found(searches, handle, agent)
        messages += found
        if not messages:
            return None
        update: dict[str, Any] = {"messages": messages, "toolgate_handle": handle}
        if not searches:
            return update
        tally = Tally(state.get("toolgate_tally"))
        for _ in searches:
            tally.searched()
        return {**update, "toolgate_tally": tally.to_dict()}

    def _gated(
        self, calls: list[ToolCall], handle: str, agent: ToolgateAgentState
    ) -> Generator[Ask, Any, list[Verdict]]:
        """Returns the verdicts of the calls."""
        if not calls:
            return []
        asked = [Call(call["name"], call["args"], call["id"] or "") for call in calls]
        try:
            verdicts = yield lambda client: client.gate(handle, asked, state=agent)
        except ToolgateError as error:
            raise_unless_fault(error, _LOG)
            return [Verdict(text_of(NOT_GATED)) for _ in calls]
        return verdicts_of(verdicts, asked, self._managed)

    def _found(
        self, searches: list[ToolCall], handle: str, agent: ToolgateAgentState
    ) -> Generator[Ask, Any, tuple[list[ToolMessage], str]]:
        """The answers to the searches, and the handle that holds what they found."""
        messages = []
        for call in searches:
            try:
                answer = yield self._ask_search(call, handle, agent)
            except ToolgateError as error:
                raise_unless_fault(error, _LOG)
                messages.append(_refusal(call, text_of(NOT_SEARCHED)))
                continue
            handle = answer.handle
            shown = shown_of(answer, self._managed, self._route.get("servers"))
            messages.append(_answered(call, shown))
        return messages, handle

    def _ask_search(self, call: ToolCall, handle: str, agent: ToolgateAgentState) -> Ask:
        asked = Call(call["name"], call["args"], call["id"] or "")
        return lambda client: client.answer_search(asked, handle=handle, state=agent)

    def _agent(self, state: ToolgateState, runtime: "Runtime[Any]") -> ToolgateAgentState:
        """The agent's state: its grants, and the conversation or what stands for it."""
        is_read = not state.get("toolgate_unread", True)
        return ToolgateAgentState(
            **self._granted(state, runtime),
            messages=None if is_read else _messages.chat(state["messages"]),
            snapshot=state.get("toolgate_history"),
        )

    def _granted(self, state: ToolgateState, runtime: "Runtime[Any]") -> Mapping[str, Any]:
        return checked_grants(
            self._grants(state, runtime) if callable(self._grants) else self._grants
        )

    @property
    def _is_native(self) -> bool:
        return self._strategy is PromptStrategy.NATIVE

    def _is_ours(self, call: ToolCall) -> bool:
        """Tools of the agent's own are not gated; a name that looks like a catalog's tool is."""
        return call["name"] == CALL_TOOL or self._is_enveloped(call["name"])

    def _is_enveloped(self, name: str) -> bool:
        return name in self._managed or is_model_facing(name)

    def _is_search(self, call: ToolCall) -> bool:
        return self._search is not None and call["name"] == self._search.name

    def _with_active_set(
        self, request: "ModelRequest[Any]", update: dict[str, Any] | None
    ) -> "ModelRequest[Any]":
        """The agent's own tools first, then the active set in its order, so that caches hold."""
        if update:
            state: Any = {**request.state, **update}
            request = request.override(state=state)
        own = [tool for tool in request.tools if not self._manages(tool)]
        tell_own(_LOG, tuple(sorted(_name(tool) for tool in own)))
        kept: Any = request.state.get("toolgate_prompt")
        prompt = Prompt(kept if self._strategy is not None else None)
        if not prompt.tools:
            shown = self._active(request, own)
            tell_many(_LOG, len(shown))
            return request.override(tools=shown)
        defined = [self._managed.get(_name(tool), tool) for tool in prompt.tools]
        direct = {_name(tool) for tool in own}
        messages = prompt.messages(
            request.messages, lambda name: self._is_enveloped(name) and name not in direct
        )
        settings = {**request.model_settings, **with_betas(request, prompt.betas)}
        return request.override(tools=[*own, *defined], messages=messages, model_settings=settings)

    def _active(
        self, request: "ModelRequest[Any]", own: list[BaseTool | dict[str, Any]]
    ) -> list[BaseTool | dict[str, Any]]:
        """Returns the tools to show; before the first turn, all but the search."""
        active = request.state.get("toolgate_active")
        if not isinstance(active, list):
            return [*own, *self._managed.values()]
        search = [self._search] if self._search is not None and self._search.name in active else []
        shown = [self._managed[name] for name in active if name in self._managed]
        return [*own, *search, *shown]

    def _marked(
        self, request: "ModelRequest[Any]", response: "ModelResponse[Any]"
    ) -> "ModelResponse[Any]":
        """Opens envelopes, and marks the calls of tools that the agent does not have.

        Those are gated with the others, after the model: LangChain answers them with the names of
        all tools. Only the request tells them. Other middleware sees the tools' own names.
        """
        known = {*self._managed, *(_name(tool) for tool in request.tools)}
        answered = {m.tool_call_id for m in response.result if isinstance(m, ToolMessage)}
        result = [
            _messages.marked(opened(message), known, answered)
            if isinstance(message, AIMessage)
            else message
            for message in response.result
        ]
        return replace(response, result=result)

    def _manages(self, tool: BaseTool | dict[str, Any]) -> bool:
        return isinstance(tool, BaseTool) and (
            tool is self._search or tool.name in self._taken_over
        )

    def _run(self, steps: Steps) -> dict[str, Any] | None:
        client = self._client
        if isinstance(client, AsyncClient):
            steps.close()
            raise TypeError("an AsyncClient serves ainvoke only: give a Client for invoke")
        try:
            ask = next(steps)
            while True:
                try:
                    answer = ask(client)
                except ToolgateError as error:
                    ask = steps.throw(error)
                else:
                    ask = steps.send(answer)
        except StopIteration as end:
            return _update(end.value)

    async def _arun(self, steps: Steps) -> dict[str, Any] | None:
        client = self._client
        try:
            ask = next(steps)
            while True:
                try:
                    if isinstance(client, AsyncClient):
                        answer = await ask(client)
                    else:
                        answer = await asyncio.to_thread(ask, client)
                except ToolgateError as error:
                    ask = steps.throw(error)
                else:
                    ask = steps.send(answer)
        except StopIteration as end:
            return _update(end.value)


def _name(tool: BaseTool | dict[str, Any]) -> str:
    """Returns a tool's name; "" for one of a provider's own."""
    if isinstance(tool, BaseTool):
        return tool.name
    named = tool.get("function", tool)
    return str(named.get("name", "")) if isinstance(named, dict) else ""


def _update(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _refusal(call: ToolCall, text: str) -> ToolMessage:
    return _message(call, text, failed=True)


def _answered(call: ToolCall, answer: SearchAnswer) -> ToolMessage:
    return _message(call, answer.text, failed=answer.failed)


def _message(call: ToolCall, text: str, *, failed: bool) -> ToolMessage:
    return ToolMessage(
        text,
        tool_call_id=call["id"] or "",
        name=call["name"],
        status="error" if failed else "success",
    )


def _ask_route(
    intents: list[Intent], agent: ToolgateAgentState, handle: str, route: RouteArguments
) -> Ask:
    return lambda client: client.route(intents, state=agent, handle=handle, **route)
