"""Adds up what a conversation costs, request by request, for its report."""

import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from toolgate._endpoints import Endpoint
from toolgate.enums import ContextWarning, PromptStrategy
from toolgate.offering import SEARCH_TOOL
from toolgate.rendering import ModelRequest
from toolgate.report import SAID, Price, Report
from toolgate.routing import RouteResult

_OURS = (SEARCH_TOOL.model_name, "toolgate_call_tool")
"""Names of the search and of the envelope, which Route counts as one."""
_BYTES_A_TOKEN = 4
_APART = 64
"""The newest messages of a request, which are compared one by one; those before them as one."""
_VERSION = re.compile(r"(gpt|gemini)-(\d+)(?:\.(\d+))?")


def _least_of_claude(model: str) -> int:
    """The least number of tokens that a model of Anthropic's caches, as the service has it."""
    if any(name in model for name in ("opus-4-5", "opus-4-6", "haiku-4-5")):
        return 4_096
    if any(name in model for name in ("opus-4-7", "sonnet-4-6", "haiku-3", "3-haiku", "3-5-haiku")):
        return 2_048
    if any(name in model for name in ("opus-5", "fable-5", "mythos-5")):
        return 512
    return 1_024


@dataclass(frozen=True, slots=True)
class Rates:
    """Rules by which an API prices the tokens of a prompt; those of the service's `price.rs`."""

    write: float
    """Price of a token that is written to the cache."""
    read: float
    """Price of a token that is read from the cache."""
    least: int
    """The least number of tokens of a prefix that is cached. A shorter prompt costs 1 a token."""
    step: int = 1
    """The number of tokens by which longer prefixes are told apart."""

    @classmethod
    def of(cls, endpoint: Endpoint) -> "Rates | None":
        """Returns the rates of an endpoint; None where they are not known."""
        named = _VERSION.search(endpoint.model.lower())
        version = (named[1], int(named[2]), int(named[3] or 0)) if named else ("", 0, 0)
        if endpoint.api == "anthropic":
            return cls(1.25, 0.1, _least_of_claude(endpoint.model.lower()))
        if endpoint.api == "gemini":
            return cls(1.0, 0.1, 2_048 if version[0] == "gemini" and version[1] < 3 else 4_096)
        is_openai = endpoint.api == "openai_responses" or version[0] == "gpt"
        is_later = version[0] == "gpt" and version[1:] >= (5, 6)
        return cls(1.25 if is_later else 1.0, 0.1, 1_024, 128) if is_openai else None

    def price_of(self, tokens: int, shared: int) -> float:
        """Returns the price of a prompt that shares its first tokens with an earlier one."""
        if tokens < self.least:
            return float(tokens)
        shared = min(shared, tokens)
        cached = shared - (shared - self.least) % self.step if shared >= self.least else 0
        return cached * self.read + (tokens - cached) * self.write


@dataclass(frozen=True, slots=True)
class Sent:
    """Contents of a request, as far as Route's answer does not say."""

    active: Sequence[str]
    """Names of the active set, and of the search where it is offered, in their order."""
    own: int = 0
    """The number of the agent's own definitions, which stand before the others."""
    is_whole: bool = True
    """True if the request is sent as Route put it together, where it did; False: with the active
    set in `tools`."""


