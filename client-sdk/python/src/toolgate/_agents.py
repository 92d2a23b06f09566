"""Parts that all agent frameworks share: one conversation's turns, calls and searches."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar, cast

import grpc

from toolgate._endpoints import Endpoint
from toolgate._listed import is_lost
from toolgate._requests import RouteArguments, refuse_unknown
from toolgate._served import ServedTools
from toolgate._tally import Sent, Tally
from toolgate.aio import AsyncClient
from toolgate.client import Client
from toolgate.enums import DeferralReason, ErrorReason, PromptStrategy
from toolgate.errors import ToolgateError
from toolgate.gating import Call, GateVerdict
from toolgate.offering import SEARCH_TOOL, SearchAnswer
from toolgate.rendering import ModelRequest, RenderOptions
from toolgate.report import Report
from toolgate.routing import Intent, RouteResult
from toolgate.state import AgentState, texts

SEARCH = SEARCH_TOOL.model_name
"""The search's name."""
CALL_TOOL = "toolgate_call_tool"
"""The tool through which a model calls those that are described in the conversation."""
NOT_GATED = {
    "error": "gate_unavailable",
    "message": "Whether this call may run could not be checked just now, so it did not run. "
    "Try it once more, or go on without it.",
}
NOT_SEARCHED = {
    "error": "search_unavailable",
    "message": "Tools could not be searched just now. Try it once more, or go on without it.",
}
OBSERVATION_WEIGHT = 0.5
BYTES_A_TOKEN = 4
"""Of English text, about."""
OPENAI_TOOLS = 128
"""The most tools that OpenAI takes in a request; it answers more of them with an error."""
REFUSED_CALL = "toolgate_refused_call"
"""The tool that answers calls of names that no tool has, where the framework itself would fail or
list every tool. No model is shown it."""

_MODEL_FACING = "mcp__"
_INTENT_BYTES = 16 * 1024
_FAULTS = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)
_FILLED = frozenset({"state", "handle", "known_pool_revision"})
_GRANTS = ("scopes", "milestones", "attributes")
_STRATEGIES = (
    PromptStrategy.AUTO,
    PromptStrategy.CUT,
    PromptStrategy.ENVELOPE,
    PromptStrategy.PASS,
)
_MESSAGES_CHARS = 768 * 1024
"""The most of a conversation whose texts are sent, as escaped JSON, which is never shorter than
UTF-8; the service takes 1 MiB by default."""
_TEXTS = frozenset({"content", "output"})
_SHORT_CHARS = 1024
_NAMES_TOLD = 10
_NAME_CHARS = 128
_many_told: set[str] = set()
"""The names of the logs that have the warning of `tell_many`."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of one call."""

    refusal: str
    """JSON for the model, in place of the tool's answer; "" when the call may run."""
    tool: str = ""
    """The name of the agent's tool to call, however the model spelt it; "" when refused."""
    arguments_json: str = ""
    """The arguments to call with, where they are others than the model's."""


