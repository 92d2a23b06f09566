//! Pipeline of every call, without a protocol: deadline, tenant, admission, the work, and the outcome, which is observed
//! once in metrics, span and log. Protocols bring a [`Call`] and map the result to their own form.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use toolgate_access::admission::{Admission, AdmissionRequest, Kind, Measured, Permit, Refusal};
use toolgate_access::audit::{Audit, Change, Effect};
use toolgate_access::auth::Caller;
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::live::Live;
use toolgate_core::method::{Method, Work};
use toolgate_telemetry::CallSpan;
use tracing::{Instrument as _, error, info_span};

use crate::plane::Plane;
use crate::telemetry::{Metrics, Rejection};

/// Delay after which a call that met its tenant's limit on calls in progress should be retried.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Pipeline of the service's calls. Clones share it.
#[derive(Clone)]
pub struct Pipeline {
    /// Routing plane that does the work.
    pub plane: Arc<Plane>,
    /// Audit log of changes.
    pub audit: Arc<Audit>,
    /// Limits on input.
    pub limits: Arc<Live<LimitsConfig>>,
    /// Metrics of the service.
    pub metrics: Arc<Metrics>,
    /// Admission control.
    pub admission: Admission,
    /// Maximum time of a call, registrations and streams aside.
    pub max_deadline: Duration,
    /// Token that is cancelled when the service drains.
    pub draining: CancellationToken,
}

/// Call that came, before its work.
#[derive(Debug, Clone)]
pub struct Call {
    /// Called method.
    pub method: Method,
    /// Arrival of its first byte. Deadline and duration count from it.
    pub arrived: Instant,
    /// Time that it waited before it was read.
    pub waited: Duration,
    /// Timeout that the caller asked for; `None` for the service's maximum.
    pub timeout: Option<Duration>,
    /// Span of the call.
    pub span: CallSpan,
}

/// Caller of a call, with the tenant that the call is for.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Authenticated caller.
    pub caller: Caller,
    /// Tenant of the call, which the caller may act for.
    pub tenant: TenantId,
}

/// Outcome of a call, as it is observed.
#[derive(Debug, Clone, Copy)]
pub struct CallOutcome {
    /// Called method, such as `RouterService/Route`.
    pub method: &'static str,
    /// Name of the code, `OK` on success.
    pub code: &'static str,
    /// Name of the reason; empty on success.
    pub reason: &'static str,
    /// Time from arrival to answer, in seconds.
    pub seconds: f64,
}

impl CallOutcome {
    /// Creates the outcome of a method's call: success, or this error.
    #[must_use]
    pub fn new(method: &'static str, failure: Option<&Error>, took: Duration) -> Self {
        let code = failure.map_or("OK", |error| error.code().name());
        let reason = failure.map_or("", |error| error.reason().name());
        Self { method, code, reason, seconds: took.as_secs_f64() }
    }
}

impl Pipeline {
    /// Runs a call of `identity`, under its deadline, if it is admitted. `work` gets the deadline too.
    ///
    /// # Errors
    /// Those of `identity`, of admission and of the work; [`Error::DeadlineExceeded`] when the deadline passes first.
    pub async fn run<R, W, F>(
        &self,
        call: Call,
        identity: Result<Identity, Error>,
        work: W,
    ) -> Result<R, Error>
    where
        W: FnOnce(Identity, Instant) -> F,
        F: Future<Output = Result<R, Error>>,
    {
        let log_span = info_span!("call", rpc = call.method.name());
        let deadline = deadline_of(&call, self.max_deadline);
        let left = deadline.saturating_duration_since(Instant::now());
        let request = AdmissionRequest { kind: kind_of(call.method), left, waited: call.waited };
        let admitted = identity.and_then(|identity| {
            call.span.of_tenant(identity.tenant.as_str());
            let permit = self.admit(&identity.tenant, request)?;
            Ok((identity, permit))
        });
        let outcome = match admitted {
            Err(refusal) => Err(refusal),
            Ok((identity, permit)) => {
                let work = work(identity, deadline);
                let work = work.instrument(call.span.span().clone()).instrument(log_span.clone());
                let timed = tokio::time::timeout_at(deadline.into(), work).await;
                let outcome = timed.unwrap_or(Err(Error::DeadlineExceeded));
                if outcome.is_ok() {
                    permit.answered();
                }
                outcome
            }
        };
        log_span.in_scope(|| self.observe(&call, outcome.as_ref().err()));
        outcome
    }

    /// Opens a stream of `identity`. Streams do not count as calls in progress; they have a limit of their own.
    ///
    /// # Errors
    /// Those of `identity` and `open`; [`Error::Draining`].
    pub fn open<R>(
        &self,
        call: &Call,
        identity: Result<Identity, Error>,
        open: impl FnOnce(Identity) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let _in_call = call.span.span().enter();
        let outcome = self.refuse_draining().and_then(|()| {
            let identity = identity?;
            call.span.of_tenant(identity.tenant.as_str());
            open(identity)
        });
        if matches!(outcome, Err(Error::Overloaded)) {
            self.metrics.rejected(Rejection::Watches);
        }
        self.observe(call, outcome.as_ref().err());
        outcome
    }

    /// Makes a change, and records it in the audit before and after.
    ///
    /// # Errors
    /// Those of the work; [`Error::AuditUnavailable`] or [`Error::AuditFull`], with nothing changed.
    pub async fn change<T>(
        &self,
        change: Change,
        work: impl Future<Output = Result<T, Error>>,
        effect: impl FnOnce(&T) -> Effect,
    ) -> Result<T, Error> {
        let begun = self.audit.begin(change).await?;
        let made = work.await;
        let outcome = made.as_ref().map(effect).map_err(|error| error.reason().name());
        begun.ends(outcome).await;
        made
    }

