//! What every call passes on its way in, in this order: the deadline is read and capped; the caller is known (the guard
//! told who it is); the call is admitted or shed; the work runs under the deadline; the outcome is counted and mapped to a
//! status.

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

/// A registration embeds every new summary, which takes a CPU minutes for thousands of tools.
pub(super) const REGISTER_DEADLINE: Duration = Duration::from_secs(600);

/// The service's edge, shared by all services.
#[derive(Clone)]
pub(super) struct Edge {
    /// The plane behind it.
    pub(super) plane: Arc<Plane>,
    /// Tells who calls.
    pub(super) guard: Guard,
    /// Where changes are told.
    pub(super) audit: Arc<Audit>,
    /// What input is held to.
    pub(super) limits: Arc<Live<LimitsConfig>>,
    /// Where calls are counted.
    pub(super) metrics: Arc<Metrics>,
    /// Says who may begin a call.
    pub(super) admission: Admission,
    /// The longest a call may take.
    pub(super) max_deadline: Duration,
    /// Cancelled when the service drains.
    pub(super) draining: CancellationToken,
}

impl Edge {
    /// Runs the work of one call.
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
        // From its first byte on, whatever it waited for since then.
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

    /// Counts how a call ended, within its spans, and gives it its status.
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

    /// Makes a change, which is told to the audit before and after.
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

    /// Opens a stream. Streams are no calls in progress: they have a bound of their own.
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

    /// A part of the contract that is not served yet.
    pub(super) fn unserved(&self, method: &'static str) -> Status {
        let refusal = Error::NotImplemented(method);
        self.metrics.call(method, status::names(&refusal), 0.0);
        status::of(&refusal)
    }

    /// What the caller asked for, and never more than the cap.
    fn time_allowed(&self, method: &'static str, metadata: &MetadataMap) -> Duration {
        let registers = method == "CatalogService/RegisterServer";
        let cap =
            if registers { REGISTER_DEADLINE.max(self.max_deadline) } else { self.max_deadline };
        time_asked(metadata).map_or(cap, |asked| asked.min(cap))
    }
}

/// When a call that came then has to be over: its caller has waited since it came.
fn deadline_of(arrival: &Arrival, allowed: Duration) -> Instant {
    arrival.at + allowed
}

/// What a call is like: whether its caller waits for it, and how long it takes tells how busy the process is.
fn kind_of(method: &str) -> Kind {
    match method {
        "RouterService/Route" => Kind::Measured(Measured::Route),
        "RouterService/SearchTools" => Kind::Measured(Measured::Search),
        "RouterService/Gate" => Kind::Measured(Measured::Gate),
        // Changes, which may embed a whole catalog or look through one.
        "CatalogService/RegisterServer"
        | "CatalogService/UnregisterServer"
        | "CatalogService/ApproveTools"
        | "PolicyService/SetPolicy"
        | "PolicyService/CheckPolicy"
        | "MemoryService/ClearMemory" => Kind::Lasting,
        _ => Kind::Prompt,
    }
}

/// Returns whether the caller of the RPC at this path, such as `/toolgate.v1.RouterService/Route`, waits for its answer.
pub(super) fn is_prompt(path: &str) -> bool {
    let method = path.strip_prefix("/toolgate.v1.");
    method.is_some_and(|method| kind_of(method) != Kind::Lasting)
}

/// Has the answer count for the tenant that the request names.
fn name_owner<M>(request: &Request<M>, tenant: &TenantId) {
    if let Some(owner) = request.extensions().get::<RequestOwner>() {
        owner.name(tenant.as_str());
    }
}

/// A refusal's name in metrics, and what the caller is told.
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

/// The span of a call: the guard's, which began when it was asked who calls.
fn call_span<M>(method: &'static str, request: &Request<M>) -> CallSpan {
    let begun = request.extensions().get::<CallSpan>().cloned();
    begun.unwrap_or_else(|| CallSpan::served(method, request.metadata().as_ref()))
}

/// A change as the audit knows it.
pub(super) fn change(act: &'static str, caller: &Caller, tenant: &TenantId, of: &str) -> Change {
    let actor = Actor {
        principal: caller.principal().to_owned(),
        credential: caller.credential().to_string(),
        method: caller.credential().method(),
    };
    Change { act, tenant: tenant.as_str().to_owned(), of: of.to_owned(), actor, withdraws: false }
}

/// As [`change`], of what takes content away or forbids something.
pub(super) fn withdrawal(
    act: &'static str,
    caller: &Caller,
    tenant: &TenantId,
    of: &str,
) -> Change {
    Change { withdraws: true, ..change(act, caller, tenant, of) }
}

/// Who calls. That nobody told is a defect, which must not let anybody in.
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
