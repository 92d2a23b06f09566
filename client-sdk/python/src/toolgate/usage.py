"""Answers of GetUsage, as frozen values."""

from dataclasses import dataclass
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from toolgate._gen.v1 import error_pb2, usage_pb2
from toolgate.enums import DeferralVerdict, RefusalCode, UsageGranularity, from_wire, to_wire


@dataclass(frozen=True, slots=True)
class UsageAmounts:
    """Counts of calls and tokens; all tokens are cl100k_base."""

    route_calls: int
    """Route calls answered."""
    allowed_calls: int
    """Calls that Gate allowed."""
    refused_calls: int
    """Calls that Gate refused."""
    full_catalog_tokens: int
    """Tokens of every schema on every turn."""
    phase1_tokens: int
    """Tokens of the prompts' listing, by `prompt_listing`: counted on every turn as if no
    prompt were ever cached."""
    phase2_tokens: int
    """Promoted schemas, all of each turn's."""
    phase2_new_tokens: int
    """Those among them that the turn before did not show."""
    lookup_calls: int
    """SearchTools and BatchGetToolSchemas calls answered."""
    on_demand_tokens: int
    """The tools that those calls sent: what was spent on demand."""
    saved_gross_tokens: int
    """`full_catalog_tokens - phase2_tokens`."""
    saved_net_tokens: int
    """The same less `phase1_tokens` and `on_demand_tokens`; negative when deferral did not pay."""

    @classmethod
    def from_proto(
        cls, message: usage_pb2.GetUsageResponse | usage_pb2.UsageBucket
    ) -> "UsageAmounts":
        """Reads the wire's form."""
        return cls(
            route_calls=message.route_calls,
            allowed_calls=message.allowed_calls,
            refused_calls=message.refused_calls,
            full_catalog_tokens=message.full_catalog_tokens,
            phase1_tokens=message.phase1_tokens,
            phase2_tokens=message.phase2_tokens,
            phase2_new_tokens=message.phase2_new_tokens,
            lookup_calls=message.lookup_calls,
            on_demand_tokens=message.on_demand_tokens,
            saved_gross_tokens=message.saved_gross_tokens,
            saved_net_tokens=message.saved_net_tokens,
        )


@dataclass(frozen=True, slots=True)
class UsageBucket:
    """One hour or day of the ledger."""

    start: datetime
    """When it begins, in UTC."""
    amounts: UsageAmounts
    """Its counts."""


@dataclass(frozen=True, slots=True)
class RefusalOutcomes:
    """Outcomes of refused calls, told by the user's next message."""

    mended_calls: int
    """Another call of the same turn succeeded after them."""
    asked_calls: int
    """The model asked the user."""
    given_up_calls: int
    """Neither."""


@dataclass(frozen=True, slots=True)
class SearchOutcomes:
    """Outcomes of searches, by the calls of the same principal, each counted when it is decided."""

    searches: int
    """SearchTools calls answered."""
    hits: int
    """Searches of which a tool was called within the five calls behind them."""
    misses: int
    """Searches that found nothing, or of whose tools none was called in time."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The tenant's token ledger over a span."""

    total: UsageAmounts
    """Over the whole span."""
    refusals: dict[RefusalCode, int]
    """Refused calls by code, the most frequent first."""
    deferral: DeferralVerdict
    """Verdict on deferral: it paid, or the reason why not."""
    buckets: tuple[UsageBucket, ...]
    """The span's hours or days, oldest first, without those in which nothing happened; () unless a
    granularity was asked for."""
    start: datetime | None
    """The full hour that counting began with, in UTC. None: the beginning."""
    end: datetime
    """The full hour that counting ended before, in UTC."""
    refusal_outcomes: RefusalOutcomes | None = None
    """Outcomes of refused calls, in conversations whose messages Route was told; None from a
    service that does not count it."""
    search_outcomes: SearchOutcomes | None = None
    """Outcomes of searches; None from a service that does not count them."""

    @classmethod
    def from_proto(cls, message: usage_pb2.GetUsageResponse) -> "Usage":
        """Reads the wire's form."""
        refusals: dict[RefusalCode, int] = {}
        for count in message.refusals:
            code = from_wire(RefusalCode, error_pb2.RefusalCode, "REFUSAL_CODE_", count.code)
            refusals[code] = refusals.get(code, 0) + count.calls
        began = message.HasField("start_time")
        return cls(
            total=UsageAmounts.from_proto(message),
            refusals=refusals,
            deferral=from_wire(
                DeferralVerdict, usage_pb2.DeferralVerdict, "DEFERRAL_VERDICT_", message.deferral
            ),
            buckets=tuple(
                UsageBucket(bucket.start_time.ToDatetime(UTC), UsageAmounts.from_proto(bucket))
                for bucket in message.buckets
            ),
            start=message.start_time.ToDatetime(UTC) if began else None,
            end=message.end_time.ToDatetime(UTC),
            refusal_outcomes=_outcomes(message),
            search_outcomes=_searches(message),
        )


def _outcomes(message: usage_pb2.GetUsageResponse) -> RefusalOutcomes | None:
    if not message.HasField("refusal_outcomes"):
        return None
    outcomes = message.refusal_outcomes
    return RefusalOutcomes(outcomes.mended_calls, outcomes.asked_calls, outcomes.given_up_calls)


def _searches(message: usage_pb2.GetUsageResponse) -> SearchOutcomes | None:
    if not message.HasField("search_outcomes"):
        return None
    outcomes = message.search_outcomes
    return SearchOutcomes(outcomes.searches, outcomes.hits, outcomes.misses)


def usage_request(
    tenant: str,
    start: datetime | None,
    end: datetime | None,
    granularity: UsageGranularity | str | None,
) -> usage_pb2.GetUsageRequest:
    """Builds a GetUsageRequest."""
    name = "UNSPECIFIED" if granularity is None else granularity
    return usage_pb2.GetUsageRequest(
        tenant=tenant,
        start_time=_timestamp("start", start),
        end_time=_timestamp("end", end),
        granularity=to_wire(usage_pb2.UsageGranularity, "USAGE_GRANULARITY_", name),
    )


def _timestamp(name: str, moment: datetime | None) -> Timestamp | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"{name} has no time zone: use datetime.now(UTC) or set tzinfo")
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp
