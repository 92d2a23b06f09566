//! Steps of every call, in this order: the deadline is read and capped, the caller is taken from the guard, the call is
//! admitted or shed, the work runs under the deadline, and the outcome is counted and mapped to a status.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};
use toolgate_serving::{Arrival, RequestOwner, time_asked};
use toolgate_telemetry::CallSpan;
use tracing::Instrument as _;

use super::guard::Guard;
use super::tenanted::Tenanted;
use super::{bounded, status};
use toolgate_access::admission::{Admission, Kind, Measured, Permit, Refusal, Wish};
use toolgate_access::audit::{Actor, Audit, Change, Effect};
use toolgate_access::auth::Caller;
use toolgate_app::plane::Plane;
use toolgate_app::telemetry::{Metrics, Rejection};
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::live::Live;

/// Maximum time of a registration. It embeds every new summary, which takes a CPU minutes for thousands of tools.
pub(super) const REGISTER_DEADLINE: Duration = Duration::from_secs(600);

/// Edge of the service, shared by all services.
#[derive(Clone)]
pub(super) struct Edge {
    /// Routing plane that does the work.
    pub(super) plane: Arc<Plane>,
    /// Guard that authenticates callers.
    pub(super) guard: Guard,
    /// Audit log of changes.
    pub(super) audit: Arc<Audit>,
    /// Limits on input.
    pub(super) limits: Arc<Live<LimitsConfig>>,
    /// Metrics of the service.
    pub(super) metrics: Arc<Metrics>,
    /// Admission control.
    pub(super) admission: Admission,
    /// Maximum time of a call.
    pub(super) max_deadline: Duration,
    /// Token that is cancelled when the service drains.
    pub(super) draining: CancellationToken,
}

impl Edge {
    /// Runs one call.
    pub(super) async fn call<M, R, W, F>(
        &self,
        method: &'static str,
        request: Request<M>,
        work: W,
    ) -> Result<Response<R>, Status>
    where
        M: Tenanted,
        R: prost::Message,
        W: FnOnce(Caller, M, Instant) -> F,
        F: Future<Output = Result<R, Error>>,
    {
        // The call's time counts from its first byte, including any time that it waited since.
        let arrival = Arrival::of(request.extensions());
        let started = arrival.at;
        let span = tracing::info_span!("call", rpc = method);
        let call = call_span(method, &request);
        let deadline = deadline_of(&arrival, self.time_allowed(method, request.metadata()));
        let left = deadline.saturating_duration_since(Instant::now());
        let wish = Wish { kind: kind_of(method), left, waited: arrival.waited };
        let admitted = caller_of(&request).and_then(|caller| {
            let tenant = caller.tenant(request.get_ref().tenant())?;
            call.of_tenant(tenant.as_str());
            name_owner(&request, &tenant);
            Ok((self.admit(&tenant, wish)?, caller))
        });
        let outcome = match admitted {
            Err(refusal) => Err(refusal),
            Ok((permit, caller)) => {
                let work = work(caller, request.into_inner(), deadline);
                let work = work.instrument(call.span().clone()).instrument(span.clone());
                let timed = tokio::time::timeout_at(deadline.into(), work).await;
                let outcome = timed.unwrap_or(Err(Error::DeadlineExceeded));
                let most = self.limits.now().max_message_bytes;
                let outcome = outcome.and_then(|answer| bounded::whole(method, answer, most));
                if outcome.is_ok() {
                    permit.answered();
                }
                outcome
            }
        };
        let end = || self.end(method, started, &call, outcome.map(Response::new));
        span.in_scope(|| call.span().in_scope(end))
    }

    /// Records the outcome of a call within its spans, and maps it to a status.
    fn end<R>(
        &self,
        method: &'static str,
        started: Instant,
        call: &CallSpan,
        outcome: Result<Response<R>, Error>,
    ) -> Result<Response<R>, Status> {
        let (code, error) = outcome.as_ref().err().map_or(("OK", ""), status::names);
        self.metrics.call(method, (code, error), started.elapsed().as_secs_f64());
        call.answered(code, error);
        outcome.map_err(|failure| status::of(&failure))
    }

    /// Makes a change, and records it in the audit before and after.
    pub(super) async fn change<T>(
        &self,
        change: Change,
        work: impl Future<Output = Result<T, Error>>,
        effect: impl FnOnce(&T) -> Effect,
    ) -> Result<T, Error> {
        let begun = self.audit.begin(change).await?;
        let made = work.await;
        begun.ends(made.as_ref().map(effect).map_err(|error| status::names(error).1)).await;
        made
    }

    /// Opens a stream. Streams do not count as calls in progress; they have a limit of their own.
    pub(super) fn open<M: Tenanted, R>(
        &self,
        method: &'static str,
        request: Request<M>,
        open: impl FnOnce(&Self, Request<M>) -> Result<Response<R>, Error>,
    ) -> Result<Response<R>, Status> {
        let started = Arrival::of(request.extensions()).at;
        let call = call_span(method, &request);
        let _in_call = call.span().enter();
        let outcome = self.refuse_draining().and_then(|()| {
            let tenant = caller_of(&request)?.tenant(request.get_ref().tenant())?;
            call.of_tenant(tenant.as_str());
            name_owner(&request, &tenant);
            open(self, request)
        });
        if matches!(outcome, Err(Error::Overloaded)) {
            self.metrics.rejected(Rejection::Watches);
        }
        self.end(method, started, &call, outcome)
    }

