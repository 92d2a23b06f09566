"""One conversation of a loop of one's own over a provider's API.

conversation = await Conversation.from_mcp(client, "anthropic", {"git": session}, model=MODEL)
request = await conversation.say("what changed since yesterday?")
while request is not None:
    answer = await anthropic.beta.messages.create(
        model=MODEL,
        max_tokens=1024,
        tools=request.tools,
        messages=request.messages,
        betas=list(request.betas),
    )
    request = await conversation.take(answer)
print(conversation.text)
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, Unpack

from toolgate._agents import (
    CALL_TOOL,
    SEARCH,
    Turns,
    Verdict,
    checked_grants,
    estimated_tokens,
    intents_of,
    no_such_tool,
    opened,
    refuse_arguments,
    text_of,
)
from toolgate._answers import APIS, Result
from toolgate._endpoints import Endpoint
from toolgate._requests import RegisterArguments, RouteArguments
from toolgate._served import ServedTools, attribute, causes, hear_changes, listed_tools
from toolgate.aio import AsyncClient
from toolgate.client import Client
from toolgate.enums import PromptStrategy, StrategyReason
from toolgate.gating import Call
from toolgate.rendering import ModelRequest
from toolgate.report import Report

_LOG = logging.getLogger("toolgate.conversation")
_PAUSE_SECONDS = 30.0
"""The time before a server whose changed tools could not be followed is listed again."""
_NOTHING = "No tool fits: try other words, fewer of them with a +, or an MCP server's name."
_LATER = " The servers in `pending_servers` are still connecting: search again in a while."

RunTool = Callable[[str, str, dict[str, Any]], Awaitable[Any] | Any]
"""Runs a call that Gate allows: the server's name, the tool's own name and the arguments. A call of
the agent's own tools has the server "". What it returns is the result: a text, or a value of JSON;
what it raises is told to the model as a failure."""


@dataclass(slots=True)
class _Taken:
    """A model's answer whose request could not be had yet, and what came of its calls so far."""

    said: list[dict[str, Any]]
    """The answer's messages."""
    results: dict[int, Result] = field(default_factory=dict)
    """Results by the places of the calls in the answer."""
    searches: dict[int, str] = field(default_factory=dict)
    """Texts of OpenAI's own searches, by their places in `said`."""


