//! `UsageService`.

use std::time::SystemTime;

use prost_types::Timestamp;
use tonic::{Request, Response, Status};
use toolgate_proto::v1;
use toolgate_proto::v1::usage_service_server::UsageService;
use toolgate_proto::v1::{GetUsageRequest, GetUsageResponse};

use super::edge::Edge;
use super::fields::Fields;
use toolgate_access::auth::Caller;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::method::Method;
use toolgate_routing::usage::{Amounts, Bucket, Deferral, Granularity, Span, Usage, hour_of};
use toolgate_store::Hour;

const SECONDS_OF_AN_HOUR: i64 = 3_600;
/// Last second of the year 9999, the maximum of `google.protobuf.Timestamp`.
const SECONDS_MAX: i64 = 253_402_300_799;

/// Implementation of `UsageService`.
pub(super) struct Ledgers {
    pub(super) edge: Edge,
}

#[tonic::async_trait]
impl UsageService for Ledgers {
    async fn get_usage(
        &self,
        call: Request<GetUsageRequest>,
    ) -> Result<Response<GetUsageResponse>, Status> {
        let plane = &self.edge.pipeline.plane;
        let work = |_: Caller, tenant: TenantId, message: GetUsageRequest, _| async move {
            let (span, buckets) = parse(&message)?;
            let usage = plane.usage.read(&tenant, span.clone(), buckets).await?;
            let begins = message.start_time.is_some().then_some(span.start);
            Ok(render(&usage, begins, span.end))
        };
        self.edge.call(Method::GetUsage, call, work).await
    }
}

/// Parses the hours to count and the size of buckets, and reports all problems in one error.
fn parse(message: &GetUsageRequest) -> Result<(Span, Option<Granularity>), Error> {
    let mut fields = Fields::default();
    let start = fields.take("start_time", moment(message.start_time));
    let end = fields.take("end_time", moment(message.end_time));
    let buckets = fields.take("granularity", granularity(message.granularity));
    if let (Some(Some(start)), Some(end)) = (start, end) {
        let (end, problem) = match end {
            Some(end) => (end, "must be before end_time"),
            None => (now(), "must be before now, which end_time is when it is absent"),
        };
        fields.require(start < end, "start_time", problem);
    }
    fields.finish()?;
    let first = start.flatten().map_or(0, |(seconds, _)| hour(seconds));
    let end = match end.flatten() {
        Some((seconds, nanos)) if seconds % SECONDS_OF_AN_HOUR == 0 && nanos == 0 => hour(seconds),
        Some((seconds, _)) => hour(seconds) + 1,
        None => hour_of(SystemTime::now()).saturating_add(1),
    };
    Ok((first..end, buckets.flatten()))
}

/// Checks the ranges of a time, and returns its seconds and nanoseconds.
fn moment(wire: Option<Timestamp>) -> Result<Option<(i64, i32)>, Error> {
    let Some(Timestamp { seconds, nanos }) = wire else { return Ok(None) };
    if (0..=SECONDS_MAX).contains(&seconds) && (0..1_000_000_000).contains(&nanos) {
        return Ok(Some((seconds, nanos)));
    }
    let right =
        "must be from 1970-01-01T00:00:00Z to 9999-12-31T23:59:59Z, nanos from 0 to 999999999";
    Err(Error::field("", right))
}

fn granularity(wire: i32) -> Result<Option<Granularity>, Error> {
    match v1::UsageGranularity::try_from(wire) {
        Ok(v1::UsageGranularity::Unspecified) => Ok(None),
        Ok(v1::UsageGranularity::Hour) => Ok(Some(Granularity::Hour)),
        Ok(v1::UsageGranularity::Day) => Ok(Some(Granularity::Day)),
        Err(_) => Err(Error::field("", "must be USAGE_GRANULARITY_HOUR, _DAY or absent")),
    }
}

fn now() -> (i64, i32) {
    let now = Timestamp::from(SystemTime::now());
    (now.seconds, now.nanos)
}

/// Returns the hour that contains a time which [`moment`] has checked.
fn hour(seconds: i64) -> Hour {
    Hour::try_from(seconds / SECONDS_OF_AN_HOUR).unwrap_or(Hour::MAX - 1)
}

fn time(hour: Hour) -> Option<Timestamp> {
    Some(Timestamp { seconds: i64::from(hour) * SECONDS_OF_AN_HOUR, nanos: 0 })
}

fn render(usage: &Usage, begins: Option<Hour>, ends: Hour) -> GetUsageResponse {
    let total = &usage.total;
    GetUsageResponse {
        route_calls: total.route_calls,
        allowed_calls: total.allowed_calls,
        refused_calls: total.refused_calls(),
        full_catalog_tokens: total.full_tokens,
        phase1_tokens: total.phase1_tokens,
        phase2_tokens: total.phase2_tokens,
        phase2_new_tokens: total.new_tokens,
        lookup_calls: total.lookup_calls,
        on_demand_tokens: total.on_demand_tokens,
        saved_gross_tokens: total.saved_gross(),
        saved_net_tokens: total.saved_net(),
        refusals: refusals(total),
        deferral: deferral(Deferral::of(total)) as i32,
        buckets: usage.buckets.iter().map(bucket).collect(),
        start_time: begins.and_then(time),
        end_time: time(ends),
        refusal_outcomes: Some(v1::RefusalOutcomes {
            mended_calls: total.mended_calls,
            asked_calls: total.asked_calls,
            given_up_calls: total.given_up_calls,
        }),
        search_outcomes: Some(v1::SearchOutcomes {
            searches: total.searches,
            hits: total.search_hits,
            misses: total.search_misses,
        }),
    }
}

fn bucket(bucket: &Bucket) -> v1::UsageBucket {
    let amounts = &bucket.amounts;
    v1::UsageBucket {
        start_time: time(bucket.start),
        route_calls: amounts.route_calls,
        allowed_calls: amounts.allowed_calls,
        refused_calls: amounts.refused_calls(),
        full_catalog_tokens: amounts.full_tokens,
        phase1_tokens: amounts.phase1_tokens,
        phase2_tokens: amounts.phase2_tokens,
        phase2_new_tokens: amounts.new_tokens,
        lookup_calls: amounts.lookup_calls,
        on_demand_tokens: amounts.on_demand_tokens,
        saved_gross_tokens: amounts.saved_gross(),
        saved_net_tokens: amounts.saved_net(),
    }
}

fn refusals(total: &Amounts) -> Vec<v1::RefusalCount> {
    let count = |(code, calls): (&std::borrow::Cow<'static, str>, &u64)| {
        let known = v1::RefusalCode::from_str_name(&format!("REFUSAL_CODE_{code}"));
        v1::RefusalCount { code: known.unwrap_or_default() as i32, calls: *calls }
    };
    let mut counts: Vec<_> = total.refused.iter().map(count).collect();
    counts.sort_by_key(|count| (std::cmp::Reverse(count.calls), count.code));
    counts
}

fn deferral(deferral: Deferral) -> v1::DeferralVerdict {
    match deferral {
        Deferral::NoCalls => v1::DeferralVerdict::NoCalls,
        Deferral::Paid => v1::DeferralVerdict::Paid,
        Deferral::MostToolsUsed => v1::DeferralVerdict::MostToolsUsed,
        Deferral::CatalogTooSmall => v1::DeferralVerdict::CatalogTooSmall,
    }
}