class Turns:
    """The turns of one conversation, whose tools somebody else calls; in one task at a time.

    When Toolgate can't be reached, the model keeps the active set that it has, or sees all tools;
    calls are refused until they can be checked.
    """

    def __init__(
        self,
        client: Client | AsyncClient,
        route: RouteArguments,
        *,
        search: bool,
        log: logging.Logger,
        served: ServedTools | None = None,
    ) -> None:
        self._client = client
        self._served = served
        self._route = route_of(route, search=search)
        self._search = search
        self._log = log
        self._grants: Mapping[str, Any] = {}
        self._entries: list[Any] = []
        self._history: Mapping[str, Any] | None = None
        self._ledger = ""
        self._is_covered = False
        self._tally = Tally()
        self._searching = asyncio.Lock()
        self.handle = ""
        """The handle of the last turn; "" before the first."""
        self.active: list[str] | None = None
        """The names of the tools to show; None before the first turn: all but the search."""
        self.is_killed = False
        """True if the operator's kill switch was thrown in the last turn."""

    def snapshot(self) -> dict[str, Any]:
        """Returns what to keep of it: a JSON object."""
        kept = {"handle": self.handle, "active": self.active, "history": self._history}
        kept["tally"] = self._tally.to_dict()
        return {**kept, "ledger": self._ledger} if self._ledger else kept

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Goes on where a snapshot was taken."""
        self.handle, self.active = snapshot["handle"], snapshot["active"]
        self._history = snapshot.get("history")
        self._ledger = snapshot.get("ledger", "")
        self._tally = Tally(snapshot.get("tally"))

    def report(self) -> Report:
        """Reports the costs of the conversation so far."""
        return self._tally.report()

    def shows(self, name: str) -> bool:
        """Returns True if the model is to see a tool, or the search, this turn."""
        return name in self.active if self.active is not None else name != SEARCH

    def read(self, entries: Iterable[Any], grants: Mapping[str, Any]) -> None:
        """Takes the conversation, by whose state calls are gated.

        Args:
            entries: The messages in the form of a provider's API, of which the service reads what
                was called and found. Results of tools only where they are the framework's own.
            grants: Scopes, milestones and attributes, which no history can say.
        """
        self._entries = fitting(entries)
        self._grants = grants
        self._is_covered = False

    async def turn(
        self,
        intents: list[Intent],
        history_tokens: int | None,
        endpoint: Endpoint,
        render: RenderOptions | None = None,
    ) -> ModelRequest | None:
        """Before the model, after `read`: routes.

        Args:
            intents: Texts of what is wanted; none: the active set stays.
            history_tokens: Tokens of the messages; None: not told.
            endpoint: The model that is asked.
            render: A strategy, which the messages that were read are sent by. Its ledger is filled
                in.

        Returns:
            What to send to the model by the strategy; None without one, or where nothing was
            routed.
        """
        self._searching = asyncio.Lock()  # Of this event loop, whichever the last turn ran in.
        if not intents:
            return None
        try:
            route = with_history(endpoint.told(self._route), history_tokens)
            if render is None:
                route = unlisted(route)
            else:
                route = {**route, "render": replace(render, ledger=self._ledger)}
            turn = await self._routed(intents, route)
        except ToolgateError as error:
            raise_unless_fault(error, self._log)
            return None
        if turn.conversation_snapshot is not None:
            self._history = turn.conversation_snapshot
            self._is_covered = True
        self.is_killed = turn.deferral.reason is DeferralReason.KILL_SWITCH
        offers = offers_search(turn, self.active or ())
        search = [SEARCH] if offers and self._search else []
        self.active = [*search, *(tool.model_name for tool in turn)]
        self.handle = turn.handle
        own = 0 if render is None else len(list(render.own_tools))
        self._tally.add(turn, Sent(self.active, own), endpoint, self._log)
        if render is None:
            return None
        self._ledger = turn.request.ledger
        return turn.request

    async def gate(self, calls: Sequence[Call], managed: Collection[str]) -> list[Verdict]:
        """After the model: may these calls run? One verdict for each.

        Args:
            calls: The model's calls, whatever names they have.
            managed: The names of the tools that the agent has.
        """
        if not calls:
            return []
        if not self.handle:
            return [Verdict(text_of(NOT_GATED)) for _ in calls]
        handle, state = self.handle, self._state()
        try:
            verdicts = await self._ask(lambda client: client.gate(handle, calls, state=state))
        except ToolgateError as error:
            raise_unless_fault(error, self._log)
            return [Verdict(text_of(NOT_GATED)) for _ in calls]
        return verdicts_of(verdicts, calls, managed)

    async def search(self, call: Call, managed: Collection[str]) -> tuple[str, bool]:
        """Runs the model's search: the text for the model, and whether it failed.

        Args:
            call: The model's call.
            managed: The names of the tools that the agent has.
        """
        async with self._searching:  # Each search adds to the handle of the one before.
            handle, state = self.handle, self._state()
            if not handle:
                return text_of(NOT_SEARCHED), True
            try:
                answer = await self._ask(
                    lambda client: client.answer_search(call, handle=handle, state=state)
                )
            except ToolgateError as error:
                raise_unless_fault(error, self._log)
                return text_of(NOT_SEARCHED), True
            self.handle = answer.handle
            self._tally.searched()
            shown = shown_of(answer, managed, self._route.get("servers"))
            return shown.text, shown.failed

    def _state(self) -> AgentState:
        """The agent's state: the last snapshot, and the messages while it does not cover them."""
        messages = [] if self._is_covered else self._entries
        return AgentState(messages=messages, snapshot=self._history, **self._grants)

    async def _routed(self, intents: list[Intent], route: RouteArguments) -> RouteResult:
        """Routes; registers the MCP servers again if the service has lost them."""
        handle, state = self.handle, self._state()
        try:
            turn: RouteResult = await self._ask(
                lambda client: client.route(intents, state=state, handle=handle, **route)
            )
        except ToolgateError as error:
            if handle and error.reason == ErrorReason.HANDLE_INVALID:
                self.handle = ""
                return await self._routed(intents, route)
            if self._served is None or not is_lost(error):
                raise
        else:
            if self._served is None or not self._served.has_lost(turn):
                return turn
        await self._served.register_again()
        again: RouteResult = await self._ask(
            lambda client: client.route(intents, state=state, handle=handle, **route)
        )
        return again

    async def _ask(self, ask: Callable[[Any], Answer | Awaitable[Answer]]) -> Answer:
        """Calls the client, whichever it is: the blocking one in a thread."""
        if isinstance(self._client, AsyncClient):
            return await cast(Awaitable[Answer], ask(self._client))
        return cast(Answer, await asyncio.to_thread(ask, self._client))


