"""Client of Toolgate, a routing plane for the tools of LLM agents.

    from toolgate import Call, Client

    with Client(tenant="demo") as client:
        turn = client.route("what did I promise the team last week?")
        model_tools = turn.to_anthropic_tools()
        verdict = client.gate(turn.handle, Call("mcp__slack__slack_get_users", {}))[0]

`AsyncClient` is the same for asyncio. Every failed call raises `ToolgateError`.
"""

from toolgate._requests import Intents, RegisterArguments, RouteArguments, ToolsList
from toolgate.aio import AsyncClient
from toolgate.catalog import McpServer, Registration, Removal, Tool, ToolOutcome, ToolSettings
from toolgate.client import Client
from toolgate.enums import (
    CallStatus,
    DegradedReason,
    Detail,
    ErrorReason,
    FoundBy,
    OutcomeKind,
    RefusalCode,
    RegisterMode,
    TransportHint,
    TrustTier,
)
from toolgate.errors import FieldViolation, ToolgateError
from toolgate.gating import ArgumentViolation, Call, GateResult, GateVerdict
from toolgate.policies import Policy, PolicyVerdict
from toolgate.preconditions import (
    Precondition,
    all_of,
    any_of,
    cel,
    has_prior_tool_output,
    is_authenticated,
    milestone_reached,
)
from toolgate.routing import (
    ActiveTool,
    Intent,
    Refusal,
    RouteResult,
    SummaryEntry,
    SummaryPool,
    TokenAccounting,
    ToolSchemas,
)
from toolgate.state import AgentState, PriorCall, StateLike

__version__ = "0.1.0"

__all__ = [
    "ActiveTool",
    "AgentState",
    "ArgumentViolation",
    "AsyncClient",
    "Call",
    "CallStatus",
    "Client",
    "DegradedReason",
    "Detail",
    "ErrorReason",
    "FieldViolation",
    "FoundBy",
    "GateResult",
    "GateVerdict",
    "Intent",
    "Intents",
    "McpServer",
    "OutcomeKind",
    "Policy",
    "PolicyVerdict",
    "Precondition",
    "PriorCall",
    "Refusal",
    "RefusalCode",
    "RegisterArguments",
    "RegisterMode",
    "Registration",
    "Removal",
    "RouteArguments",
    "RouteResult",
    "StateLike",
    "SummaryEntry",
    "SummaryPool",
    "TokenAccounting",
    "Tool",
    "ToolOutcome",
    "ToolSchemas",
    "ToolSettings",
    "ToolgateError",
    "ToolsList",
    "TransportHint",
    "TrustTier",
    "all_of",
    "any_of",
    "cel",
    "has_prior_tool_output",
    "is_authenticated",
    "milestone_reached",
]
