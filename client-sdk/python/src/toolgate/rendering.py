"""Tools in the format of a provider's API, as the service renders them.

    turn = client.route("what did I promise the team last week?", render="gemini")
    for loss in turn.rendered.losses:
        log.info("%s%s: %s", loss.tool, loss.pointer, loss.note)

Rendering the same tools gives the same text (by `json.dumps`), so that prompt caches hold.

With a `strategy`, `route` puts the whole request together: tools, and messages that carry those of
this turn.

    render = RenderOptions("anthropic", strategy="auto", search_tool=True, ledger=ledger)
    turn = client.route(text, state={"messages": messages}, handle=handle, render=render)
    request = turn.request
    anthropic.beta.messages.create(tools=request.tools, messages=request.messages, ...)
    handle, ledger = turn.handle, request.ledger
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from toolgate._gen.v1 import router_pb2
from toolgate.enums import PromptStrategy, StrategyReason, ToolFormat, from_wire, to_wire
from toolgate.state import json_list

UNSUPPORTED_MODELS: tuple[str, ...] = ("haiku", "claude-2", "claude-3", "claude-instant")
"""Parts of the names of models that take no `defer_loading`. A model not named here takes it."""


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """Options of rendering. A `ToolFormat` alone is one without further options."""

    format: ToolFormat | str
    """"openai_chat", "openai_responses", "anthropic", "gemini" or "mcp"."""
    search_tool: bool = False
    """True: the definition of the search stands before the tools, for `client.answer_search`. With
    a `strategy`: tools may be deferred, since the agent answers searches; else all are sent."""
    cache_breakpoint: bool = False
    """Anthropic's: True ends a cached prefix with the last definition (`cache_control`)."""
    defer_loading: bool = False
    """Anthropic's: True marks the tools as seen only after a search or a `tool_reference`."""
    strategy: PromptStrategy | str | None = None
    """Asks `route` for the messages too: "auto", "pass", "native", "envelope" or "cut". It needs
    `messages` in the state. None: definitions alone."""
    own_tools: Iterable[Any] = ()
    """The agent's own tools in the format, sent before the others as they are. Only with
    `strategy`."""
    ledger: str = ""
    """`request.ledger` of the turn before. Only with `strategy`."""
    without_native: bool = False
    """True: "auto" never takes "native", for libraries that can't send tools amid a conversation.
    Only with `strategy`."""

    def to_proto(self) -> router_pb2.RenderOptions:
        """Returns the wire's form.

        Raises:
            TypeError: own tools that JSON cannot carry.
            ValueError: no such format or strategy.
        """
        strategy = self.strategy or PromptStrategy.UNSPECIFIED
        own_tools = list(self.own_tools)
        options = router_pb2.RenderOptions(
            format=to_wire(router_pb2.ToolFormat, "TOOL_FORMAT_", self.format),
            search_tool=self.search_tool,
            strategy=to_wire(router_pb2.PromptStrategy, "PROMPT_STRATEGY_", strategy),
            own_tools_json=json_list(own_tools, "own_tools") if own_tools else "",
            ledger=self.ledger,
            without_native=self.without_native,
        )
        if self.cache_breakpoint or self.defer_loading:
            options.anthropic.cache_breakpoint = self.cache_breakpoint
            options.anthropic.defer_loading = self.defer_loading
        return options