class Conversation:
    """One conversation: puts requests together, lets Gate decide on calls, and runs them.

    The messages are kept in `messages`, in the provider's form and without what Route adds to
    requests. When Toolgate can't be reached, the tools of the last request stay, and calls are
    refused until they can be checked.
    """

    def __init__(
        self,
        client: Client | AsyncClient,
        api: str,
        run_tool: RunTool,
        served: ServedTools,
        *,
        own_tools: Iterable[Mapping[str, Any]] = (),
        grants: Mapping[str, Any] | None = None,
        strategy: PromptStrategy | str = "auto",
        messages: Sequence[Mapping[str, Any]] = (),
        snapshot: Mapping[str, Any] | None = None,
        **route: Unpack[RouteArguments],
    ) -> None:
        """Begins a conversation: `from_mcp` and `from_tools` make one.

        Args:
            client: Blocking, which is called in a thread; or asynchronous.
            api: "anthropic", "openai_chat", "openai_responses" or "gemini".
            run_tool: Runs the calls that Gate allows.
            served: The servers in the catalog.
            own_tools: Definitions of tools of the agent's own in the API's form, always sent and
                never gated.
            grants: The agent's `scopes`, `milestones` and `attributes`. Default: none.
            strategy: As in `RenderOptions`. "auto": Route chooses, by what costs least with
                `model` and `model_base_url`, arguments of `route`.
            messages: Those of before, to go on with.
            snapshot: The value of `snapshot()`. None: a new conversation.
            **route: Further arguments of `route`, such as `model` or `servers`.

        Raises:
            TypeError: an argument that `route` does not have or that is filled in by itself, or
                grants with other keys.
            ValueError: no such API.
        """
        own = ("own_tools", "grants", "strategy", "messages", "snapshot")
        refuse_arguments("Conversation", route, own)
        if api not in APIS:
            raise ValueError(f"api is one of {', '.join(APIS)}, not {api!r}")
        self._api = APIS[api]()
        self._endpoint = Endpoint(
            api=api,
            model=route.get("model", ""),
            base_url=route.get("model_base_url", ""),
            carries_native=True,
        )
        self._strategy = PromptStrategy(strategy.upper())
        self._run_tool = run_tool
        self._own = [dict(tool) for tool in own_tools]
        self._own_names = {_name(tool) for tool in self._own}
        self._grants = checked_grants(grants)
        self._client = client
        self._served = served
        self._list: Callable[[str], Awaitable[bool]] | None = None
        self._changed: set[str] = set()
        self._paused_until: dict[str, float] = {}
        self._clock = time.monotonic
        self._turns = Turns(client, route, search=True, log=_LOG, served=served)
        if snapshot is not None:
            self._turns.resume(snapshot)
        # Route would take no servers for all of the catalog.
        self._has_none = not served.names and not route.get("servers")
        self._sent: ModelRequest | None = None
        self._covered = 0
        self._said = self._observed = ""
        self._taken: _Taken | None = None
        self.messages: list[dict[str, Any]] = [dict(message) for message in messages]
        """The conversation, without what Route adds."""
        self.text = ""
        """Text of the model's last message."""

    @classmethod
    async def from_mcp(
        cls,
        client: Client | AsyncClient,
        api: str,
        servers: Mapping[str, Any],
        *,
        register: Mapping[str, RegisterArguments] | None = None,
        run_own: RunTool | None = None,
        **options: Any,
    ) -> Self:
        """Registers the tools of MCP servers as they list them, and calls them there.

        A server that can't be listed is left out with a warning. After
        `notifications/tools/list_changed` the next request has what the server lists then; while it
        can't be listed, its tools stay, and a request tries again once 30 s have passed. If the
        service loses its catalog, the servers are registered again.

        Args:
            client: The client of Toolgate; see the constructor.
            api: As in the constructor.
            servers: Connected sessions of the package `mcp` (`ClientSession`), by the servers'
                names in the catalog.
            register: Further arguments of `register_server` by the server's name.
            run_own: Runs calls of `own_tools`.
            **options: Arguments of the constructor. Turns are routed among these servers alone.

        Raises:
            ValueError: arguments for a server that is not among them, or no such API.
            ToolgateError: a registration failed.
        """
        sessions = dict(servers)
        served = ServedTools(client, sessions, register, _LOG)

        async def run(server: str, name: str, arguments: dict[str, Any]) -> Any:
            if server:
                return _read(await sessions[server].call_tool(name, arguments))
            if run_own is None:
                raise LookupError("run_own is not given")
            result = run_own(server, name, arguments)
            return await result if isinstance(result, Awaitable) else result

        options.setdefault("servers", served.names)
        conversation = cls(client, api, run, served, **options)
        for name, session in sessions.items():
            hear_changes(session, partial(conversation._changed.add, name))

        async def listed(name: str) -> bool:
            return await _listed(served, name, sessions[name])

        conversation._list = listed
        await asyncio.gather(*map(listed, sessions))
        return conversation

    @classmethod
    async def from_tools(
        cls,
        client: Client | AsyncClient,
        api: str,
        servers: Mapping[str, Iterable[Mapping[str, Any]]],
        run_tool: RunTool,
        *,
        register: Mapping[str, RegisterArguments] | None = None,
        **options: Any,
    ) -> Self:
        """Registers tools of one's own, as MCP's `tools/list` defines them.

        Args:
            client: The client of Toolgate; see the constructor.
            api: As in the constructor.
            servers: Definitions by the name of the server that they are to have in the catalog.
            run_tool: Runs the calls that Gate allows.
            register: Further arguments of `register_server` by the server's name.
            **options: Arguments of the constructor. Turns are routed among these tools alone.

        Raises:
            ValueError: arguments for a server that is not among them, or no such API.
            ToolgateError: a registration failed.
        """
        served = ServedTools(client, servers, register, _LOG)
        options.setdefault("servers", served.names)
        conversation = cls(client, api, run_tool, served, **options)
        for name, definitions in servers.items():
            await served.register_definitions(name, definitions)
        return conversation

    async def say(self, content: Any) -> ModelRequest:
        """Adds what the user says; the request to send to the model.

        After an error, or where the task is cancelled, the conversation is as before.

        Args:
            content: A text, or the provider's blocks.

        Raises:
            ToolgateError: Route refused what was asked.
        """
        return await self._next([self._api.user(content)], _text(content), "")

    async def take(self, answer: Any) -> ModelRequest | None:
        """Takes the model's answer: runs what Gate allows of its calls.

        After an error, or where the task is cancelled, the messages are as before: take the same
        answer again, which runs no call twice that has its result.

        Args:
            answer: The provider's object, or its JSON. Of a stream, what the provider's package
                makes of it: `get_final_message()` of Anthropic's, `get_final_response()` or the
                response of `response.completed` of OpenAI's Responses, `get_final_completion()` of
                a `ChatCompletionStreamState` that was given each chunk of Chat Completions, and a
                list of Gemini's chunks.

        Returns:
            The next request; None once the model calls nothing: `text` has what it said.

        Raises:
            ToolgateError: Route or Gate refused what was asked.
        """
        said = self._api.messages(answer)
        if self._taken is None or self._taken.said != said:
            self._taken = _Taken(said)
        taken, request = self._taken, None
        searches = [at for at, item in enumerate(said) if _is_ours_to_answer(item)]
        answers = [await self._found(at, taken) for at in searches]
        observed = self._observed
        if calls := self._api.calls(said):
            results = await self._results(calls, taken)
            answers += self._api.results(results)
            done = [text for call, text, failed in results if not failed and call.tool != SEARCH]
            observed = done[-1] if done else observed
        answers += _told([taken.searches[at] for at in searches])
        if answers:
            request = await self._next([*said, *answers], self._said, observed)
        else:
            self.messages += said
            self._taken = None
        self.text = self._api.text(said)
        return request

    def snapshot(self) -> dict[str, Any]:
        """Returns what to keep between processes, beside `messages`: a JSON object."""
        return self._turns.snapshot()

    def report(self) -> Report:
        """Reports the costs of the conversation so far, beside its alternatives."""
        return self._turns.report()

    async def _next(self, more: Sequence[dict[str, Any]], said: str, observed: str) -> ModelRequest:
        """The request with more messages, which are kept once it is there."""
        await self._follow()
        messages = [*self.messages, *more]
        texts = (json.dumps(message, ensure_ascii=False, default=str) for message in messages)
        render = self._endpoint.render(self._strategy, search_tool=True, own_tools=self._own)
        intents = intents_of(said, observed)
        asked = [] if self._has_none else intents
        self._turns.read(messages, self._grants)
        try:
            request = await self._turns.turn(asked, estimated_tokens(texts), self._endpoint, render)
        except BaseException:
            self._turns.read(self.messages, self._grants)
            raise
        if request is None:
            request = self._last(messages, is_routable=bool(intents))
        self.messages += more
        self._said, self._observed = said, observed
        self._sent, self._covered = request, len(self.messages)
        self._taken = None
        return request

    def _last(self, messages: Sequence[dict[str, Any]], *, is_routable: bool) -> ModelRequest:
        """The request that was not routed, with the tools of the last one.

        Args:
            messages: The conversation.
            is_routable: There is a text to route by.
        """
        why = "Toolgate could not route" if is_routable else "there is no text to route by"
        if self._has_none:
            why = "there are no servers to route among"
        before = self._sent
        kept = "the agent's own tools alone" if before is None else "the tools are those of before"
        return ModelRequest(
            tools=self._own if before is None else before.tools,
            messages=[*(before.messages if before else ()), *messages[self._covered :]],
            betas=() if before is None else before.betas,
            ledger="" if before is None else before.ledger,
            strategy=PromptStrategy.UNSPECIFIED if before is None else before.strategy,
            reason=StrategyReason.KEPT,
            reason_message=f"{why}: {kept}",
        )

    async def _results(self, calls: Sequence[Call], taken: _Taken) -> list[Result]:
        """Answers the calls in their order; those that may run do so side by side."""
        left = [(at, call) for at, call in enumerate(calls) if at not in taken.results]
        gated = [call for _, call in left if not self._is_own(call) and call.tool != SEARCH]
        verdicts = dict(zip(map(id, gated), await self._verdicts(gated), strict=True))

        async def answered(call: Call) -> Result:
            if call.tool == SEARCH:
                text, failed = await self._turns.search(call, self._names())
                return call, text, failed
            verdict = verdicts.get(id(call))
            if verdict is None:
                return await self._ran(call, "", call.tool, call.arguments)
            if verdict.refusal:
                return call, verdict.refusal, True
            server, name = self._names()[verdict.tool]
            return await self._ran(call, server, name, verdict.arguments_json or self._inner(call))

        async def keep(at: int, call: Call) -> None:
            taken.results[at] = await answered(call)

        # Running calls end before a failure is told: a retry must not run them once more.
        ended = await asyncio.gather(*(keep(*one) for one in left), return_exceptions=True)
        for failure in filter(None, ended):
            raise failure
        return [taken.results[at] for at in range(len(calls))]

    async def _verdicts(self, calls: Sequence[Call]) -> list[Verdict]:
        if self._has_none:
            return [Verdict(no_such_tool(call.tool)) for call in calls]
        return await self._turns.gate(calls, self._names())

    async def _ran(self, call: Call, server: str, name: str, arguments: Any) -> Result:
        try:
            given = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
            result = self._run_tool(server, name, given)
            if isinstance(result, Awaitable):
                result = await result
        except Exception as error:
            _LOG.warning("toolgate: %s of %s failed: %s", name, server or "the agent", error)
            return call, str(error) or type(error).__name__, True
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        return call, text, False

    async def _found(self, at: int, taken: _Taken) -> dict[str, Any]:
        """Answers a search of OpenAI's own, which the client is to execute."""
        item = taken.said[at]
        call = Call(SEARCH, item.get("arguments") or {}, item.get("call_id") or "")
        if at not in taken.searches:
            taken.searches[at], _failed = await self._turns.search(call, self._names())
        tools: list[Any] = []
        if names := _found_names(taken.searches[at]):
            tools = (await _schemas(self._client, names)).rendered_tools
        found = {"type": "tool_search_output", "execution": "client", "status": "completed"}
        return {**found, "call_id": call.call_id, "tools": tools}

    async def _follow(self) -> None:
        """Lists the servers again that said so since, and those that could not be listed.

        One that failed is left for 30 s.
        """
        await asyncio.gather(*map(self._list_again, sorted(self._changed)))

    async def _list_again(self, name: str) -> None:
        paused_until = self._paused_until.get(name)
        is_paused = paused_until is not None and self._clock() < paused_until
        if self._list is None or is_paused:
            return
        self._changed.discard(name)  # The next request lists later changes.
        listed = False
        try:
            listed = await self._list(name)
        except Exception as error:
            _LOG.warning("toolgate: changed tools of %s can't be followed: %s", name, causes(error))
        finally:
            if not listed:
                self._changed.add(name)
        self._paused_until.pop(name, None)
        if not listed:
            self._paused_until[name] = self._clock() + _PAUSE_SECONDS

    def _names(self) -> dict[str, tuple[str, str]]:
        """The tools' servers and own names, by the names that the model sees."""
        return {
            model_name: (server, name)
            for server in self._served.names
            for name, model_name in self._served.model_names(server).items()
        }

    def _is_own(self, call: Call) -> bool:
        return call.tool in self._own_names

    def _inner(self, call: Call) -> Any:
        """The arguments of a call, which may stand in an envelope."""
        if call.tool != CALL_TOOL:
            return call.arguments
        written = call.arguments
        text = written if isinstance(written, str) else json.dumps(dict(written))
        held = opened(call.tool, text)
        return {} if held is None else held.arguments


