"""Turns plain Python arguments into wire requests, for both clients. No I/O but reading a Path."""

import json
import os
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypedDict

from toolgate._gen.v1 import catalog_pb2, router_pb2
from toolgate.catalog import ToolSettings
from toolgate.enums import (
    DeferralMode,
    Detail,
    PromptListing,
    RegisterMode,
    SelectionRule,
    TransportHint,
    TrustTier,
    to_wire,
)
from toolgate.gating import Call, checked_call
from toolgate.preconditions import Precondition
from toolgate.rendering import Render, render_to_proto
from toolgate.routing import Intent
from toolgate.state import StateLike, state_to_proto, texts

Intents = str | Intent | Sequence[str | Intent]
ToolsList = bytes | str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]
PolicyDocument = str | Mapping[str, Any]

_PERCENT = re.compile(r"100|[0-9]{1,2}")


class RouteArguments(TypedDict, total=False):
    """Optional arguments of `route`."""

    state: StateLike | None
    """The agent's calls and grants: AgentState or a dict with its keys. Default: none."""
    handle: str
    """The handle of the turn before: its tools keep their places. Default: a new conversation."""
    top_k: int
    """The most tools to choose, 1 to 100; pinned and kept ones come on top. Default: 10, or 3
    before a `signature_tail`."""
    threshold: float
    """The least overlap (cosine) of a chosen tool, -1 to 1. Default: 0.28."""
    schema_token_budget: int
    """The most cl100k_base tokens that newly promoted schemas may cost. Default: no cap."""
    active_token_budget: int
    """The most cl100k_base tokens that all schemas of the active set may cost: kept tools that the
    conversation has left behind go for new ones. Default: no cap."""
    history_tokens: int
    """Tokens of the messages behind the tools: the set is kept when changing it costs more in lost
    cache than it saves. 0: the tools stand directly before the message, and the set holds what the
    turn needs alone. Default: the cache is not counted; with `render.strategy` Route takes the
    messages' tokens."""
    selection_rule: SelectionRule | str
    """Rule that chooses tools: "tool_attention" is the rule of the paper "Tool Attention", whose
    `threshold` every chosen tool must reach by itself. Default: the server's own rule."""
    ignore_cache_cost: bool
    """Change the set even when the lost cache costs more. Default: False."""
    detail: Detail | str
    """Share of each tool that is sent: "names", "signatures" or "schemas" (the default)."""
    signature_tail: int
    """After the chosen tools, the next ones of the ranking as signatures, 0 to 100: they may be
    called like the others. Default: 0."""
    pinned_tools: Iterable[str]
    """Tools to have whatever their overlap, by model-facing or `server/name`. At most 100."""
    excluded_tools: Iterable[str]
    """Tools to leave out, named the same way. At most 1,000."""
    servers: Iterable[str]
    """Only these MCP servers. At most 100. Default: all."""
    context_window: int
    """The model's context window in tokens; asks for `rho` in the accounting."""
    system_tokens: int
    """cl100k_base tokens of the system prompt, for `rho`. Default: 0."""
    model: str
    """The model that will see the tools. Default: unknown."""
    explain: bool
    """Also answer with refusals and what would unlock them. Default: False."""
    active_set_limit: int
    """The most tools of the active set, kept ones included, 1 to 1,024.

    Default: `top_k`, and with what the model searched for twice `top_k`, at least 10.
    """
    known_pool_revision: int
    """The summary pool's revision that the caller holds; asks for what changed since."""
    prompt_listing: PromptListing | str
    """Listing of the catalog in the prompt, beside the active set: "none", "names" or "summaries".

    With a strategy in `render`, the search's description lists that of the tools that it finds.
    Default: "names". Without, the accounting and the usage ledger count that. Default: "summaries"
    with `known_pool_revision`, else "none".
    """
    prompt_listing_tokens: int
    """With a strategy in `render`: the most cl100k_base tokens of what the search's description
    lists, 1 to 32,768; what does not fit is told as a number. Default: 400."""
    min_revision: int
    """The catalog revision that the answer must at least be based on. Default: any."""
    deferral: DeferralMode | str
    """Mode of deferral, where tools are found when needed: "always", "auto", "auto:N", which is
    "auto" with N as `deferral_percent`, or "off". Default: the tenant's mode, else the server's."""
    deferral_percent: int
    """With "auto": the share of the context window from which on tools are deferred, 0 to 100.
    Default: 10."""
    model_base_url: str
    """Where the model is called: behind an unknown host nothing is deferred unless a mode was
    chosen."""
    turn_id: str
    """A name for this turn in the decision event, at most 128 characters."""
    render: Render | None
    """Also answer with the active set in a provider's format: "openai_chat", "openai_responses",
    "anthropic", "gemini", "mcp", or `RenderOptions`. Needs full schemas. Default: None."""