def offers_search(turn: RouteResult, active: Collection[str]) -> bool:
    """Returns true if the model is to see the search.

    Once offered, it stays, since taking it away would cost the cache of what follows it; but not
    where the operator's kill switch is thrown.

    Args:
        turn: The turn that was routed.
        active: The names that the model saw in the turn before.
    """
    is_killed = turn.deferral.reason is DeferralReason.KILL_SWITCH
    return turn.deferral.offer_search or (SEARCH in active and not is_killed)


def verdicts_of(
    verdicts: Iterable[GateVerdict], calls: Iterable[Call], managed: Collection[str]
) -> list[Verdict]:
    """Returns what becomes of the calls of an agent that may not have all tools of the catalog."""
    return [
        _verdict(verdict, call.tool, managed) for verdict, call in zip(verdicts, calls, strict=True)
    ]


def _verdict(verdict: GateVerdict, called: str, managed: Collection[str]) -> Verdict:
    if verdict.allowed and verdict.model_name in managed:
        return Verdict("", verdict.model_name, verdict.arguments_json)
    if verdict.allowed:
        return Verdict(no_such_tool(called))
    had = tuple(name for name in verdict.available_tools if name in managed)
    return Verdict(text_of(replace(verdict, available_tools=had).to_tool_error()))


def opened(name: str, arguments: str) -> Call | None:
    """Returns the call in an envelope; None for other calls, and for one that holds none."""
    if name != CALL_TOOL:
        return None
    try:
        held = json.loads(arguments)
    except ValueError:
        return None
    if not isinstance(held, dict) or not isinstance(held.get("name"), str):
        return None
    inner = held.get("arguments", {})
    text = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
    return Call(held["name"], text)


