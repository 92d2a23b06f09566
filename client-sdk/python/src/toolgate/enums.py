"""The wire's closed sets as Python string enums: compare with a member or with its plain name."""

from enum import StrEnum
from typing import Any, TypeVar


class WireEnum(StrEnum):
    """Base of the enums below; `UNSPECIFIED` also stands for values newer than this client."""


E = TypeVar("E", bound=WireEnum)


class ErrorReason(WireEnum):
    """Reasons of failed calls; `ToolgateError.reason` compares equal to these."""

    UNSPECIFIED = "UNSPECIFIED"
    INVALID_FIELD = "INVALID_FIELD"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    MALFORMED_CATALOG = "MALFORMED_CATALOG"
    TENANT_NOT_FOUND = "TENANT_NOT_FOUND"
    SERVER_NOT_FOUND = "SERVER_NOT_FOUND"
    ETAG_MISMATCH = "ETAG_MISMATCH"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    TOOLS_REJECTED = "TOOLS_REJECTED"
    HANDLE_INVALID = "HANDLE_INVALID"
    PAGE_TOKEN_INVALID = "PAGE_TOKEN_INVALID"
    OVERLOADED = "OVERLOADED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    ENCODER_UNAVAILABLE = "ENCODER_UNAVAILABLE"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    DRAINING = "DRAINING"
    NOT_IMPLEMENTED = "NOT_IMPLEMENTED"
    REVISION_NOT_REACHED = "REVISION_NOT_REACHED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    INTERNAL = "INTERNAL"
    FINGERPRINT_MISMATCH = "FINGERPRINT_MISMATCH"
    TENANT_LIMITED = "TENANT_LIMITED"


class FitKind(WireEnum):
    """Fit of a turn's best tool."""

    UNSPECIFIED = "UNSPECIFIED"
    CLEAR = "CLEAR"
    AMBIGUOUS = "AMBIGUOUS"
    NONE = "NONE"


class RefusalCode(WireEnum):
    """Reasons for a tool to be left out of the active set, or for a call not to run."""

    UNSPECIFIED = "UNSPECIFIED"
    TOOL_NOT_AVAILABLE = "TOOL_NOT_AVAILABLE"
    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    PRECONDITION_UNMET = "PRECONDITION_UNMET"
    SCOPE_MISSING = "SCOPE_MISSING"
    HANDLE_EXPIRED = "HANDLE_EXPIRED"
    HANDLE_INVALID = "HANDLE_INVALID"
    SCHEMA_CHANGED = "SCHEMA_CHANGED"
    ARGUMENTS_INVALID = "ARGUMENTS_INVALID"
    QUARANTINED = "QUARANTINED"
    BELOW_THRESHOLD = "BELOW_THRESHOLD"
    BEYOND_TOP_K = "BEYOND_TOP_K"
    OVER_TOKEN_BUDGET = "OVER_TOKEN_BUDGET"
    EXCLUDED = "EXCLUDED"
    BEYOND_CAP = "BEYOND_CAP"
    BELOW_CUTOFF = "BELOW_CUTOFF"
    KEPT_FOR_CACHE = "KEPT_FOR_CACHE"


class PromptListing(WireEnum):
    """Listing of a catalog's tools in a prompt, beside the active set."""

    UNSPECIFIED = "UNSPECIFIED"
    NONE = "NONE"
    NAMES = "NAMES"
    SUMMARIES = "SUMMARIES"


class Detail(WireEnum):
    """Share of each tool that Route sends."""

    UNSPECIFIED = "UNSPECIFIED"
    NAMES = "NAMES"
    SIGNATURES = "SIGNATURES"
    SCHEMAS = "SCHEMAS"
    REFERENCES = "REFERENCES"


class ToolFormat(WireEnum):
    """A provider's API, whose format tools are rendered in."""

    UNSPECIFIED = "UNSPECIFIED"
    OPENAI_CHAT = "OPENAI_CHAT"
    OPENAI_RESPONSES = "OPENAI_RESPONSES"
    ANTHROPIC = "ANTHROPIC"
    GEMINI = "GEMINI"
    MCP = "MCP"


class PromptStrategy(WireEnum):
    """A way to put tools into requests to a model."""

    UNSPECIFIED = "UNSPECIFIED"
    AUTO = "AUTO"
    PASS = "PASS"
    NATIVE = "NATIVE"
    ENVELOPE = "ENVELOPE"
    CUT = "CUT"


class SelectionRule(WireEnum):
    """Rule that chooses tools; `UNSPECIFIED` is the server's own."""

    UNSPECIFIED = "UNSPECIFIED"
    TOOL_ATTENTION = "TOOL_ATTENTION"


class ContextWarning(WireEnum):
    """Problem with the use of the context window."""

    UNSPECIFIED = "UNSPECIFIED"
    LOW_UTILISATION = "LOW_UTILISATION"
    WINDOW_NEARLY_FULL = "WINDOW_NEARLY_FULL"


