"""A tenant's policy as stored, and what a policy decides of each tool, as frozen values."""

from dataclasses import dataclass
from datetime import UTC, datetime

from toolgate._gen.v1 import error_pb2, policy_pb2
from toolgate.enums import RefusalCode, from_wire


@dataclass(frozen=True, slots=True)
class Policy:
    """A tenant's policy as stored."""

    document: str
    """YAML or JSON, as it was set; "" when none was ever set."""
    etag: str
    """Changes with every change of the document; "" when none was ever set."""
    revision: int
    """The catalog revision of the last change; 0 when none was ever set."""
    update_time: datetime | None
    """When the last change was committed (UTC); None when none was ever set."""

    @classmethod
    def from_proto(cls, message: policy_pb2.Policy) -> "Policy":
        """Reads the wire's form."""
        time = message.update_time.ToDatetime(UTC) if message.HasField("update_time") else None
        return cls(message.document, message.etag, message.revision, time)


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """What a policy decides of one tool."""

    server: str
    """The MCP server's name."""
    name: str
    """The MCP name."""
    allowed: bool
    """True when the tool may be shown and called."""
    code: RefusalCode
    """Why not; `UNSPECIFIED` when allowed. `UNKNOWN_TOOL`: denied to all; `SCOPE_MISSING`: the
    state may not see it; `PRECONDITION_UNMET`: the state may see it and not call it."""
    rule: str
    """The rule that decided; "" when none did."""
    unlock: tuple[str, ...]
    """What would unlock it: each of them is needed. Empty: nothing would."""

    @classmethod
    def from_proto(cls, message: policy_pb2.PolicyVerdict) -> "PolicyVerdict":
        """Reads the wire's form."""
        return cls(
            server=message.server,
            name=message.name,
            allowed=message.allowed,
            code=from_wire(RefusalCode, error_pb2.RefusalCode, "REFUSAL_CODE_", message.code),
            rule=message.rule,
            unlock=tuple(message.unlock),
        )