class SearchArguments(TypedDict, total=False):
    """Optional arguments of `search_tools`."""

    state: StateLike | None
    """The agent's calls and grants. Default: none."""
    handle: str
    """The handle to add the tools to. Default: a new one."""
    max_results: int
    """The most tools, 1 to 100; `select:` is answered whole. Default: 5."""
    detail: Detail | str
    """Share of each tool that is sent: "names", "signatures", "references" or "schemas" (the
    default). Names alone don't make a tool callable."""
    min_revision: int
    """The catalog revision that the answer must at least be based on. Default: any."""
    render: Render | None
    """As in `RouteArguments`, for the tools found. Default: None."""


class PoolArguments(TypedDict, total=False):
    """Optional arguments of `get_summary_pool`."""

    state: StateLike | None
    """The agent's calls and grants. Default: none."""
    names_only: bool
    """Names without summaries. Default: False."""
    render: bool
    """Also answer with the text for a prompt. Default: False."""


class RegisterArguments(TypedDict, total=False):
    """Optional arguments of `register_server`."""

    description: str
    """Purpose of the MCP server, at most 4 KiB."""
    transport_hint: TransportHint | str
    """Its transport: "stdio" or "streamable_http". Default: not said."""
    tool_settings: Iterable[ToolSettings]
    """Settings of tools beside MCP's fields."""
    precondition: Precondition | None
    """Must hold for every tool of this MCP server."""
    required_scopes: Iterable[str]
    """Scopes that every tool of this MCP server requires."""
    trust_tier: TrustTier | str
    """Trust in its texts: "untrusted", "standard" (the default) or "trusted"."""
    mode: RegisterMode | str
    """Treatment of tools that the body does not name: "replace" (removed) or "merge"."""
    etag: str
    """The etag of the version that this call changes; "" (the default) skips the check."""
    request_id: str
    """At most 128 characters: sent again with the same body it changes nothing. Default: a fresh
    one for each call, so that a retry after a lost answer is harmless. "": no such check."""
    all_or_nothing: bool
    """Store nothing when any tool is rejected. Default: False."""


def route_request(
    tenant: str, intents: Intents, arguments: RouteArguments
) -> router_pb2.RouteRequest:
    """Builds a RouteRequest.

    Raises:
        TypeError: an unknown argument, or one of the wrong type.
        ValueError: a value that the wire cannot carry.
    """
    refuse_unknown("route()", arguments, RouteArguments.__annotations__)
    request = router_pb2.RouteRequest(
        tenant=tenant,
        intents=[_intent(intent) for intent in _listed(intents)],
        state=state_to_proto(arguments.get("state")),
        active_set_handle=arguments.get("handle", ""),
        options=_route_options(arguments),
        min_revision=arguments.get("min_revision", 0),
        turn_id=arguments.get("turn_id", ""),
        prompt_listing=to_wire(
            router_pb2.PromptListing,
            "PROMPT_LISTING_",
            arguments.get("prompt_listing", PromptListing.UNSPECIFIED),
        ),
        render=render_to_proto(arguments.get("render")),
    )
    if (revision := arguments.get("known_pool_revision")) is not None:
        request.known_pool_revision = revision
    if (tokens := arguments.get("prompt_listing_tokens")) is not None:
        request.prompt_listing_tokens = tokens
    return request


def _route_options(arguments: RouteArguments) -> router_pb2.RouteOptions:
    deferral, percent = _deferral(arguments)
    return router_pb2.RouteOptions(
        top_k=arguments.get("top_k"),
        threshold=arguments.get("threshold"),
        schema_token_budget=arguments.get("schema_token_budget"),
        active_token_budget=arguments.get("active_token_budget"),
        history_tokens=arguments.get("history_tokens"),
        active_set_limit=arguments.get("active_set_limit"),
        ignore_cache_cost=arguments.get("ignore_cache_cost", False),
        detail=to_wire(router_pb2.Detail, "DETAIL_", arguments.get("detail", Detail.UNSPECIFIED)),
        signature_tail=arguments.get("signature_tail", 0),
        pinned_tools=texts(arguments.get("pinned_tools", ()), "pinned_tools"),
        excluded_tools=texts(arguments.get("excluded_tools", ()), "excluded_tools"),
        servers=texts(arguments.get("servers", ()), "servers"),
        context_window=arguments.get("context_window"),
        model=arguments.get("model", ""),
        explain=arguments.get("explain", False),
        system_tokens=arguments.get("system_tokens", 0),
        deferral=to_wire(router_pb2.DeferralMode, "DEFERRAL_MODE_", deferral),
        deferral_percent=percent,
        selection_rule=to_wire(
            router_pb2.SelectionRule,
            "SELECTION_RULE_",
            arguments.get("selection_rule", SelectionRule.UNSPECIFIED),
        ),
        model_base_url=arguments.get("model_base_url", ""),
    )