class StrategyReason(WireEnum):
    """Reasons for a strategy."""

    UNSPECIFIED = "UNSPECIFIED"
    ASKED = "ASKED"
    NOTHING_DEFERRED = "NOTHING_DEFERRED"
    HOST_DEFERS = "HOST_DEFERS"
    NOT_TAKEN = "NOT_TAKEN"
    CHEAPEST = "CHEAPEST"
    NO_SEARCH = "NO_SEARCH"
    KEPT = "KEPT"


class SearchForm(WireEnum):
    """Readings of a query by SearchTools."""

    UNSPECIFIED = "UNSPECIFIED"
    SELECT = "SELECT"
    PREFIX = "PREFIX"
    KEYWORDS = "KEYWORDS"
    NATURAL = "NATURAL"


class FoundBy(WireEnum):
    """Ways of a tool into the active set."""

    UNSPECIFIED = "UNSPECIFIED"
    OVERLAP = "OVERLAP"
    NAME = "NAME"
    WORDS = "WORDS"
    PIN = "PIN"
    ALWAYS_LOAD = "ALWAYS_LOAD"
    KEPT = "KEPT"
    NOT_DEFERRED = "NOT_DEFERRED"
    MEMORY = "MEMORY"


class DegradedReason(WireEnum):
    """In what way an answer is worse than usual."""

    UNSPECIFIED = "UNSPECIFIED"
    LEXICAL_ONLY = "LEXICAL_ONLY"
    STALE_CATALOG = "STALE_CATALOG"
    INTENT_TRUNCATED = "INTENT_TRUNCATED"


class DeferralMode(WireEnum):
    """Modes of deferral, where tools are found when needed."""

    UNSPECIFIED = "UNSPECIFIED"
    ALWAYS = "ALWAYS"
    AUTO = "AUTO"
    OFF = "OFF"


class DeferralSource(WireEnum):
    """Sources of the mode."""

    UNSPECIFIED = "UNSPECIFIED"
    DEFAULT = "DEFAULT"
    SERVER = "SERVER"
    TENANT = "TENANT"
    REQUEST = "REQUEST"


class DeferralReason(WireEnum):
    """Reasons for tools to be deferred, or not."""

    UNSPECIFIED = "UNSPECIFIED"
    MODE = "MODE"
    KILL_SWITCH = "KILL_SWITCH"
    MODEL_UNSUPPORTED = "MODEL_UNSUPPORTED"
    UNKNOWN_PROXY = "UNKNOWN_PROXY"
    OVER_THRESHOLD = "OVER_THRESHOLD"
    UNDER_THRESHOLD = "UNDER_THRESHOLD"
    NO_WINDOW = "NO_WINDOW"
    PRICE = "PRICE"


class OutcomeKind(WireEnum):
    """Outcomes of a registration for a tool."""

    UNSPECIFIED = "UNSPECIFIED"
    ACCEPTED = "ACCEPTED"
    UNCHANGED = "UNCHANGED"
    CHANGED = "CHANGED"
    QUARANTINED = "QUARANTINED"
    REJECTED = "REJECTED"
    REMOVED = "REMOVED"


class RegisterMode(WireEnum):
    """Treatments of tools that the body of a registration does not name."""

    UNSPECIFIED = "UNSPECIFIED"
    REPLACE = "REPLACE"
    MERGE = "MERGE"


class TransportHint(WireEnum):
    """Transports of an MCP server."""

    UNSPECIFIED = "UNSPECIFIED"
    STDIO = "STDIO"
    STREAMABLE_HTTP = "STREAMABLE_HTTP"
    BUILT_IN = "BUILT_IN"


class TrustTier(WireEnum):
    """Degrees of trust in an MCP server's texts."""

    UNSPECIFIED = "UNSPECIFIED"
    UNTRUSTED = "UNTRUSTED"
    STANDARD = "STANDARD"
    TRUSTED = "TRUSTED"


class CallStatus(WireEnum):
    """Outcomes of a tool call; only `SUCCEEDED` counts as output."""

    UNSPECIFIED = "UNSPECIFIED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class UsageGranularity(WireEnum):
    """Lengths of a bucket of the usage ledger."""

    UNSPECIFIED = "UNSPECIFIED"
    HOUR = "HOUR"
    DAY = "DAY"


class DeferralVerdict(WireEnum):
    """Verdict on deferral: it paid, or the reason why not."""

    UNSPECIFIED = "UNSPECIFIED"
    NO_CALLS = "NO_CALLS"
    PAID = "PAID"
    MOST_TOOLS_USED = "MOST_TOOLS_USED"
    CATALOG_TOO_SMALL = "CATALOG_TOO_SMALL"


def from_wire(members: type[E], wire: Any, prefix: str, number: int) -> E:
    """The member for a wire number; `UNSPECIFIED` for a number that this client does not know."""
    try:
        return members(wire.Name(number).removeprefix(prefix))
    except ValueError:
        return members("UNSPECIFIED")


def to_wire(wire: Any, prefix: str, name: str) -> Any:
    """The wire number for a member or its name in any case.

    Raises:
        ValueError: no such name.
    """
    try:
        return wire.Value(prefix + name.upper())
    except ValueError:
        names = ", ".join(known.removeprefix(prefix) for known in wire.keys())  # noqa: SIM118
        raise ValueError(f"{name!r} is none of {names}") from None