def checked_strategy(
    strategy: PromptStrategy | str, *, search: bool, native: bool = False
) -> PromptStrategy | None:
    """Returns the strategy; None for "cut", which needs no help of Route's.

    Args:
        strategy: The caller's choice, in letters of any case.
        search: True if the model may search. Without, "auto" is "cut": Route would send the whole
            catalog, whatever mode of deferral the caller chose.
        native: True if the framework's requests can carry tools amid a conversation.

    Raises:
        ValueError: no such strategy, or one that the frameworks can't send.
    """
    asked = strategy.upper()
    possible = (*_STRATEGIES, PromptStrategy.NATIVE) if native else _STRATEGIES
    if asked not in possible:
        known = ", ".join(f'"{one.lower()}"' for one in possible)
        why = ""
        if asked == PromptStrategy.NATIVE:
            why = ": the framework's requests can't carry tools amid a conversation"
        raise ValueError(f"strategy is one of {known}, not {strategy!r}{why}")
    is_cut = asked == PromptStrategy.CUT or (asked == PromptStrategy.AUTO and not search)
    return None if is_cut else PromptStrategy(asked)


def no_such_tool(called: str) -> str:
    """Returns the answer to a call of a tool that the agent does not have."""
    shown = json.dumps(called[:_NAME_CHARS], ensure_ascii=False)
    message = f"There is no tool {shown}. Call one of the tools that you see."
    return text_of({"error": "unknown_tool", "message": message})


def route_of(route: RouteArguments, *, search: bool) -> RouteArguments:
    """Returns the arguments of each `route`.

    A model that can't search is sent every tool, unless the caller chose a mode.
    """
    return route if search or "deferral" in route else {**route, "deferral": "off"}


def unlisted(route: RouteArguments) -> RouteArguments:
    """Returns the arguments of a `route` without a strategy.

    The prompt lists nothing of the catalog beside the active set, unless the caller says that it
    does.
    """
    return {"prompt_listing": "none", **route}


