"""Adds up what a conversation costs, request by request, for its report."""

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolgate._endpoints import Endpoint
from toolgate.enums import ContextWarning
from toolgate.offering import SEARCH_TOOL
from toolgate.rendering import ModelRequest
from toolgate.report import SAID, Price, Report
from toolgate.routing import RouteResult

_CALL_TOOL = "toolgate_call_tool"
_BYTES_A_TOKEN = 4
_ADDING = ('"tool_addition"', '"additional_tools"', "[Toolgate] More tools.")
"""Marks of messages that add tools."""
_NAME = re.compile(r'\\?"name\\?":\s?\\?"([\w.-]+)')
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


class Tally:
    """Costs of a conversation so far; a JSON object keeps them."""

    def __init__(self, kept: Mapping[str, Any] | None = None) -> None:
        """Begins anew, or goes on with what `to_dict` gave."""
        kept = kept or {}
        self._counts: dict[str, int] = dict(kept.get("counts", {}))
        self._strategies: dict[str, int] = dict(kept.get("strategies", {}))
        self._prices: list[float] | None = list(kept.get("prices", [0.0, 0.0, 0.0])) or None
        self._warnings: list[str] = list(kept.get("warnings", []))
        self._tokens: dict[str, int] = dict(kept.get("tokens", {}))
        self._last: dict[str, Any] = dict(kept.get("last", {}))
        self._rho: float | None = kept.get("rho")
        self._highest_rho: float | None = kept.get("highest_rho")

    def to_dict(self) -> dict[str, Any]:
        """Returns what to keep of it: a JSON object."""
        return {
            "counts": self._counts,
            "strategies": self._strategies,
            "prices": self._prices or [],
            "warnings": self._warnings,
            "tokens": self._tokens,
            "last": self._last,
            "rho": self._rho,
            "highest_rho": self._highest_rho,
        }

    def searched(self) -> None:
        """Counts a search of the model's."""
        self._count("searches", 1)

    def add(self, turn: RouteResult, endpoint: Endpoint, log: logging.Logger) -> None:
        """Adds a request; logs warnings of the service that the conversation had not."""
        for warning in turn.accounting.warnings:
            if warning not in self._warnings:
                self._warnings.append(warning.value)
                _tell(log, warning)
        self._rho = turn.accounting.conversation_rho
        if self._rho is not None:
            self._highest_rho = max(self._rho, self._highest_rho or 0.0)
        rendered = turn.rendered
        request = None if rendered is None else rendered.request
        active = [tool.model_name for tool in turn]
        self._tokens = {} if request is None else self._tokens
        self._tokens.update((tool.model_name, tool.schema_tokens) for tool in turn)
        offers = turn.deferral.offer_search
        routed = turn.accounting.phase2_tokens + (SEARCH_TOOL.schema_tokens if offers else 0)
        shown = routed if request is None else self._shown(request)
        strategy = "cut" if request is None else request.strategy.lower()
        self._strategies[strategy] = self._strategies.get(strategy, 0) + 1
        said, everything = turn.accounting.conversation_tokens, turn.accounting.full_catalog_tokens
        self._count("requests", 1)
        self._count("shown", shown)
        self._count("all", everything)
        before = self._last
        tools = active if request is None else [request.tools, list(request.betas)]
        self._last = {
            "tools": _digest([tools]),
            "active": _digest([active]),
            "shown": shown,
            "routed": routed,
            "said": said,
            "messages": None if request is None else len(request.messages),
            "begin": "" if request is None else _digest(request.messages),
        }
        rates = Rates.of(endpoint)
        if rates is None or self._prices is None:
            self._prices = None
            return
        behind = before.get("said", 0)
        shared = self._shared(before, request)
        anew = before["routed"] + behind if before.get("active") == self._last["active"] else 0
        prompts = (
            (shown + said, shared),
            (everything + said, everything + behind if before else 0),
            (routed + said, anew),
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
            strategies=dict(self._strategies),
            warnings=tuple(ContextWarning(warning) for warning in self._warnings),
            rho=self._rho,
            highest_rho=self._highest_rho,
        )

    def _count(self, what: str, more: int) -> None:
        self._counts[what] = self._counts.get(what, 0) + more

    def _shown(self, request: ModelRequest) -> int:
        """Returns the tokens of the definitions in a request, without the agent's own tools."""
        defined = {_name(tool) for tool in request.tools}
        texts = [json.dumps(message, ensure_ascii=False) for message in request.messages]
        adding = [text for text in texts if any(sign in text for sign in _ADDING)]
        names = defined | {name for text in adding for name in _NAME.findall(text)}
        self._tokens = {name: n for name, n in self._tokens.items() if name in names}
        tokens = sum(self._tokens.values())
        for tool in request.tools:
            if _name(tool) == SEARCH_TOOL.model_name or tool.get("type") == "tool_search":
                tokens += SEARCH_TOOL.schema_tokens
            elif _name(tool) == _CALL_TOOL:
                tokens += len(json.dumps(tool)) // _BYTES_A_TOKEN
        return tokens

    def _shared(self, before: Mapping[str, Any], request: ModelRequest | None) -> int:
        """Returns how many tokens the request has in common with the beginning of the last."""
        if not before or before["tools"] != self._last["tools"]:
            return 0
        if request is None or before["messages"] is None:
            same = request is None and before["messages"] is None
        else:
            same = _digest(request.messages[: before["messages"]]) == before["begin"]
        return int(before["shown"] + before["said"] if same else 0)


_told: set[tuple[str, ContextWarning]] = set()
"""The names of the logs that have a warning which most conversations begin with."""


def _tell(log: logging.Logger, warning: ContextWarning) -> None:
    """Logs a warning that a conversation has for the first time.

    That of low utilisation once in a process: a conversation is short before it is long.
    """
    if warning is ContextWarning.LOW_UTILISATION:
        if (log.name, warning) in _told:
            return
        _told.add((log.name, warning))
    log.warning("toolgate: %s", SAID.get(warning, warning.lower()))


def _name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function", tool)
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""


def _digest(parts: Iterable[Any]) -> str:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(json.dumps(part, ensure_ascii=True, default=str).encode())
        sha.update(b"\n")
    return sha.hexdigest()[:16]
