"""Contents of the catalog and outcomes of registrations, as frozen values."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from toolgate._gen.v1 import catalog_pb2, error_pb2
from toolgate.enums import OutcomeKind, RefusalCode, TransportHint, TrustTier, from_wire
from toolgate.preconditions import Precondition
from toolgate.preconditions import from_proto as precondition_from_proto


@dataclass(frozen=True, slots=True)
class McpServer:
    """One MCP server of a tenant's catalog."""

    id: str
    """`tenants/{tenant}/servers/{name}`."""
    name: str
    """The MCP server's name."""
    description: str
    """Its purpose, in its own words."""
    transport_hint: TransportHint
    """Its transport."""
    trust_tier: TrustTier
    """Trust in its texts."""
    tool_count: int
    """The number of its tools."""
    etag: str
    """Changes with every change of the MCP server or its tools."""
    revision: int
    """The catalog revision of the last change."""
    update_time: datetime
    """When the last change was committed, in UTC."""
    pending: bool
    """True from an announcement to the registration of the tools."""

    @classmethod
    def from_proto(cls, message: catalog_pb2.McpServer) -> "McpServer":
        """Reads the wire's form."""
        return cls(
            id=message.id,
            name=message.name,
            description=message.description,
            transport_hint=from_wire(
                TransportHint,
                catalog_pb2.TransportHint,
                "TRANSPORT_HINT_",
                message.transport_hint,
            ),
            trust_tier=from_wire(
                TrustTier, catalog_pb2.TrustTier, "TRUST_TIER_", message.trust_tier
            ),
            tool_count=message.tool_count,
            etag=message.etag,
            revision=message.revision,
            update_time=message.update_time.ToDatetime(UTC),
            pending=message.pending,
        )


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the catalog."""

    id: str
    """`tenants/{tenant}/servers/{server}/tools/{name}`."""
    server: str
    """The MCP server's name."""
    name: str
    """The MCP name."""
    model_name: str
    """The name the model sees."""
    summary: str
    """The text that is embedded and listed in the summary pool; "" in what an agent is told of a
    tool that waits."""
    definition_json: str
    """The whole MCP definition, byte for byte as registered; "" in what an agent is told of a tool
    that waits."""
    hash: str
    """SHA-256 of the definition (canonical JSON), hex."""
    schema_tokens: int
    """cl100k_base tokens of the definition, minified."""
    summary_tokens: int
    """cl100k_base tokens of the summary-pool line."""
    quarantined: bool
    """True when the tool waits for approval."""
    always_load: bool
    """True when the tool is always part of the active set."""
    critical: bool
    """True when the tool is never deferred."""
    precondition: Precondition | None
    """Must hold before the tool may be shown or called; the MCP server's included."""
    required_scopes: tuple[str, ...]
    """Scopes that the tool requires; the MCP server's included."""

    @property
    def definition(self) -> dict[str, Any]:
        """The MCP definition, parsed anew at each access; empty where it is not told."""
        parsed: dict[str, Any] = json.loads(self.definition_json or "{}")
        return parsed

    @classmethod
    def from_proto(cls, message: catalog_pb2.Tool) -> "Tool":
        """Reads the wire's form."""
        return cls(
            id=message.id,
            server=message.server,
            name=message.name,
            model_name=message.model_name,
            summary=message.summary,
            definition_json=message.definition_json,
            hash=message.hash,
            schema_tokens=message.schema_tokens,
            summary_tokens=message.summary_tokens,
            quarantined=message.quarantined,
            always_load=message.always_load,
            critical=message.critical,
            precondition=precondition_from_proto(message.precondition),
            required_scopes=tuple(message.required_scopes),
        )


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """The registrant's settings of one tool, beside MCP's fields."""

    name: str
    """The tool's MCP name; must be in the same registration."""
    summary: str = ""
    """The text to embed, at most 60 cl100k_base tokens. "": derived from name and description."""
    search_hint: str = ""
    """Words that users say when they mean this tool, at most 1 KiB."""
    precondition: Precondition | None = None
    """Must hold before the tool may be shown or called."""
    required_scopes: Iterable[str] = ()
    """Scopes that the agent must hold, all of them."""
    always_load: bool = False
    """Always part of the active set when its preconditions hold."""
    critical: bool = False
    """Never deferred."""

    def to_proto(self) -> catalog_pb2.ToolSettings:
        """The wire's form."""
        return catalog_pb2.ToolSettings(
            name=self.name,
            summary=self.summary,
            search_hint=self.search_hint,
            precondition=self.precondition.to_proto() if self.precondition is not None else None,
            required_scopes=list(self.required_scopes),
            always_load=self.always_load,
            critical=self.critical,
        )


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """Outcome of one tool of a registration."""

    name: str
    """The tool's MCP name, as far as it could be read."""
    kind: OutcomeKind
    """The outcome."""
    model_name: str
    """The name the model sees; "" when rejected."""
    old_hash: str
    """SHA-256 of the definition before, hex; "" when new."""
    new_hash: str
    """SHA-256 of the definition now, hex; "" when rejected or removed."""
    field: str
    """The field at fault; "" unless rejected."""
    message: str
    """The mistake and what would be right; "" unless rejected or quarantined."""
    findings: tuple[str, ...]
    """The scanner's findings."""

    @classmethod
    def from_proto(cls, message: catalog_pb2.ToolOutcome) -> "ToolOutcome":
        """Reads the wire's form."""
        return cls(
            name=message.name,
            kind=from_wire(OutcomeKind, catalog_pb2.OutcomeKind, "OUTCOME_KIND_", message.kind),
            model_name=message.model_name,
            old_hash=message.old_hash,
            new_hash=message.new_hash,
            field=message.field,
            message=message.message,
            findings=tuple(message.findings),
        )