def estimated_tokens(texts: Iterable[str]) -> int:
    """Returns an estimate of what texts cost: a token for four bytes of UTF-8, and at least 1.

    0 would say that the tools stand behind the messages.
    """
    return max(1, sum(len(text.encode(errors="replace")) for text in texts) // BYTES_A_TOKEN)


def system_tokens(texts: Iterable[str]) -> int:
    """Returns an estimate of what a system prompt costs; 0 without any text."""
    said = [text for text in texts if text]
    return estimated_tokens(said) if said else 0


def with_history(route: RouteArguments, history_tokens: int | None) -> RouteArguments:
    """Returns the arguments of one `route`, with the tokens of the messages so far.

    What the caller said for every turn stands.
    """
    if history_tokens is None or "history_tokens" in route:
        return route
    return {**route, "history_tokens": history_tokens}


@lru_cache(maxsize=256)
def tell_own(log: logging.Logger, names: tuple[str, ...]) -> None:
    """Warns, once in a process, of the tools that an agent has beside Toolgate's."""
    if not names:
        return
    more = f" and {len(names) - _NAMES_TOLD} more" if len(names) > _NAMES_TOLD else ""
    log.warning(
        "toolgate: %d %s beside Toolgate's (%s%s): sent with every request, and no call of them "
        "passes Gate",
        len(names),
        "tool is on the agent" if len(names) == 1 else "tools are on the agent",
        ", ".join(names[:_NAMES_TOLD]),
        more,
    )


def tell_many(log: logging.Logger, count: int, left_out: int = 0) -> None:
    """Warns, once in a process, of more tools for a request than a provider takes.

    Args:
        log: Where to.
        count: Tools to show: the agent's own, the search and the active set.
        left_out: Number of them that are not sent.
    """
    if count <= OPENAI_TOOLS or log.name in _many_told:
        return
    _many_told.add(log.name)
    log.warning(
        "toolgate: %d tools are to be shown to the model, and OpenAI takes %d tools in a request, "
        "Gemini 512%s. Let the model search (search=True) and leave deferral and top_k at their "
        "defaults. While Toolgate can't be reached, all tools are shown: give an agent only those "
        "that it needs.",
        count,
        OPENAI_TOOLS,
        f": {left_out} are left out" if left_out else "",
    )


def fits(entries: Iterable[Any]) -> bool:
    """Returns true if one call takes entries as they are."""
    return sum(map(_size, entries)) <= _MESSAGES_CHARS


def _size(entry: Any) -> int:
    return len(json.dumps(entry, ensure_ascii=True, default=str))


def fitting(entries: Iterable[Any]) -> list[Any]:
    """Returns entries that one call takes: the texts of the oldest are left out, and nothing else.

    What was called, found and refused stays, as do the newest texts.
    """
    fitted = []
    left = _MESSAGES_CHARS
    for entry in reversed(list(entries)):
        left -= _size(entry)
        fitted.append(entry if left >= 0 else _without_text(entry))
    fitted.reverse()
    return fitted


def _without_text(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: "" if key in _TEXTS and len(str(part)) > _SHORT_CHARS else part
        for key, part in entry.items()
    }


def carried(text: str) -> str:
    """A text that the wire carries: without lone surrogates."""
    return text.encode(errors="replace").decode()


def intents_of(said: str, observed: str) -> list[Intent]:
    """Texts of the user's last message and of a tool's answer since; without empty ones."""
    intents = [Intent(cut(said)), Intent(cut(observed), OBSERVATION_WEIGHT)]
    return [intent for intent in intents if intent.text.strip()]


def cut(text: str) -> str:
    """A text that an intent can hold."""
    return text.encode(errors="ignore")[:_INTENT_BYTES].decode(errors="ignore")


def shown_of(
    answer: SearchAnswer, managed: Collection[str], servers: Iterable[str] | None
) -> SearchAnswer:
    """The answer without tools that an agent does not have, or that its turns leave out.

    It counts no more deferred tools than the agent has.
    """
    if answer.found is None:
        return answer
    tools = tuple(
        tool
        for tool in answer.tools
        if tool.model_name in managed and (servers is None or tool.server in servers)
    )
    said = answer.found.message or ("" if tools else "No tool was found.")
    deferred = min(answer.found.deferred_tools, len(managed))
    found = replace(answer.found, tools=tools, message=said, deferred_tools=deferred)
    return SearchAnswer.from_result(found)


def is_model_facing(name: str) -> bool:
    """Returns True if a name looks like one that the catalog gave."""
    return name.startswith(_MODEL_FACING)


def refuse_arguments(taker: str, route: RouteArguments, own: Iterable[str]) -> None:
    """Refuses arguments that `route` does not have, or that are filled in by itself.

    Args:
        taker: The receiver of the arguments.
        route: The arguments.
        own: Further names that it takes.

    Raises:
        TypeError: there are some.
    """
    filled = route.keys() & _FILLED
    if filled:
        raise TypeError(f"the {taker} fills {', '.join(sorted(filled))} itself")
    known = {*own, *RouteArguments.__annotations__} - _FILLED
    refuse_unknown(f"{taker}()", route, known)


def checked_grants(grants: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The grants, when they say nothing else.

    Raises:
        TypeError: no mapping, other keys, or a text where a list of texts belongs.
    """
    if not isinstance(grants, Mapping | None):
        raise TypeError(f"grants is a mapping, or a function that gives one, not {grants!r}")
    refuse_unknown("grants", grants or (), _GRANTS)
    for name in ("scopes", "milestones"):
        texts((grants or {}).get(name, ()), name)
    return grants or {}


def text_of(error: Mapping[str, Any]) -> str:
    """A refusal as the text of a tool's answer."""
    return json.dumps(error, ensure_ascii=False)


def raise_unless_fault(error: ToolgateError, log: logging.Logger) -> None:
    """A fault of the service passes; a mistake in what was asked is the caller's to mend."""
    if error.code not in _FAULTS:
        raise error
    log.warning("toolgate: %s", error.reason or error.code.name)
