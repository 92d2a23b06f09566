"""The usage ledger through both clients: spans sent, answers read."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest
from conftest import FakeService

from toolgate import (
    AsyncClient,
    Client,
    DeferralVerdict,
    RefusalCode,
    RefusalOutcomes,
    SearchOutcomes,
    Usage,
)
from toolgate._gen.v1 import error_pb2, usage_pb2

FRIDAY = datetime(2026, 11, 20, tzinfo=UTC)


def answer() -> usage_pb2.GetUsageResponse:
    message = usage_pb2.GetUsageResponse(
        route_calls=3,
        allowed_calls=2,
        refused_calls=4,
        full_catalog_tokens=100,
        phase1_tokens=80,
        phase2_tokens=60,
        phase2_new_tokens=50,
        lookup_calls=2,
        on_demand_tokens=7,
        saved_gross_tokens=40,
        saved_net_tokens=-40,
        refusals=[
            usage_pb2.RefusalCount(code=error_pb2.REFUSAL_CODE_UNKNOWN_TOOL, calls=3),
            usage_pb2.RefusalCount(code=999, calls=1),  # type: ignore[arg-type]
        ],
        deferral=usage_pb2.DEFERRAL_VERDICT_MOST_TOOLS_USED,
        buckets=[usage_pb2.UsageBucket(route_calls=3, saved_net_tokens=-40)],
        refusal_outcomes=usage_pb2.RefusalOutcomes(mended_calls=2, asked_calls=1, given_up_calls=0),
        search_outcomes=usage_pb2.SearchOutcomes(searches=9, hits=5, misses=3),
    )
    message.buckets[0].start_time.FromDatetime(FRIDAY)
    message.end_time.FromDatetime(FRIDAY + timedelta(hours=1))
    return message


def check(usage: Usage) -> None:
    total = usage.total
    assert (total.route_calls, total.allowed_calls, total.refused_calls) == (3, 2, 4)
    assert (total.full_catalog_tokens, total.phase1_tokens) == (100, 80)
    assert (total.phase2_tokens, total.phase2_new_tokens) == (60, 50)
    assert (total.lookup_calls, total.on_demand_tokens) == (2, 7)
    assert (total.saved_gross_tokens, total.saved_net_tokens) == (40, -40)
    assert usage.refusals == {RefusalCode.UNKNOWN_TOOL: 3, RefusalCode.UNSPECIFIED: 1}
    assert usage.deferral is DeferralVerdict.MOST_TOOLS_USED
    assert [(b.start, b.amounts.saved_net_tokens) for b in usage.buckets] == [(FRIDAY, -40)]
    assert usage.refusal_outcomes == RefusalOutcomes(2, 1, 0)
    assert usage.search_outcomes == SearchOutcomes(9, 5, 3)
    assert usage.start is None
    assert usage.end == FRIDAY + timedelta(hours=1)


def test_the_ledger_is_read(service: FakeService) -> None:
    service.answer("GetUsage", answer())
    with Client(service.target, tenant="acme") as client:
        check(client.get_usage())
        client.get_usage(
            start=datetime(2026, 11, 19, 1, tzinfo=timezone(timedelta(hours=1))),
            end=FRIDAY,
            granularity="day",
        )
    bare, spanned = service.requests
    assert bare == usage_pb2.GetUsageRequest(tenant="acme")
    assert spanned.start_time.ToDatetime(UTC) == FRIDAY - timedelta(days=1)
    assert spanned.end_time.ToDatetime(UTC) == FRIDAY
    assert spanned.granularity == usage_pb2.USAGE_GRANULARITY_DAY


def test_a_service_that_does_not_count_outcomes_tells_none() -> None:
    assert Usage.from_proto(usage_pb2.GetUsageResponse()).refusal_outcomes is None


def test_asyncio_reads_it_too(service: FakeService) -> None:
    service.answer("GetUsage", answer())

    async def talk() -> None:
        async with AsyncClient(service.target, tenant="acme") as client:
            check(await client.get_usage(start=FRIDAY, granularity="hour"))

    asyncio.run(talk())
    assert service.requests[0].start_time.ToDatetime(UTC) == FRIDAY
    assert service.requests[0].granularity == usage_pb2.USAGE_GRANULARITY_HOUR


def test_what_makes_no_sense_is_refused_before_it_is_sent(service: FakeService) -> None:
    with Client(service.target) as client:
        with pytest.raises(ValueError, match="start has no time zone"):
            client.get_usage(start=datetime(2026, 11, 20))
        with pytest.raises(ValueError, match="'week' is none of"):
            client.get_usage(granularity="week")
    assert service.requests == []
