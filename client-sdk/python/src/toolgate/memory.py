"""Counts of what is remembered of a tenant's calls, as frozen values."""

from dataclasses import dataclass
from datetime import UTC, datetime

from toolgate._gen.v1 import memory_pb2


@dataclass(frozen=True, slots=True)
class ToolMemory:
    """Counts of what is remembered of one tool."""

    server: str
    """The MCP server's name."""
    name: str
    """The MCP name."""
    exemplars: int
    """Intents that stand for one call or several alike."""
    last_call_time: datetime
    """When the last call that counted was made (UTC)."""


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Counts of what is remembered of a tenant's calls."""

    enabled: bool
    """True if calls of the tenant are remembered now."""
    exemplars: int
    """Exemplars of all tools."""
    tools: tuple[ToolMemory, ...]
    """The tools that have any, those with most first, at most 1,000."""

    @classmethod
    def from_proto(cls, message: memory_pb2.GetMemoryStatsResponse) -> "MemoryStats":
        """Reads the wire's form."""
        tools = tuple(
            ToolMemory(one.server, one.name, one.exemplars, one.last_call_time.ToDatetime(UTC))
            for one in message.tools
        )
        return cls(message.enabled, message.exemplars, tools)