    /// Observes the outcome of a call, in its span: metrics, span attributes, and the log if it has causes.
    fn observe(&self, call: &Call, failure: Option<&Error>) {
        call.span.span().in_scope(|| {
            let outcome = CallOutcome::new(call.method.name(), failure, call.arrived.elapsed());
            self.metrics.call(&outcome);
            call.span.answered(outcome.code, outcome.reason);
            if let Some(failure) = failure {
                log_failure(failure);
            }
        });
    }

    fn refuse_draining(&self) -> Result<(), Error> {
        if self.draining.is_cancelled() {
            self.metrics.rejected(Rejection::Draining);
            return Err(Error::Draining);
        }
        Ok(())
    }

    fn admit(&self, tenant: &TenantId, request: AdmissionRequest) -> Result<Permit, Error> {
        self.refuse_draining()?;
        self.admission.begin(tenant, request).map_err(|refusal| {
            self.metrics.rejected(rejection_of(&refusal));
            error_of(refusal)
        })
    }
}

/// Returns the time by which a call must end: after the caller's timeout, or the method's maximum if that is shorter or
/// the caller gave none. Both count from the arrival. A stream is opened instead of run, and has no maximum.
fn deadline_of(call: &Call, max_deadline: Duration) -> Instant {
    let most = call.method.longest(max_deadline).unwrap_or(max_deadline);
    call.arrived + call.timeout.map_or(most, |asked| asked.min(most))
}

/// Logs an error that has causes, with the chain of them: answers don't show it. Every error is logged once, by whoever
/// observes its call.
pub fn log_failure(failure: &Error) {
    if let Some(text) = failure.with_inner_causes() {
        error!(reason = failure.reason().name(), "{text}");
    }
}

/// Returns how calls of a method are admitted: whether their callers wait for them, and whether their durations show how
/// busy the process is.
#[must_use]
pub fn kind_of(method: Method) -> Kind {
    match (method, method.work()) {
        (Method::Route, _) => Kind::Measured(Measured::Route),
        (Method::SearchTools, _) => Kind::Measured(Measured::Search),
        (Method::Gate, _) => Kind::Measured(Measured::Gate),
        (_, Work::Change | Work::Registration) => Kind::Background,
        (_, Work::Interactive | Work::Stream) => Kind::Interactive,
    }
}

/// Returns the name of a refusal in metrics.
fn rejection_of(refusal: &Refusal) -> Rejection {
    match refusal {
        Refusal::Busy => Rejection::Concurrency,
        Refusal::Slow => Rejection::Wait,
        Refusal::NoTime => Rejection::Deadline,
        Refusal::MemoryShort => Rejection::Memory,
        Refusal::TenantBusy => Rejection::TenantConcurrency,
        Refusal::TenantTooOften(_) => Rejection::TenantRate,
    }
}

/// Returns the caller's error of a refusal.
fn error_of(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Busy | Refusal::Slow | Refusal::MemoryShort => Error::Overloaded,
        Refusal::NoTime => Error::DeadlineExceeded,
        Refusal::TenantBusy => Error::TenantLimited {
            limit: "server.max_concurrent_calls_per_tenant",
            retry_after: RETRY_AFTER,
        },
        Refusal::TenantTooOften(retry_after) => {
            Error::TenantLimited { limit: "limits.calls_per_second_per_tenant", retry_after }
        }
    }
}

#[cfg(test)]
mod tests {
    use toolgate_core::method::REGISTRATION_TIME;

    use super::*;

    const MAX: Duration = Duration::from_secs(30);

    fn call(method: Method, timeout: Option<Duration>) -> Call {
        let span = CallSpan::untraced();
        Call { method, arrived: Instant::now(), waited: Duration::ZERO, timeout, span }
    }

    #[test]
    fn deadlines_count_from_the_arrival_and_are_bounded_by_the_method() {
        let seconds = Duration::from_secs;
        for (method, timeout, want) in [
            (Method::Route, None, MAX),
            (Method::Route, Some(seconds(5)), seconds(5)),
            (Method::Route, Some(seconds(900)), MAX),
            (Method::SetPolicy, None, MAX),
            (Method::RegisterServer, None, REGISTRATION_TIME),
            (Method::RegisterServer, Some(seconds(900)), REGISTRATION_TIME),
        ] {
            let call = call(method, timeout);
            assert_eq!(deadline_of(&call, MAX), call.arrived + want, "{method:?} {timeout:?}");
        }
    }

    #[test]
    fn changes_keep_no_caller_waiting_and_the_busiest_methods_are_measured() {
        assert_eq!(kind_of(Method::Gate), Kind::Measured(Measured::Gate));
        assert_eq!(kind_of(Method::RegisterServer), Kind::Background);
        assert_eq!(kind_of(Method::ClearMemory), Kind::Background);
        assert_eq!(kind_of(Method::WatchCatalog), Kind::Interactive);
        assert_eq!(kind_of(Method::ListTools), Kind::Interactive);
    }

    #[test]
    fn an_outcome_names_code_and_reason() {
        let failed = CallOutcome::new("S/M", Some(&Error::Overloaded), Duration::from_millis(250));
        assert_eq!((failed.code, failed.reason), ("RESOURCE_EXHAUSTED", "OVERLOADED"));
        assert!((failed.seconds - 0.25).abs() < 1e-9);
        let done = CallOutcome::new("S/M", None, Duration::ZERO);
        assert_eq!((done.code, done.reason), ("OK", ""));
    }
}
