"""Client of Toolgate, a routing plane for the tools of LLM agents.

    from toolgate import Call, Client

    with Client(tenant="demo") as client:
        turn = client.route("what did I promise the team last week?", render="anthropic")
        model_tools = turn.rendered_tools
        verdict = client.gate(turn.handle, Call("mcp__slack__slack_get_users", {}))[0]

`AsyncClient` is the same for asyncio. Every failed call raises `ToolgateError`.

For a conversation: the state takes its `messages`, of which the service reads what was discovered
and called, and `turn.conversation_snapshot` stands for them once they are summarised. `layout` and
`announce` keep prompt caches; neither calls anything. `SEARCH_TOOL` is a search to define for the
model, whose calls `client.answer_search` runs. With a `strategy` of `RenderOptions`, `turn.request`
is all there is to send, and keeps prompt caches by itself.

`Conversation` does all of it for a loop of your own over MCP servers. With the extra of the same
name, `toolgate.langchain`, `toolgate.openai_agents` and `toolgate.pydantic_ai` do so for agents of
those frameworks.
"""

from toolgate import layout
from toolgate._requests import (
    Intents,
    PolicyDocument,
    PoolArguments,
    RegisterArguments,
    RouteArguments,
    SearchArguments,
    ToolsList,
)
from toolgate.aio import AsyncClient
from toolgate.announcing import Announcement, announce
from toolgate.catalog import (
    Approval,
    CatalogChange,
    McpServer,
    Registration,
    Removal,
    Tool,
    ToolOutcome,
    ToolSettings,
)
from toolgate.client import Client
from toolgate.conversation import Conversation
from toolgate.deferral import Deferral
from toolgate.enums import (
    CallStatus,
    ContextWarning,
    DeferralMode,
    DeferralReason,
    DeferralSource,
    DeferralVerdict,
    DegradedReason,
    Detail,
    ErrorReason,
    FitKind,
    FoundBy,
    OutcomeKind,
    PromptListing,
    PromptStrategy,
    RefusalCode,
    RegisterMode,
    SearchForm,
    SelectionRule,
    StrategyReason,
    ToolFormat,
    TransportHint,
    TrustTier,
    UsageGranularity,
)
from toolgate.errors import FieldViolation, ToolgateError
from toolgate.gating import ArgumentViolation, Call, GateResult, GateVerdict
from toolgate.memory import MemoryStats, ToolMemory
from toolgate.offering import SEARCH_TOOL, SearchAnswer
from toolgate.policies import (
    AsyncPolicyCheck,
    Policy,
    PolicyCheck,
    PolicyVerdict,
    RuleCoverage,
)
from toolgate.preconditions import (
    Precondition,
    all_of,
    any_of,
    cel,
    has_prior_tool_output,
    is_authenticated,
    milestone_reached,
)
from toolgate.ranking import Fit, RankedTool, Ranking
from toolgate.rendering import (
    UNSUPPORTED_MODELS,
    Loss,
    ModelRequest,
    Rendered,
    RenderOptions,
    can_defer,
)
from toolgate.report import Price, Report
from toolgate.routing import (
    ActiveSetChange,
    ActiveTool,
    Intent,
    Refusal,
    RouteResult,
    SummaryEntry,
    SummaryPool,
    TokenAccounting,
    ToolSchemas,
)
from toolgate.searching import SearchResult
from toolgate.state import AgentState, PriorCall, StateLike
from toolgate.tls import Tls
from toolgate.usage import RefusalOutcomes, SearchOutcomes, Usage, UsageAmounts, UsageBucket
from toolgate.watching import CatalogWatch

__version__ = "0.1.0"

__all__ = [
    "SEARCH_TOOL",
    "UNSUPPORTED_MODELS",
    "ActiveSetChange",
    "ActiveTool",
    "AgentState",
    "Announcement",
    "Approval",
    "ArgumentViolation",
    "AsyncClient",
    "AsyncPolicyCheck",
    "Call",
    "CallStatus",
    "CatalogChange",
    "CatalogWatch",
    "Client",
    "ContextWarning",
    "Conversation",
    "Deferral",
    "DeferralMode",
    "DeferralReason",
    "DeferralSource",
    "DeferralVerdict",
    "DegradedReason",
    "Detail",
    "ErrorReason",
    "FieldViolation",
    "Fit",
    "FitKind",
    "FoundBy",
    "GateResult",
    "GateVerdict",
    "Intent",
    "Intents",
    "Loss",
    "McpServer",
    "MemoryStats",
    "ModelRequest",
    "OutcomeKind",
    "Policy",
    "PolicyCheck",
    "PolicyDocument",
    "PolicyVerdict",
    "PoolArguments",
    "Precondition",
    "Price",
    "PriorCall",
    "PromptListing",
    "PromptStrategy",
    "RankedTool",
    "Ranking",
    "Refusal",
    "RefusalCode",
    "RefusalOutcomes",
    "RegisterArguments",
    "RegisterMode",
    "Registration",
    "Removal",
    "RenderOptions",
    "Rendered",
    "Report",
    "RouteArguments",
    "RouteResult",
    "RuleCoverage",
    "SearchAnswer",
    "SearchArguments",
    "SearchForm",
    "SearchOutcomes",
    "SearchResult",
    "SelectionRule",
    "StateLike",
    "StrategyReason",
    "SummaryEntry",
    "SummaryPool",
    "Tls",
    "TokenAccounting",
    "Tool",
    "ToolFormat",
    "ToolMemory",
    "ToolOutcome",
    "ToolSchemas",
    "ToolSettings",
    "ToolgateError",
    "ToolsList",
    "TransportHint",
    "TrustTier",
    "Usage",
    "UsageAmounts",
    "UsageBucket",
    "UsageGranularity",
    "all_of",
    "announce",
    "any_of",
    "can_defer",
    "cel",
    "has_prior_tool_output",
    "is_authenticated",
    "layout",
    "milestone_reached",
]