Render = RenderOptions | ToolFormat | str
"""Values of `render` arguments."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A part of a registered tool that the provider's format can't express."""

    tool: str
    """The tool's model-facing name."""
    pointer: str
    """Where, as a JSON Pointer into the registered `inputSchema`; "" is the whole."""
    keyword: str
    """The keyword at fault; "name" for the tool's own name, "tools" for one tool too many."""
    note: str
    """The outcome, in words."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Request to the model in this turn."""

    tools: list[dict[str, Any]]
    """The definitions, for `tools`; the agent's own first. For Gemini: `functionDeclarations`."""
    messages: list[dict[str, Any]]
    """The messages: the agent's, with what was added in its place. The agent keeps its own without
    the additions."""
    betas: tuple[str, ...]
    """Names of betas that the request needs, for the header `anthropic-beta`; empty: none."""
    ledger: str
    """Additions and their places: `ledger` of the next turn's `RenderOptions`. Opaque."""
    strategy: PromptStrategy
    """The strategy that was used."""
    reason: StrategyReason
    """Its reason."""
    reason_message: str
    """The same for a reader."""

    @classmethod
    def from_proto(cls, message: router_pb2.RenderedTools) -> "ModelRequest":
        """Reads the wire's form."""
        strategy, reason = router_pb2.PromptStrategy, router_pb2.StrategyReason
        return cls(
            tools=json.loads(message.tools_json),
            messages=json.loads(message.messages_json),
            betas=tuple(message.betas),
            ledger=message.ledger,
            strategy=from_wire(PromptStrategy, strategy, "PROMPT_STRATEGY_", message.strategy),
            reason=from_wire(StrategyReason, reason, "STRATEGY_REASON_", message.reason),
            reason_message=message.reason_message,
        )


@dataclass(frozen=True, slots=True)
class Rendered:
    """Definitions in a provider's format."""

    tools: list[dict[str, Any]]
    """The definitions, in the order of the tools. A tool that can't be expressed is left out."""
    losses: tuple[Loss, ...]
    """Keywords that the format can't express. Gate still holds calls to the registered schema."""
    request: ModelRequest | None = None
    """Request to the model; None without a `strategy`."""

    @classmethod
    def from_proto(cls, message: router_pb2.RenderedTools) -> "Rendered":
        """Reads the wire's form."""
        losses = (
            Loss(loss.model_name, loss.pointer, loss.keyword, loss.message)
            for loss in message.losses
        )
        request = ModelRequest.from_proto(message) if message.messages_json else None
        return cls(json.loads(message.tools_json), tuple(losses), request)


def render_to_proto(render: Render | None) -> router_pb2.RenderOptions | None:
    """Returns the wire's form of a `render` argument.

    Raises:
        TypeError: an argument of another type.
        ValueError: no such format.
    """
    if render is None:
        return None
    if isinstance(render, str):
        return RenderOptions(render).to_proto()
    if not isinstance(render, RenderOptions):
        raise TypeError(f"render is a format or RenderOptions, not {type(render).__name__}")
    return render.to_proto()


def rendered_from_proto(
    message: router_pb2.RouteResponse
    | router_pb2.SearchToolsResponse
    | router_pb2.BatchGetToolSchemasResponse,
) -> Rendered | None:
    """Returns the rendered tools of an answer; None when no format was asked for."""
    return Rendered.from_proto(message.rendered) if message.HasField("rendered") else None


def tools_of(rendered: Rendered | None) -> list[dict[str, Any]]:
    """Returns the rendered tools.

    Raises:
        ValueError: no format was asked for.
    """
    if rendered is None:
        known = (name.lower() for name in ToolFormat if name != ToolFormat.UNSPECIFIED)
        raise ValueError(f"the tools were not rendered: ask with render=, {' or '.join(known)}")
    return rendered.tools


def request_of(rendered: Rendered | None) -> ModelRequest:
    """Returns what to send to the model.

    Raises:
        ValueError: no strategy was asked for.
    """
    if rendered is None or rendered.request is None:
        raise ValueError(
            'no strategy was asked for: route with render=RenderOptions(format, strategy="auto")'
        )
    return rendered.request


def can_defer(model: str, unsupported: Iterable[str] = UNSUPPORTED_MODELS) -> bool:
    """Returns True if a model takes `defer_loading` and `tool_reference`.

    Args:
        model: The model's name.
        unsupported: Parts of the names of models that don't.
    """
    return not any(part.lower() in model.lower() for part in unsupported)