@dataclass(frozen=True, slots=True)
class _Request:
    """Parts of a request, in the order of the provider's cache."""

    tools: list[list[Any]]
    """Of each definition its name, digest and tokens; 0 tokens of the agent's own."""
    messages: list[list[Any]]
    """Of messages beside each other their number, their digest and bytes."""
    behind: int
    """Tokens of the messages, with what was added to them."""
    said: int
    """Tokens of the messages without that."""
    form: float
    """Tokens of definitions in the API's form, as a share of those that are counted for all APIs: a
    few decide whether a short prompt is cached. 1 until a request says it, with all of its tools in
    `tools`."""
    catalog: int
    """Tokens of all definitions of the catalog, in the API's form."""
    active: list[str]
    """Names of the active set, and of the search where it is offered."""
    routed: int
    """Tokens of these, in the API's form."""

    @classmethod
    def of(cls, turn: RouteResult, sent: Sent, before: "_Request | None") -> "_Request":
        """Reads a turn."""
        told = turn.accounting
        counted = {SEARCH_TOOL.model_name: SEARCH_TOOL.schema_tokens}
        counted |= {tool.model_name: tool.schema_tokens for tool in turn}
        request = None if turn.rendered is None else turn.rendered.request
        form = _form(turn, before.form if before else 1.0)
        tools: list[list[Any]]
        if request is None or not sent.is_whole:
            tools = [[name, _digest([name]), counted.get(name, 0)] for name in sent.active]
            behind = told.conversation_tokens
        else:
            known = {name: tokens for name, _, tokens in (before.tools if before else ())}
            shown = told.phase1_tokens + told.phase2_tokens
            tools = _defined(request, sent.own, told.phase1_tokens, {**known, **counted})
            defined = sum(tokens for _, _, tokens in tools)
            if defined > shown:
                tools = [[*named, tokens * shown // defined] for *named, tokens in tools]
            behind = told.conversation_tokens + max(0, shown - defined)
        return cls(
            tools=tools,
            messages=[] if request is None else _messages(request.messages),
            behind=behind,
            said=told.conversation_tokens,
            form=form,
            catalog=int(told.full_catalog_tokens * form),
            active=list(sent.active),
            routed=int(sum(counted.get(name, 0) for name in sent.active) * form),
        )

    def shared_with(self, now: "_Request", messages: Sequence[Any]) -> int:
        """Returns the tokens at the beginning of a later request that are those of this one.

        Args:
            now: The later request.
            messages: Its messages.
        """
        same = 0
        for (_, before, tokens), (_, after, _) in zip(self.tools, now.tools, strict=False):
            if before != after:
                return same
            same += int(tokens)
        if len(self.tools) != len(now.tools):
            return same
        if not self.messages or not messages:
            return same + (self.behind if now.behind >= self.behind else 0)
        at, common = 0, 0
        for number, digest, size in self.messages:
            if _digest(messages[at : at + number]) != digest:
                break
            at += number
            common += int(size)
        written = sum(int(size) for _, _, size in self.messages)
        return same + self.behind * common // written

    def shared_by_all(self, now: "_Request") -> int:
        """Returns the same where both have all tools of the catalog."""
        return self.catalog + self._said_in(now) if self.catalog == now.catalog else 0

    def shared_anew(self, now: "_Request") -> int:
        """Returns the same where both have the active set alone."""
        return self.routed + self._said_in(now) if self.active == now.active else 0

    def _said_in(self, now: "_Request") -> int:
        """Returns the tokens of the messages; 0 where some were dropped since."""
        return self.said if now.said >= self.said else 0


class Tally:
    """Costs of a conversation so far; a JSON object keeps them."""

    def __init__(self, kept: Mapping[str, Any] | None = None) -> None:
        """Begins anew, or goes on with what `to_dict` gave."""
        kept = kept or {}
        self._counts: dict[str, int] = dict(kept.get("counts", {}))
        self._strategies: dict[str, int] = dict(kept.get("strategies", {}))
        self._prices: list[float] | None = list(kept.get("prices", [0.0, 0.0, 0.0])) or None
        self._unpriced: str = kept.get("unpriced", "")
        self._warnings: list[str] = list(kept.get("warnings", []))
        last = kept.get("last") or {}
        # What an older version kept of the last request is no beginning to compare with.
        self._last = (
            _Request(**last) if last.keys() == _Request.__dataclass_fields__.keys() else None
        )
        self._rho: float | None = kept.get("rho")
        self._highest_rho: float | None = kept.get("highest_rho")

    def to_dict(self) -> dict[str, Any]:
        """Returns what to keep of it: a JSON object."""
        return {
            "counts": self._counts,
            "strategies": self._strategies,
            "prices": self._prices or [],
            "unpriced": self._unpriced,
            "warnings": self._warnings,
            "last": None if self._last is None else asdict(self._last),
            "rho": self._rho,
            "highest_rho": self._highest_rho,
        }

    def searched(self) -> None:
        """Counts a search of the model's."""
        self._count("searches", 1)

    def add(self, turn: RouteResult, sent: Sent, endpoint: Endpoint, log: logging.Logger) -> None:
        """Adds a request; logs warnings of the service that the conversation had not."""
        told = turn.accounting
        for warning in told.warnings:
            if warning not in self._warnings:
                self._warnings.append(warning.value)
                _tell(log, warning)
        self._rho = told.conversation_rho
        if self._rho is not None:
            self._highest_rho = max(self._rho, self._highest_rho or 0.0)
        before, now = self._last, _Request.of(turn, sent, self._last)
        request = None if turn.rendered is None else turn.rendered.request
        is_whole = request is not None and sent.is_whole
        shown = told.phase1_tokens + told.phase2_tokens if is_whole else now.routed
        strategy = "cut" if request is None else request.strategy.lower()
        self._strategies[strategy] = self._strategies.get(strategy, 0) + 1
        self._count("requests", 1)
        self._count("shown", shown)
        self._count("all", told.full_catalog_tokens)
        self._last = now
        rates = Rates.of(endpoint)
        if rates is None:
            self._unpriced = self._unpriced or _unpriced(endpoint.model)
        if rates is None or self._prices is None:
            self._prices = None
            return
        messages = () if request is None else request.messages
        prompts = (
            (shown + now.said, before.shared_with(now, messages) if before else 0),
            (now.catalog + now.said, before.shared_by_all(now) if before else 0),
            (now.routed + now.said, before.shared_anew(now) if before else 0),
        )
        self._prices = [
            sum_ + rates.price_of(*prompt)
            for sum_, prompt in zip(self._prices, prompts, strict=True)
        ]

    def report(self) -> Report:
        """Returns the report."""
        priced = self._prices is not None and self._counts.get("requests", 0) > 0
        return Report(
            requests=self._counts.get("requests", 0),
            searches=self._counts.get("searches", 0),
            shown_tokens=self._counts.get("shown", 0),
            all_tools_tokens=self._counts.get("all", 0),
            price=Price(*self._prices) if priced and self._prices else None,
            unpriced=self._unpriced,
            strategies=dict(self._strategies),
            warnings=tuple(ContextWarning(warning) for warning in self._warnings),
            rho=self._rho,
            highest_rho=self._highest_rho,
        )

    def _count(self, what: str, more: int) -> None:
        self._counts[what] = self._counts.get(what, 0) + more


_told: set[tuple[str, ContextWarning]] = set()
"""The names of the logs that have a warning which most conversations begin with."""


def _unpriced(model: str) -> str:
    """Returns the reason that requests to a model have no price."""
    if not model:
        return "nothing says which model is asked"
    return (
        f"how {model} caches is not known behind Chat Completions; that of Anthropic's, OpenAI's "
        "(gpt-...) and Gemini's models is, and rules of other models can't be given"
    )


def _tell(log: logging.Logger, warning: ContextWarning) -> None:
    """Logs a warning that a conversation has for the first time.

    That of low utilisation once in a process: a conversation is short before it is long.
    """
    if warning is ContextWarning.LOW_UTILISATION:
        if (log.name, warning) in _told:
            return
        _told.add((log.name, warning))
    log.warning("toolgate: %s", SAID.get(warning, warning.lower()))


def _defined(
    request: ModelRequest, own: int, ours: int, counted: Mapping[str, int]
) -> list[list[Any]]:
    """Returns the name, the digest and the tokens of each definition in `tools`.

    Args:
        request: The request.
        own: The number of the agent's own definitions, which stand first.
        ours: Tokens of the search and of the envelope together.
        counted: Tokens of tools by their names.
    """
    sizes = [_size(tool) if _is_ours(tool) else 0 for tool in request.tools]
    defined: list[list[Any]] = []
    for at, tool in enumerate(request.tools):
        name, tokens = _name(tool), 0
        if sizes[at]:
            tokens = ours * sizes[at] // sum(sizes)
        elif at >= own:
            tokens = counted.get(name) or _size(tool) // _BYTES_A_TOKEN
        defined.append([name, _digest([tool]), tokens])
    return defined


def _form(turn: RouteResult, before: float) -> float:
    """Returns the share of `_Request.form`; that of before where the turn does not say it."""
    request = None if turn.rendered is None else turn.rendered.request
    counted = sum(tool.schema_tokens for tool in turn)
    if request is None or not counted:
        return before
    has_all = request.strategy in (PromptStrategy.CUT, PromptStrategy.PASS)
    return turn.accounting.phase2_tokens / counted if has_all else before


def _messages(messages: Sequence[Any]) -> list[list[Any]]:
    """Returns the number, the digest and the bytes of messages beside each other."""
    oldest = messages[:-_APART]
    groups = [*([oldest] if oldest else []), *([one] for one in messages[-_APART:])]
    return [[len(group), _digest(group), sum(map(_size, group))] for group in groups]


def _is_ours(tool: Mapping[str, Any]) -> bool:
    return _name(tool) in _OURS or tool.get("type") == "tool_search"


def _name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function", tool)
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""


def _size(part: Any) -> int:
    return len(_written(part).encode())


def _digest(parts: Sequence[Any]) -> str:
    return hashlib.sha256("\n".join(map(_written, parts)).encode()).hexdigest()[:12]


def _written(part: Any) -> str:
    # Half of a surrogate pair, which a cut text ends with, has no UTF-8.
    text = json.dumps(part, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode(errors="replace").decode()