def _deferral(arguments: RouteArguments) -> tuple[str, int | None]:
    """The mode and its percentage, which the command line's form `auto:N` says in one."""
    mode = arguments.get("deferral", DeferralMode.UNSPECIFIED)
    percent = arguments.get("deferral_percent")
    name, colon, number = mode.partition(":")
    if not colon or name.lower() != "auto":
        return mode, percent
    if not _PERCENT.fullmatch(number):
        raise ValueError(f"deferral={mode!r}: N of auto:N is a whole number from 0 to 100")
    if percent is not None:
        raise ValueError(f"deferral={mode!r} says the percentage: leave deferral_percent out")
    return name, int(number)


def search_request(
    tenant: str, query: str, arguments: SearchArguments
) -> router_pb2.SearchToolsRequest:
    """Builds a SearchToolsRequest.

    Raises:
        TypeError: an unknown argument, or one of the wrong type.
        ValueError: a value that the wire cannot carry.
    """
    refuse_unknown("search_tools()", arguments, SearchArguments.__annotations__)
    return router_pb2.SearchToolsRequest(
        tenant=tenant,
        query=query,
        max_results=arguments.get("max_results"),
        detail=to_wire(router_pb2.Detail, "DETAIL_", arguments.get("detail", Detail.UNSPECIFIED)),
        state=state_to_proto(arguments.get("state")),
        active_set_handle=arguments.get("handle", ""),
        min_revision=arguments.get("min_revision", 0),
        render=render_to_proto(arguments.get("render")),
    )


def gate_request(
    tenant: str, handle: str, calls: Call | Sequence[Call], state: StateLike | None, revision: int
) -> router_pb2.GateRequest:
    """Builds a GateRequest.

    Raises:
        TypeError: something that is no Call.
    """
    listed = [calls] if isinstance(calls, Call | Mapping) else list(calls)
    return router_pb2.GateRequest(
        tenant=tenant,
        active_set_handle=handle,
        calls=[checked_call(call, "gate").to_proto() for call in listed],
        state=state_to_proto(state),
        min_revision=revision,
    )


def register_request(
    tenant: str, server: str, tools: ToolsList, arguments: RegisterArguments
) -> catalog_pb2.RegisterServerRequest:
    """Builds a RegisterServerRequest.

    Raises:
        OSError: a Path that cannot be read.
        TypeError: an unknown argument, or one of the wrong type.
        ValueError: a value that the wire or JSON cannot carry, or a path as text.
    """
    refuse_unknown("register_server()", arguments, RegisterArguments.__annotations__)
    precondition = arguments.get("precondition")
    transport_hint = arguments.get("transport_hint", TransportHint.UNSPECIFIED)
    trust_tier = arguments.get("trust_tier", TrustTier.UNSPECIFIED)
    mode = arguments.get("mode", RegisterMode.UNSPECIFIED)
    return catalog_pb2.RegisterServerRequest(
        tenant=tenant,
        server=server,
        description=arguments.get("description", ""),
        transport_hint=to_wire(catalog_pb2.TransportHint, "TRANSPORT_HINT_", transport_hint),
        tools_list_json=_tools_list(tools),
        tool_settings=[settings.to_proto() for settings in arguments.get("tool_settings", ())],
        precondition=precondition.to_proto() if precondition is not None else None,
        required_scopes=texts(arguments.get("required_scopes", ()), "required_scopes"),
        trust_tier=to_wire(catalog_pb2.TrustTier, "TRUST_TIER_", trust_tier),
        mode=to_wire(catalog_pb2.RegisterMode, "REGISTER_MODE_", mode),
        etag=arguments.get("etag", ""),
        request_id=arguments.get("request_id", uuid.uuid4().hex),
        all_or_nothing=arguments.get("all_or_nothing", False),
    )