    fn refuse_draining(&self) -> Result<(), Error> {
        if self.draining.is_cancelled() {
            self.metrics.rejected(Rejection::Draining);
            return Err(Error::Draining);
        }
        Ok(())
    }

    fn admit(&self, tenant: &TenantId, wish: Wish) -> Result<Permit, Error> {
        self.refuse_draining()?;
        self.admission.begin(tenant, wish).map_err(|refusal| {
            let (reason, error) = told(refusal);
            self.metrics.rejected(reason);
            error
        })
    }

    /// Returns the status for a method of the contract that is not implemented, and counts the call.
    pub(super) fn unserved(&self, method: &'static str) -> Status {
        let refusal = Error::NotImplemented(method);
        self.metrics.call(method, status::names(&refusal), 0.0);
        status::of(&refusal)
    }

    /// Returns the caller's timeout, or the cap if that is shorter or the caller gave none.
    fn time_allowed(&self, method: &'static str, metadata: &MetadataMap) -> Duration {
        let registers = method == "CatalogService/RegisterServer";
        let cap =
            if registers { REGISTER_DEADLINE.max(self.max_deadline) } else { self.max_deadline };
        time_asked(metadata).map_or(cap, |asked| asked.min(cap))
    }
}

/// Returns the time by which a call must end. The caller's timeout counts from the arrival.
fn deadline_of(arrival: &Arrival, allowed: Duration) -> Instant {
    arrival.at + allowed
}

/// Returns the kind of a call: whether its caller waits for it, and whether its time shows how busy the process is.
fn kind_of(method: &str) -> Kind {
    match method {
        "RouterService/Route" => Kind::Measured(Measured::Route),
        "RouterService/SearchTools" => Kind::Measured(Measured::Search),
        "RouterService/Gate" => Kind::Measured(Measured::Gate),
        // Changes, which may embed or check a whole catalog.
        "CatalogService/RegisterServer"
        | "CatalogService/UnregisterServer"
        | "CatalogService/ApproveTools"
        | "PolicyService/SetPolicy"
        | "PolicyService/CheckPolicy"
        | "MemoryService/ClearMemory" => Kind::Lasting,
        _ => Kind::Prompt,
    }
}

/// Returns true if the caller of the RPC at this path, such as `/toolgate.v1.RouterService/Route`, waits for its
/// answer.
pub(super) fn is_prompt(path: &str) -> bool {
    let method = path.strip_prefix("/toolgate.v1.");
    method.is_some_and(|method| kind_of(method) != Kind::Lasting)
}

/// Counts the answer for the tenant that the request names.
fn name_owner<M>(request: &Request<M>, tenant: &TenantId) {
    if let Some(owner) = request.extensions().get::<RequestOwner>() {
        owner.name(tenant.as_str());
    }
}

/// Returns the name of a refusal in metrics, and the caller's error.
fn told(refusal: Refusal) -> (Rejection, Error) {
    let limited = |limit, retry_after| Error::TenantLimited { limit, retry_after };
    match refusal {
        Refusal::Busy => (Rejection::Concurrency, Error::Overloaded),
        Refusal::Slow => (Rejection::Wait, Error::Overloaded),
        Refusal::NoTime => (Rejection::Deadline, Error::DeadlineExceeded),
        Refusal::MemoryShort => (Rejection::Memory, Error::Overloaded),
        Refusal::TenantBusy => {
            let limit = "server.max_concurrent_calls_per_tenant";
            (Rejection::TenantConcurrency, limited(limit, status::RETRY_AFTER))
        }
        Refusal::TenantTooOften(wait) => {
            (Rejection::TenantRate, limited("limits.calls_per_second_per_tenant", wait))
        }
    }
}

/// Returns the span of a call. The guard began it before authentication; without one, a new span is started.
fn call_span<M>(method: &'static str, request: &Request<M>) -> CallSpan {
    let begun = request.extensions().get::<CallSpan>().cloned();
    begun.unwrap_or_else(|| CallSpan::served(method, request.metadata().as_ref()))
}

/// Creates the audit record of a change.
pub(super) fn change(act: &'static str, caller: &Caller, tenant: &TenantId, of: &str) -> Change {
    let actor = Actor {
        principal: caller.principal().to_owned(),
        credential: caller.credential().to_string(),
        method: caller.credential().method(),
    };
    Change { act, tenant: tenant.as_str().to_owned(), of: of.to_owned(), actor, withdraws: false }
}

/// Creates a [`change`] that removes content or forbids something.
pub(super) fn withdrawal(
    act: &'static str,
    caller: &Caller,
    tenant: &TenantId,
    of: &str,
) -> Change {
    Change { withdraws: true, ..change(act, caller, tenant, of) }
}

/// Returns the caller. A missing caller is a defect, and must not let a request in.
pub(super) fn caller_of<M>(request: &Request<M>) -> Result<Caller, Error> {
    let caller = request.extensions().get::<Caller>();
    caller.cloned().ok_or_else(|| Error::internal("a call came past the guard"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_count_from_the_first_byte() {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        let at = now.checked_sub(seconds(2)).expect("the machine has run for longer");
        let arrival = Arrival { at, waited: seconds(2) };
        assert!(deadline_of(&arrival, seconds(1)) < now, "it has passed");
        assert_eq!(deadline_of(&arrival, seconds(5)), now + seconds(3));
    }
}
