//! What every call passes on its way in, in this order: the deadline is read and capped; the call is
//! admitted or shed; the work runs under the deadline; the outcome is counted and mapped to a status.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};
use toolgate_serving::time_asked;
use tracing::Instrument as _;

use super::status;
use super::tenanted::Tenanted;
use crate::admission::{Admission, Permit, Refusal};
use crate::config::LimitsConfig;
use crate::error::Error;
use crate::identity::TenantId;
use crate::plane::Plane;
use crate::telemetry::Metrics;

/// The tenant of calls that name none, while authentication is off.
const DEFAULT_TENANT: &str = "default";

/// A registration embeds every new summary, which takes a CPU minutes for thousands of tools.
pub(super) const REGISTER_DEADLINE: Duration = Duration::from_secs(600);

/// The service's edge, shared by all services.
#[derive(Clone)]
pub(super) struct Edge {
    /// The plane behind it.
    pub(super) plane: Arc<Plane>,
    /// What input is held to.
    pub(super) limits: LimitsConfig,
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
        W: FnOnce(M, Instant) -> F,
        F: Future<Output = Result<R, Error>>,
    {
        let started = Instant::now();
        let span = tracing::info_span!("call", rpc = method);
        let deadline = started + self.time_allowed(method, request.metadata());
        let outcome = match self.admit(request.get_ref().tenant()) {
            Err(refusal) => Err(refusal),
            Ok(_permit) => {
                let work = work(request.into_inner(), deadline).instrument(span);
                let timed = tokio::time::timeout_at(deadline.into(), work).await;
                timed.unwrap_or(Err(Error::DeadlineExceeded))
            }
        };
        let error = outcome.as_ref().err().map_or("", status::reason_name);
        self.metrics.call(method, error, started.elapsed().as_secs_f64());
        outcome.map(Response::new).map_err(|failure| status::of(&failure))
    }

    /// Opens a stream. Streams are no calls in progress: they have a bound of their own.
    pub(super) fn open<R>(
        &self,
        method: &'static str,
        open: impl FnOnce(&Self) -> Result<Response<R>, Error>,
    ) -> Result<Response<R>, Status> {
        let started = Instant::now();
        let outcome = self.refuse_draining().and_then(|()| open(self));
        if matches!(outcome, Err(Error::Overloaded)) {
            self.metrics.rejected("watches");
        }
        let error = outcome.as_ref().err().map_or("", status::reason_name);
        self.metrics.call(method, error, started.elapsed().as_secs_f64());
        outcome.map_err(|failure| status::of(&failure))
    }

    fn refuse_draining(&self) -> Result<(), Error> {
        if self.draining.is_cancelled() {
            self.metrics.rejected("draining");
            return Err(Error::Draining);
        }
        Ok(())
    }

    fn admit(&self, tenant_name: &str) -> Result<Permit, Error> {
        self.refuse_draining()?;
        self.admission.begin(&tenant(tenant_name)?).map_err(|refusal| {
            let (reason, error) = told(refusal);
            self.metrics.rejected(reason);
            error
        })
    }

    /// A part of the contract that is not served yet.
    pub(super) fn unserved(&self, method: &'static str) -> Status {
        self.metrics.call(method, status::reason_name(&Error::NotImplemented(method)), 0.0);
        status::of(&Error::NotImplemented(method))
    }

    /// What the caller asked for, and never more than the cap.
    fn time_allowed(&self, method: &'static str, metadata: &MetadataMap) -> Duration {
        let registers = method == "CatalogService/RegisterServer";
        let cap =
            if registers { REGISTER_DEADLINE.max(self.max_deadline) } else { self.max_deadline };
        time_asked(metadata).map_or(cap, |asked| asked.min(cap))
    }
}

/// A refusal's name in metrics, and what the caller is told.
fn told(refusal: Refusal) -> (&'static str, Error) {
    let limited = |limit, retry_after| Error::TenantLimited { limit, retry_after };
    match refusal {
        Refusal::Busy => ("concurrency", Error::Overloaded),
        Refusal::MemoryShort => ("memory", Error::Overloaded),
        Refusal::TenantBusy => {
            let limit = "server.max_concurrent_calls_per_tenant";
            ("tenant_concurrency", limited(limit, status::RETRY_AFTER))
        }
        Refusal::TenantTooOften(wait) => {
            ("tenant_rate", limited("limits.calls_per_second_per_tenant", wait))
        }
    }
}

/// The tenant that a message names.
pub(super) fn tenant(name: &str) -> Result<TenantId, Error> {
    TenantId::parse(if name.is_empty() { DEFAULT_TENANT } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_the_default_tenant() {
        assert_eq!(tenant("").expect("a tenant").as_str(), DEFAULT_TENANT);
        assert!(tenant("Not valid").is_err());
    }
}
