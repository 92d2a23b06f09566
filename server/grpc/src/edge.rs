//! Adapter of gRPC to the [`Pipeline`]: it takes the caller from the guard, and arrival and timeout from the request, has
//! the pipeline run the call, and maps the outcome to a status.

use std::time::{Duration, Instant};

use tonic::{Request, Response, Status};
use toolgate_serving::{Arrival, RequestOwner, time_asked};
use toolgate_telemetry::CallSpan;

use super::guard::Guard;
use super::tenanted::Tenanted;
use super::{bounded, status};
use toolgate_access::admission::Kind;
use toolgate_access::audit::{Actor, Change};
use toolgate_access::auth::Caller;
use toolgate_app::pipeline::{Call, CallOutcome, Identity, Pipeline, kind_of};
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::method::{Method, Work};

/// Time that a body may take beyond its call's deadline, so that the call itself reports the timeout first.
pub(super) const BODY_MARGIN: Duration = Duration::from_secs(1);

/// Start of the paths of the service's RPCs.
const PACKAGE: &str = "/toolgate.v1.";

/// Edge of the service, shared by all services.
#[derive(Clone)]
pub(super) struct Edge {
    /// Guard that authenticates callers.
    pub(super) guard: Guard,
    /// Pipeline that runs their calls.
    pub(super) pipeline: Pipeline,
}

impl Edge {
    /// Runs one call. `work` gets the caller, its tenant, the message and the deadline.
    pub(super) async fn call<M, R, W, F>(
        &self,
        method: Method,
        request: Request<M>,
        work: W,
    ) -> Result<Response<R>, Status>
    where
        M: Tenanted,
        R: prost::Message,
        W: FnOnce(Caller, TenantId, M, Instant) -> F,
        F: Future<Output = Result<R, Error>>,
    {
        let call = call_of(method, &request);
        let identity = identify(&request);
        let limits = &self.pipeline.limits;
        let work = |Identity { caller, tenant }: Identity, deadline| async move {
            let answer = work(caller, tenant, request.into_inner(), deadline).await?;
            bounded::whole(method, answer, limits.now().max_message_bytes)
        };
        let outcome = self.pipeline.run(call, identity, work).await;
        outcome.map(Response::new).map_err(|failure| status::of(&failure))
    }

    /// Opens a stream.
    pub(super) fn open<M: Tenanted, R>(
        &self,
        method: Method,
        request: Request<M>,
        open: impl FnOnce(&Self, Identity, Request<M>) -> Result<Response<R>, Error>,
    ) -> Result<Response<R>, Status> {
        let call = call_of(method, &request);
        let identity = identify(&request);
        let opened = self.pipeline.open(&call, identity, |identity| open(self, identity, request));
        opened.map_err(|failure| status::of(&failure))
    }

    /// Returns the status for a method of the contract that is not implemented, and counts the call.
    pub(super) fn unserved(&self, method: &'static str) -> Status {
        let refusal = Error::NotImplemented(method);
        let outcome = CallOutcome::new(method, Some(&refusal), Duration::ZERO);
        self.pipeline.metrics.call(&outcome);
        status::of(&refusal)
    }
}

/// Returns the pipeline's view of a request. The guard began its span before authentication; without one, a new span is
/// started.
fn call_of<M>(method: Method, request: &Request<M>) -> Call {
    let arrival = Arrival::of(request.extensions());
    let begun = request.extensions().get::<CallSpan>().cloned();
    let span =
        begun.unwrap_or_else(|| CallSpan::served(method.name(), request.metadata().as_ref()));
    Call {
        method,
        arrived: arrival.at,
        waited: arrival.waited,
        timeout: time_asked(request.metadata().as_ref()),
        span,
    }
}

/// Returns the caller and the tenant that the request is for, and counts the answer for that tenant.
fn identify<M: Tenanted>(request: &Request<M>) -> Result<Identity, Error> {
    let caller = caller_of(request)?;
    let tenant = caller.tenant(request.get_ref().tenant())?;
    if let Some(owner) = request.extensions().get::<RequestOwner>() {
        owner.name(tenant.as_str());
    }
    Ok(Identity { caller, tenant })
}

/// Returns the method at this path, such as `/toolgate.v1.RouterService/Route`.
pub(super) fn method_at(path: &str) -> Option<Method> {
    path.strip_prefix(PACKAGE).and_then(Method::named)
}

/// Returns the maximum time of a call of the RPC at this path, where `max_deadline` is that of most methods. A stream has
/// none; that is the maximum for its request.
pub(super) fn longest(path: &str, max_deadline: Duration) -> Duration {
    method_at(path).and_then(|method| method.longest(max_deadline)).unwrap_or(max_deadline)
}

/// Returns true if the caller of the RPC at this path, such as `/toolgate.v1.RouterService/Route`, waits for its
/// answer.
pub(super) fn is_interactive(path: &str) -> bool {
    let is_ours = path.starts_with(PACKAGE);
    is_ours && method_at(path).is_none_or(|method| kind_of(method) != Kind::Background)
}

/// Returns true if calls of the RPC at this path need a place among the interactive ones.
pub(super) fn is_admitted(path: &str) -> bool {
    method_at(path)
        .is_some_and(|method| kind_of(method) != Kind::Background && method.work() != Work::Stream)
}

/// Creates the audit record of a change.
pub(super) fn change(method: Method, caller: &Caller, tenant: &TenantId, of: &str) -> Change {
    let actor = Actor {
        principal: caller.principal().to_owned(),
        credential: caller.credential().to_string(),
        method: caller.credential().method(),
    };
    Change {
        act: method.name(),
        tenant: tenant.as_str().to_owned(),
        of: of.to_owned(),
        actor,
        withdraws: false,
    }
}

/// Creates a [`change`] that removes content or forbids something.
pub(super) fn withdrawal(method: Method, caller: &Caller, tenant: &TenantId, of: &str) -> Change {
    Change { withdraws: true, ..change(method, caller, tenant, of) }
}

/// Returns the caller. A missing caller is a defect, and must not let a request in.
fn caller_of<M>(request: &Request<M>) -> Result<Caller, Error> {
    let caller = request.extensions().get::<Caller>();
    caller.cloned().ok_or_else(|| Error::internal("a call came past the guard"))
}
