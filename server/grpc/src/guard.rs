//! Authentication of the caller before anything but the headers of a call is read. A call continues only with a
//! [`Caller`] in its extensions. Only this file inserts it, and services take the tenant from it alone.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use tonic::body::Body;
use tonic::codegen::http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use tonic::codegen::http::{Request, Response};
use toolgate_serving::{BodyTime, Peer, RequestOwner};
use toolgate_telemetry::{CallSpan, part};
use tower::{Layer, Service};
use tracing::Instrument as _;

use super::edge::{BODY_MARGIN, longest};
use super::status;
use toolgate_access::auth::access::{self, Access};
use toolgate_access::auth::{Authenticator, Authorization, Caller, Presented};
use toolgate_app::pipeline::log_failure;
use toolgate_app::telemetry::{Metrics, Rejection};
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;

/// Header in which a delegate names the principal that a call is for: UTF-8 in base64.
const PRINCIPAL_HEADER: &str = "toolgate-principal-bin";

/// Authentication and authorization of calls.
#[derive(Clone)]
pub(super) struct Guard {
    authenticator: Arc<Authenticator>,
    metrics: Arc<Metrics>,
    max_deadline: Duration,
}

impl Guard {
    pub(super) fn new(
        authenticator: Arc<Authenticator>,
        metrics: Arc<Metrics>,
        max_deadline: Duration,
    ) -> Self {
        Self { authenticator, metrics, max_deadline }
    }

    /// Returns the authenticator.
    pub(super) fn authenticator(&self) -> &Arc<Authenticator> {
        &self.authenticator
    }

    /// Authenticates the request and inserts its caller, unless it has one already or its path is open to everyone.
    pub(super) async fn admit<B>(&self, request: &mut Request<B>) -> Result<(), Error> {
        let path = request.uri().path();
        let access = access::of(path);
        if access == Access::Open || request.extensions().get::<Caller>().is_some() {
            return Ok(());
        }
        let name = path.rsplit_once('.').map_or(path, |(_, name)| name).to_owned();
        let call = CallSpan::served(&name, request.headers());
        // These are copies that share their bytes. A body can't be shared between threads, so the request must not be
        // borrowed across an await.
        let values: Vec<_> = request.headers().get_all(AUTHORIZATION).iter().cloned().collect();
        let peer = request.extensions().get::<Peer>().cloned();
        let presented = Presented {
            authorization: Authorization::read(values.iter().map(HeaderValue::as_bytes)),
            certificate: peer.as_ref().and_then(Peer::certificate),
            network: peer.as_ref().and_then(Peer::network),
        };
        let known = self.authenticate(presented, access, &name);
        let part = call.span().in_scope(|| part("authenticate"));
        let known = known.instrument(part).instrument(call.span().clone()).await;
        let known = known.and_then(|caller| for_principal(caller, request.headers()));
        let caller = known.inspect_err(|refusal| refused(&call, refusal))?;
        if let Some(peer) = &peer {
            let tenant = caller.own_tenant().map(TenantId::as_str);
            peer.prove(tenant);
            peer.accept(request.headers(), tenant);
        }
        self.count_for(&caller, request).inspect_err(|refusal| refused(&call, refusal))?;
        // Only now: a stranger's body holds its place for no longer than any other.
        if let Some(body_time) = request.extensions().get::<BodyTime>() {
            body_time.raise(longest(request.uri().path(), self.max_deadline) + BODY_MARGIN);
        }
        request.extensions_mut().insert(caller);
        request.extensions_mut().insert(call);
        Ok(())
    }

    /// Counts the request for the caller's tenant, and refuses it if the tenant's share is used up.
    fn count_for<B>(&self, caller: &Caller, request: &Request<B>) -> Result<(), Error> {
        let owner = request.extensions().get::<RequestOwner>();
        match owner.zip(caller.own_tenant()) {
            Some((owner, tenant)) if !owner.count_for(tenant.as_str()) => {
                self.metrics.rejected(Rejection::TenantRequests);
                Err(Error::Overloaded)
            }
            _ => Ok(()),
        }
    }

    /// Authenticates the caller and checks its roles.
    async fn authenticate(
        &self,
        presented: Presented<'_>,
        access: Access,
        name: &str,
    ) -> Result<Caller, Error> {
        let caller = self.authenticator.authenticate(presented).await?;
        if let Access::Needs(roles) = access {
            self.authenticator.require(&caller, roles, name)?;
        }
        Ok(caller)
    }
}

/// Returns the caller of a call that names the principal that it is for, as a gateway's calls do.
fn for_principal(caller: Caller, headers: &HeaderMap) -> Result<Caller, Error> {
    let mut values = headers.get_all(PRINCIPAL_HEADER).iter();
    let problem = match (values.next(), values.next()) {
        (None, _) => return Ok(caller),
        (Some(_), Some(_)) => "must be there once",
        (Some(value), None) => {
            let text = value.as_bytes().trim_ascii_end();
            let padded = text.iter().position(|byte| *byte == b'=').unwrap_or(text.len());
            let bytes = STANDARD_NO_PAD.decode(&text[..padded]).ok();
            match bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
                Some(principal) => return caller.on_behalf_of(&principal),
                None => "must be UTF-8 in base64",
            }
        }
    };
    Err(Error::field(PRINCIPAL_HEADER, problem))
}

/// Records in its span that a call was refused. Whoever answers logs it.
fn refused(call: &CallSpan, refusal: &Error) {
    call.answered(refusal.code().name(), refusal.reason().name());
}

/// Adds the guard to gRPC services.
impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Guarded { inner, guard: self.clone() }
    }
}

/// Services behind a [`Guard`].
#[derive(Clone)]
pub(super) struct Guarded<S> {
    inner: S,
    guard: Guard,
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<S> Service<Request<Body>> for Guarded<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // `poll_ready` was called on this instance, so this one must be called, not its clone.
        let waiting = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, waiting);
        let guard = self.guard.clone();
        Box::pin(async move {
            match guard.admit(&mut request).await {
                Ok(()) => inner.call(request).await,
                Err(refusal) => {
                    log_failure(&refusal);
                    Ok(status::of(&refusal).into_http())
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