def announce_request(
    tenant: str, server: str, description: str, required_scopes: Iterable[str]
) -> catalog_pb2.RegisterServerRequest:
    """Builds the RegisterServerRequest of a server whose tools are not known yet."""
    return catalog_pb2.RegisterServerRequest(
        tenant=tenant,
        server=server,
        description=description,
        required_scopes=texts(required_scopes, "required_scopes"),
        pending=True,
    )


def approve_request(
    tenant: str, server: str, hashes: Mapping[str, str]
) -> catalog_pb2.ApproveToolsRequest:
    """Builds the ApproveToolsRequest of the tools with these hashes."""
    approvals = [
        catalog_pb2.ToolApproval(name=name, hash=reviewed) for name, reviewed in hashes.items()
    ]
    return catalog_pb2.ApproveToolsRequest(tenant=tenant, server=server, approvals=approvals)


def policy_text(document: PolicyDocument) -> str:
    """A policy's document as the wire takes it.

    Raises:
        TypeError: neither text nor a mapping.
        ValueError: a value that JSON cannot carry.
    """
    if isinstance(document, Mapping):
        return json.dumps(dict(document), ensure_ascii=False, allow_nan=False)
    if not isinstance(document, str):
        raise TypeError(f"a policy is text or a mapping, not {type(document).__name__}")
    return document


def pool_request(
    tenant: str, since_revision: int | None, arguments: PoolArguments
) -> router_pb2.GetSummaryPoolRequest:
    """Builds a GetSummaryPoolRequest."""
    refuse_unknown("get_summary_pool()", arguments, PoolArguments.__annotations__)
    return router_pb2.GetSummaryPoolRequest(
        tenant=tenant,
        since_revision=since_revision,
        state=state_to_proto(arguments.get("state")),
        names_only=arguments.get("names_only", False),
        render=arguments.get("render", False),
    )


def schemas_request(
    tenant: str,
    names: Iterable[str],
    state: StateLike | None,
    handle: str,
    detail: Detail | str,
    render: Render | None,
) -> router_pb2.BatchGetToolSchemasRequest:
    """Builds a BatchGetToolSchemasRequest."""
    return router_pb2.BatchGetToolSchemasRequest(
        tenant=tenant,
        detail=to_wire(router_pb2.Detail, "DETAIL_", detail),
        names=texts(names, "names"),
        state=state_to_proto(state),
        active_set_handle=handle,
        render=render_to_proto(render),
    )


def refuse_unknown(taker: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuses names that somebody does not take.

    Raises:
        TypeError: some are not among the known ones; it says what may be meant.
    """
    known = sorted(known)
    unknown = sorted(set(given).difference(known))
    if unknown:
        near = [name for one in unknown for name in get_close_matches(one, known, 1)]
        hint = f"did you mean {', '.join(near)}?" if near else f"it takes {', '.join(known)}"
        raise TypeError(f"{taker} takes no {', '.join(unknown)}; {hint}")


def _listed(intents: Intents) -> Sequence[str | Intent]:
    if isinstance(intents, str | Intent):
        return [intents]
    if not isinstance(intents, Iterable) or isinstance(intents, bytes | Mapping):
        raise _no_intent(intents)
    return intents


def _intent(intent: str | Intent) -> router_pb2.Intent:
    if isinstance(intent, str):
        return router_pb2.Intent(text=intent)
    if not isinstance(intent, Intent):
        raise _no_intent(intent)
    return router_pb2.Intent(text=intent.text, weight=intent.weight)


def _no_intent(given: object) -> TypeError:
    kind = "None" if given is None else type(given).__name__
    return TypeError(f"an intent is a text or an Intent, or intents a list of those, not {kind}")


def _tools_list(tools: ToolsList) -> bytes:
    if isinstance(tools, bytes):
        return tools
    if isinstance(tools, str):
        _refuse_path(tools)
        return tools.encode()
    if isinstance(tools, Path):
        return tools.read_bytes()
    return json.dumps(tools, ensure_ascii=False, allow_nan=False).encode()


def _refuse_path(text: str) -> None:
    """Text that is read as JSON, but whose author meant the file."""
    is_json = text.lstrip().startswith(("{", "["))
    if not is_json and (text.endswith(".json") or os.path.isfile(text)):
        raise ValueError(f"{text!r} is a path, not the JSON of a tools/list: pass Path({text!r})")