async def _listed(served: ServedTools, name: str, session: Any) -> bool:
    """Registers what a server lists.

    Returns:
        False for one that can't be listed and never was.
    """
    try:
        tools = await listed_tools(name, session)
    except Exception as error:
        if served.is_registered(name):
            raise
        await served.leave_out(name, error)
        return False
    await served.register(name, tools)
    return True


def _is_ours_to_answer(item: Mapping[str, Any]) -> bool:
    """Returns True for a search of the Responses API that the provider does not execute itself."""
    return item.get("type") == "tool_search_call" and item.get("execution") != "server"


def _found_names(text: str) -> list[str]:
    """The names of the tools in the answer to a search."""
    return [tool["name"] for tool in json.loads(text).get("tools", ())]


def _told(searches: Sequence[str]) -> list[dict[str, Any]]:
    """Messages of the developer's for what answers to OpenAI's own searches have no place for.

    They say why a search found nothing, or how many tools are deferred in all.
    """
    reasons = [_reason(text) for text in searches if not _found_names(text)]
    if not reasons and searches:
        count = json.loads(searches[-1]).get("deferred_tools")
        reasons = [{"deferred_tools": count}] if count else []
    return [{"role": "developer", "content": text_of(reason)} for reason in reasons]


def _reason(text: str) -> dict[str, Any]:
    """The answer of a search that found nothing, as the developer may say it.

    The search's own words are left out: the model may have them from a tool's result, and a
    developer's message ranks above the user's.
    """
    answer: dict[str, Any] = json.loads(text)
    if "message" in answer and "error" not in answer:
        answer["message"] = _NOTHING + (_LATER if answer.get("pending_servers") else "")
    return answer


def _read(result: Any) -> Any:
    """The text of an MCP result.

    Raises:
        RuntimeError: the server calls it an error.
    """
    texts = (getattr(part, "text", None) for part in result.content)
    text = "\n".join(text for text in texts if isinstance(text, str))
    if attribute(result, "is_error", "isError"):
        raise RuntimeError(text or "the tool failed")
    return text or attribute(result, "structured_content", "structuredContent") or text


async def _schemas(client: Client | AsyncClient, names: list[str]) -> Any:
    if isinstance(client, AsyncClient):
        return await client.batch_get_tool_schemas(names, render="openai_responses")
    return await asyncio.to_thread(client.batch_get_tool_schemas, names, render="openai_responses")


def _name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function", tool)
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))