@dataclass(frozen=True, slots=True)
class Registration:
    """A registration's outcome, tool by tool."""

    server: McpServer
    """The MCP server as stored."""
    catalog_revision: int
    """The catalog revision that holds this change."""
    outcomes: tuple[ToolOutcome, ...]
    """One per tool of the body in its order, then one per removed tool by name."""
    replayed: bool
    """True when the answer was recorded under the same `request_id` before."""

    @property
    def rejected(self) -> tuple[ToolOutcome, ...]:
        """The tools that were not stored."""
        return tuple(o for o in self.outcomes if o.kind is OutcomeKind.REJECTED)

    @property
    def quarantined(self) -> tuple[ToolOutcome, ...]:
        """The tools that are neither shown nor callable until somebody approves them."""
        return tuple(o for o in self.outcomes if o.kind is OutcomeKind.QUARANTINED)

    @classmethod
    def from_proto(cls, message: catalog_pb2.RegisterServerResponse) -> "Registration":
        """Reads the wire's form."""
        return cls(
            server=McpServer.from_proto(message.server),
            catalog_revision=message.catalog_revision,
            outcomes=tuple(ToolOutcome.from_proto(outcome) for outcome in message.outcomes),
            replayed=message.replayed,
        )


@dataclass(frozen=True, slots=True)
class Removal:
    """The outcome of removing an MCP server."""

    catalog_revision: int
    """The catalog revision that holds this change."""
    removed_tools: int
    """The number of tools removed."""

    @classmethod
    def from_proto(cls, message: catalog_pb2.UnregisterServerResponse) -> "Removal":
        """Reads the wire's form."""
        return cls(message.catalog_revision, message.removed_tools)


@dataclass(frozen=True, slots=True)
class Approval:
    """The outcome of accepting tools that waited for it."""

    catalog_revision: int
    """The catalog revision that holds this change."""
    refusals: dict[str, RefusalCode]
    """By MCP name, why a tool was not accepted."""

    @classmethod
    def from_proto(cls, message: catalog_pb2.ApproveToolsResponse) -> "Approval":
        """Reads the wire's form."""
        refusals = {
            refusal.name: from_wire(
                RefusalCode, error_pb2.RefusalCode, "REFUSAL_CODE_", refusal.code
            )
            for refusal in message.refusals
        }
        return cls(message.catalog_revision, refusals)


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """Changes of a catalog between two of its revisions."""

    revision: int
    """The revision that the catalog has with these changes: the one to resume from."""
    servers: tuple[str, ...]
    """The MCP servers that came, changed or went, by name."""
    policy_changed: bool
    """True if the tenant's policy changed."""
    reset: bool
    """True when what changed can't be told any more: read the catalog anew."""

    @classmethod
    def from_proto(cls, message: catalog_pb2.WatchCatalogResponse) -> "CatalogChange":
        """Reads the wire's form."""
        return cls(
            revision=message.catalog_revision,
            servers=tuple(message.servers),
            policy_changed=message.policy_changed,
            reset=message.reset,
        )
