"""Decision of Route to defer tools, with its reason, as a frozen value."""

from dataclasses import dataclass

from toolgate._gen.v1 import router_pb2
from toolgate.enums import DeferralMode, DeferralReason, DeferralSource, from_wire


@dataclass(frozen=True, slots=True)
class Deferral:
    """Decision about deferral."""

    mode: DeferralMode
    """The mode that was chosen."""
    source: DeferralSource
    """The source of the mode."""
    deferred: bool
    """True when tools were deferred."""
    reason: DeferralReason
    """The reason."""
    message: str
    """The same for a reader."""
    deferrable_tokens: int
    """cl100k_base tokens of the definitions that could be deferred."""
    threshold_tokens: int | None
    """From how many on AUTO defers; None unless AUTO compared the two."""
    offer_search: bool
    """True when a search tool is worth its place in the prompt."""
    deferred_tools: int
    """Tools that may be shown but are not in the active set."""

    @classmethod
    def from_proto(cls, message: router_pb2.Deferral) -> "Deferral":
        """Reads the wire's form."""
        wire = router_pb2
        has_threshold = message.HasField("threshold_tokens")
        return cls(
            mode=from_wire(DeferralMode, wire.DeferralMode, "DEFERRAL_MODE_", message.mode),
            source=from_wire(
                DeferralSource, wire.DeferralSource, "DEFERRAL_SOURCE_", message.source
            ),
            deferred=message.deferred,
            reason=from_wire(
                DeferralReason, wire.DeferralReason, "DEFERRAL_REASON_", message.reason
            ),
            message=message.message,
            deferrable_tokens=message.deferrable_tokens,
            threshold_tokens=message.threshold_tokens if has_threshold else None,
            offer_search=message.offer_search,
            deferred_tools=message.deferred_tools,
        )
