//! One call, with the retries that the clients' service config allows.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::{Code, Request, Status};
use toolgate_proto::v1::{Intent, RouteRequest};

use crate::outcome::Outcome;
use crate::targets::Targets;

/// Retry policy of the service config that the clients ship: attempts, first pause, growth factor and longest pause.
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const GROWTH: u32 = 2;
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Deadline and retries of calls.
pub(crate) struct Manner {
    pub(crate) deadline: Duration,
    pub(crate) retry: bool,
}

/// Calls Route, with the retries of `manner`, until it is answered or the deadline is over.
pub(crate) async fn call(
    targets: &Targets,
    manner: &Manner,
    tenant: &str,
    intent: String,
) -> Outcome {
    let until = Instant::now() + manner.deadline;
    let attempts = if manner.retry { ATTEMPTS } else { 1 };
    let mut pause = FIRST_PAUSE;
    for attempt in 1.. {
        let status = match attempt_one(targets, until, tenant, &intent).await {
            Ok(outcome) => return outcome,
            Err(status) => status,
        };
        let again = Instant::now() + pause.mul_f64(fastrand::f64());
        if attempt >= attempts || !is_unavailable(&status) || again >= until {
            return Outcome::of(&status);
        }
        sleep_until(again).await;
        pause = (pause * GROWTH).min(PAUSE_MAX);
    }
    unreachable!("the last attempt returns")
}

/// Returns true if other gRPC clients, and Toolgate's own, would report UNAVAILABLE. Tonic has several codes for a
/// connection that ended before the answer came. A status with a source was made on this side.
fn is_unavailable(status: &Status) -> bool {
    let broke = || std::error::Error::source(status).is_some();
    match status.code() {
        Code::Unavailable => true,
        Code::Cancelled | Code::Unknown | Code::Internal => broke(),
        _ => false,
    }
}

async fn attempt_one(
    targets: &Targets,
    until: Instant,
    tenant: &str,
    intent: &str,
) -> Result<Outcome, Status> {
    let intents = vec![Intent { text: intent.to_owned(), ..Intent::default() }];
    let message = RouteRequest { tenant: tenant.to_owned(), intents, ..RouteRequest::default() };
    let mut request = Request::new(message);
    request.set_timeout(until.saturating_duration_since(Instant::now()));
    let connection = targets.take();
    let answer = timeout_at(until, connection.client.clone().route(request)).await;
    let answer = answer.map_err(|_| Status::deadline_exceeded("no answer in time"))?;
    let answer = answer.inspect_err(|status| {
        if is_unavailable(status) {
            targets.failed(connection);
        }
    })?;
    let degraded = !answer.into_inner().degraded.is_empty();
    Ok(if degraded { Outcome::Degraded } else { Outcome::Answered })
}
