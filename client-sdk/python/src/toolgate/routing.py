"""Answers of Route, GetSummaryPool and BatchGetToolSchemas, as frozen values."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from toolgate._gen.v1 import error_pb2, router_pb2
from toolgate.deferral import Deferral
from toolgate.enums import ContextWarning, DegradedReason, FoundBy, RefusalCode, from_wire
from toolgate.ranking import Fit, Ranking
from toolgate.rendering import ModelRequest, Rendered, rendered_from_proto, request_of, tools_of


@dataclass(frozen=True, slots=True)
class Intent:
    """One text that says what the agent wants this turn."""

    text: str
    """1 byte to 32 KiB of UTF-8, not only white space."""
    weight: float | None = None
    """Weight beside the turn's other intents: above 0, at most 100. None: 1."""


@dataclass(frozen=True, slots=True)
class ActiveTool:
    """A tool of the active set."""

    id: str
    """`tenants/{tenant}/servers/{server}/tools/{name}`."""
    server: str
    """The MCP server's name."""
    name: str
    """The MCP name."""
    model_name: str
    """The name the model sees."""
    overlap: float
    """Cosine of summary and intent, -1 to 1: the best over the intents."""
    score: float
    """Score of the ranking, higher first; comparable within one answer only."""
    found_by: FoundBy
    """Its way into the active set."""
    newly_promoted: bool
    """True when its schema was not in the turn before."""
    description: str
    """The MCP description; "" unless full schemas were asked for."""
    input_schema_json: str
    """The MCP `inputSchema`, byte for byte as registered, or in the form of JSON Schema 2020-12 if
    it is in an older dialect; "" unless full schemas were asked for."""
    output_schema_json: str
    """The MCP `outputSchema`; "" when there is none or full schemas were not asked for."""
    annotations_json: str
    """The MCP `annotations`; "" when there are none or full schemas were not asked for."""
    signature: str
    """Name, parameters and a sentence in one line; "" unless signatures were asked for, or the tool
    is of a `signature_tail`."""
    schema_tokens: int
    """cl100k_base tokens of what the model is sent for this tool at the asked detail."""
    signature_lossy: bool
    """True when the signature says less than the schema about which arguments are valid."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """The MCP `inputSchema`, parsed anew at each access.

        Raises:
            ValueError: full schemas were not asked for.
        """
        if not self.input_schema_json:
            raise ValueError(
                f"{self.model_name} came without its schema: route with detail='schemas'"
            )
        parsed: dict[str, Any] = json.loads(self.input_schema_json)
        return parsed

    @classmethod
    def from_proto(cls, message: router_pb2.ActiveTool) -> "ActiveTool":
        """Reads the wire's form."""
        return cls(
            id=message.id,
            server=message.server,
            name=message.name,
            model_name=message.model_name,
            overlap=message.overlap,
            score=message.score,
            found_by=from_wire(FoundBy, router_pb2.FoundBy, "FOUND_BY_", message.found_by),
            newly_promoted=message.newly_promoted,
            description=message.description,
            input_schema_json=message.input_schema_json,
            output_schema_json=message.output_schema_json,
            annotations_json=message.annotations_json,
            signature=message.signature,
            schema_tokens=message.schema_tokens,
            signature_lossy=message.signature_lossy,
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """A tool that was left out, and why."""

    server: str
    """The MCP server's name; "" for an unknown tool."""
    name: str
    """The MCP name; for an unknown tool, the name as it was asked for."""
    model_name: str
    """The name the model sees; "" for an unknown tool."""
    code: RefusalCode
    """The reason."""
    message: str
    """The same for a reader."""
    unlock: tuple[str, ...]
    """Conditions that would unlock it, each needed; empty when no change of state would."""
    overlap: float
    """Cosine of summary and intent; 0 when nothing was embedded."""

    @classmethod
    def from_proto(cls, message: router_pb2.Refusal) -> "Refusal":
        """Reads the wire's form."""
        return cls(
            server=message.server,
            name=message.name,
            model_name=message.model_name,
            code=from_wire(RefusalCode, error_pb2.RefusalCode, "REFUSAL_CODE_", message.code),
            message=message.message,
            unlock=tuple(message.unlock),
            overlap=message.overlap,
        )


@dataclass(frozen=True, slots=True)
class TokenAccounting:
    """Tokens of one turn, counted with `tokenizer`."""

    tokenizer: str
    """The tokenizer, "cl100k_base"."""
    full_catalog_tokens: int
    """Full definitions of all tools: what sending everything costs."""
    phase1_tokens: int
    """The summary pool."""
    phase2_tokens: int
    """The active set at the asked detail."""
    saved_tokens: int
    """Full catalog less both phases; negative when deferral does not pay."""
    rho: float | None
    """The share of a full context window that is left to the task; None without a window."""
    rho_full: float | None
    """The same with all definitions sent; None without a window."""
    conversation_tokens: int = 0
    """The messages of the conversation; 0 unless the state had some."""
    conversation_rho: float | None = None
    """The share of the request that the conversation has as it is, beside tools and system prompt;
    None without a conversation."""
    warnings: tuple[ContextWarning, ...] = ()
    """Problems to look at; empty: none."""

    @classmethod
    def from_proto(cls, message: router_pb2.TokenAccounting) -> "TokenAccounting":
        """Reads the wire's form."""
        return cls(
            tokenizer=message.tokenizer,
            full_catalog_tokens=message.full_catalog_tokens,
            phase1_tokens=message.phase1_tokens,
            phase2_tokens=message.phase2_tokens,
            saved_tokens=message.saved_tokens,
            rho=message.rho if message.HasField("rho") else None,
            rho_full=message.rho_full if message.HasField("rho_full") else None,
            conversation_tokens=message.conversation_tokens,
            conversation_rho=(
                message.conversation_rho if message.HasField("conversation_rho") else None
            ),
            warnings=tuple(
                from_wire(ContextWarning, router_pb2.ContextWarning, "CONTEXT_WARNING_", warning)
                for warning in message.warnings
            ),
        )


@dataclass(frozen=True, slots=True)
class SummaryEntry:
    """One line of the summary pool."""

    model_name: str
    """The name the model sees."""
    summary: str
    """The summary, at most 60 cl100k_base tokens; "" with `names_only`."""


@dataclass(frozen=True, slots=True)
class SummaryPool:
    """The summary pool, whole (`full`) or as a change to the one that the client holds."""

    revision: int
    """The revision that the pool has after it; hand it to the next Route."""
    full: bool
    """True when `added` is the whole pool and everything else is to be forgotten."""
    added: tuple[SummaryEntry, ...]
    """New and changed summaries, to be appended in this order."""
    removed: tuple[str, ...]
    """Model-facing names to remove, before `added` is appended."""
    pool_tokens: int
    """cl100k_base tokens of the whole pool after it."""
    rendered: str = ""
    """The same as text for a prompt; "" unless it was asked for, or when nothing changed."""

    def apply_to(self, held: dict[str, str]) -> dict[str, str]:
        """The summaries by model-facing name after this change of `held`, which is left alone."""
        after = {} if self.full else dict(held)
        for name in self.removed:
            after.pop(name, None)
        for entry in self.added:
            # A changed summary moves to the end, so that a cached prefix before it holds.
            after.pop(entry.model_name, None)
            after[entry.model_name] = entry.summary
        return after

    @classmethod
    def from_proto(cls, message: router_pb2.SummaryPoolDelta) -> "SummaryPool":
        """Reads the wire's form."""
        return cls(
            revision=message.revision,
            full=message.full,
            added=tuple(SummaryEntry(e.model_name, e.summary) for e in message.added),
            removed=tuple(message.removed),
            pool_tokens=message.pool_tokens,
            rendered=message.rendered,
        )


@dataclass(frozen=True, slots=True)
class ActiveSetChange:
    """Difference between an active set and that of the turn before. All names are model-facing."""

    added: tuple[str, ...]
    """Tools whose schemas are to be appended to the prompt: new ones, and changed ones."""
    kept: tuple[str, ...]
    """Tools that stay in the places they had."""
    removed: tuple[str, ...]
    """Tools of the turn before that are not in this set: the token budget needed their room, or
    they may no longer be used. Those that left the catalog have no name to be told by."""
    evictable: tuple[str, ...]
    """Kept tools that would go if their room were needed."""
    kept_for_cache: bool
    """True when tools were left out because making room for them would have cost more in lost cache
    than it saves."""
    cache_loss_tokens: int
    """Cost in lost cache of making room, done or not, in uncached input tokens."""
    cache_saving_tokens: int
    """Saving by making room, on the same scale."""

    @classmethod
    def from_proto(cls, message: router_pb2.ActiveSetChange) -> "ActiveSetChange":
        """Reads the wire's form."""
        return cls(
            added=tuple(message.added),
            kept=tuple(message.kept),
            removed=tuple(message.removed),
            evictable=tuple(message.evictable),
            kept_for_cache=message.kept_for_cache,
            cache_loss_tokens=message.cache_loss_tokens,
            cache_saving_tokens=message.cache_saving_tokens,
        )


@dataclass(frozen=True, slots=True)
class RouteResult:
    """The active set of one turn. Iterating over it gives its tools."""

    tools: tuple[ActiveTool, ...]
    """Kept tools first, in the places they had; then new ones."""
    handle: str
    """Names this active set to `gate` and to the next `route`. Opaque."""
    handle_expire_time: datetime
    """When the handle expires, in UTC."""
    catalog_revision: int
    """The catalog revision that this answer is based on."""
    summary_pool: SummaryPool | None
    """Changes since `known_pool_revision`; None without any, or if none was said."""
    refusals: tuple[Refusal, ...]
    """Tools left out: all considered ones with `explain`, else only pinned ones."""
    pending_servers: tuple[str, ...]
    """MCP servers that are announced but have not registered their tools yet."""
    accounting: TokenAccounting
    """Costs and savings of this turn."""
    degraded: tuple[DegradedReason, ...]
    """In what way the answer is worse than usual; empty: in none."""
    timings: dict[str, int]
    """Microseconds by stage, in the order of work."""
    deferral: Deferral
    """Decision about deferral, and its reason."""
    change: ActiveSetChange
    """Difference from the active set of the turn before."""
    fit: Fit
    """Fit of the best tool: it stands out, others fit as well, or none does."""
    ranking: Ranking | None
    """Ranking of the tools; None unless `explain` asked for it."""
    servers: tuple[str, ...] = ()
    """The MCP servers that this turn needs, for a sandbox that runs the model's code: those of the
    active tools, in the order of their best tools."""
    conversation_snapshot: dict[str, Any] | None = None
    """Calls and discovered tools of the conversation, for `AgentState.snapshot`; None unless the
    state had messages or a snapshot."""
    rendered: Rendered | None = None
    """The active set in the format that `render` asked for; None without. The definitions in
    `tools` are then empty."""

    def __iter__(self) -> Iterator[ActiveTool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    @property
    def rendered_tools(self) -> list[dict[str, Any]]:
        """The active set as the provider's API takes it.

        Raises:
            ValueError: `route` had no `render`.
        """
        return tools_of(self.rendered)

    @property
    def request(self) -> ModelRequest:
        """Request to the model in this turn.

        Raises:
            ValueError: `route` had no `render` with a `strategy`.
        """
        return request_of(self.rendered)

    @classmethod
    def from_proto(cls, message: router_pb2.RouteResponse) -> "RouteResult":
        """Reads the wire's form."""
        pool = message.summary_pool if message.HasField("summary_pool") else None
        return cls(
            tools=tuple(ActiveTool.from_proto(tool) for tool in message.active_tools),
            handle=message.active_set_handle,
            handle_expire_time=message.handle_expire_time.ToDatetime(UTC),
            catalog_revision=message.catalog_revision,
            summary_pool=SummaryPool.from_proto(pool) if pool is not None else None,
            refusals=tuple(Refusal.from_proto(refusal) for refusal in message.refusals),
            pending_servers=tuple(message.pending_servers),
            accounting=TokenAccounting.from_proto(message.accounting),
            degraded=tuple(
                from_wire(DegradedReason, router_pb2.DegradedReason, "DEGRADED_REASON_", reason)
                for reason in message.degraded
            ),
            timings={timing.stage: timing.micros for timing in message.timings},
            deferral=Deferral.from_proto(message.deferral),
            change=ActiveSetChange.from_proto(message.change),
            fit=Fit.from_proto(message.fit),
            ranking=Ranking.from_proto(message.ranking) if message.HasField("ranking") else None,
            servers=tuple(message.servers),
            conversation_snapshot=_snapshot(message.conversation_snapshot),
            rendered=rendered_from_proto(message),
        )


def _snapshot(text: str) -> dict[str, Any] | None:
    if not text:
        return None
    snapshot: dict[str, Any] = json.loads(text)
    return snapshot


@dataclass(frozen=True, slots=True)
class ToolSchemas:
    """Full schemas on demand."""

    tools: tuple[ActiveTool, ...]
    """The tools found, in the order asked."""
    refusals: tuple[Refusal, ...]
    """The names that were not had, each with its reason."""
    handle: str
    """Names the active set with these tools added."""
    handle_expire_time: datetime
    """When the handle expires, in UTC."""
    catalog_revision: int
    """The catalog revision that this answer is based on."""
    rendered: Rendered | None = None
    """The tools found in the format that `render` asked for; None without. The definitions in
    `tools` are then empty."""

    @property
    def rendered_tools(self) -> list[dict[str, Any]]:
        """The tools found as the provider's API takes them.

        Raises:
            ValueError: the call had no `render`.
        """
        return tools_of(self.rendered)

    @classmethod
    def from_proto(cls, message: router_pb2.BatchGetToolSchemasResponse) -> "ToolSchemas":
        """Reads the wire's form."""
        return cls(
            tools=tuple(ActiveTool.from_proto(tool) for tool in message.tools),
            refusals=tuple(Refusal.from_proto(refusal) for refusal in message.refusals),
            handle=message.active_set_handle,
            handle_expire_time=message.handle_expire_time.ToDatetime(UTC),
            catalog_revision=message.catalog_revision,
            rendered=rendered_from_proto(message),
        )
