//! Who calls, told before anything of a call is read but its headers. Calls get no further without a [`Caller`] in their
//! extensions, which only this file puts there, and from which alone services have the tenant.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::http::header::{AUTHORIZATION, HeaderValue};
use tonic::codegen::http::{Request, Response};
use toolgate_serving::{Peer, RequestOwner};
use toolgate_telemetry::{CallSpan, part};
use tower::{Layer, Service};
use tracing::Instrument as _;

use super::status;
use toolgate_access::auth::access::{self, Access};
use toolgate_access::auth::{Authenticator, Authorization, Caller, Presented};
use toolgate_app::telemetry::{Metrics, Rejection};
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;

/// Lets calls in, or refuses them.
#[derive(Clone)]
pub(super) struct Guard {
    authenticator: Arc<Authenticator>,
    metrics: Arc<Metrics>,
}

impl Guard {
    pub(super) fn new(authenticator: Arc<Authenticator>, metrics: Arc<Metrics>) -> Self {
        Self { authenticator, metrics }
    }

    /// Who tells callers apart.
    pub(super) fn authenticator(&self) -> &Arc<Authenticator> {
        &self.authenticator
    }

    /// Puts the caller into the request, unless it is there.
    pub(super) async fn admit<B>(&self, request: &mut Request<B>) -> Result<(), Error> {
        let path = request.uri().path();
        let access = access::of(path);
        if access == Access::Open || request.extensions().get::<Caller>().is_some() {
            return Ok(());
        }
        let name = path.rsplit_once('.').map_or(path, |(_, name)| name).to_owned();
        let call = CallSpan::served(&name, request.headers());
        // Copies, which share their bytes: a body can't be looked at from two threads, so that nothing of the request may
        // be borrowed while others are asked.
        let values: Vec<_> = request.headers().get_all(AUTHORIZATION).iter().cloned().collect();
        let peer = request.extensions().get::<Peer>().cloned();
        let presented = Presented {
            authorization: Authorization::read(values.iter().map(HeaderValue::as_bytes)),
            certificate: peer.as_ref().and_then(Peer::certificate),
            network: peer.as_ref().and_then(Peer::network),
        };
        let known = self.know(presented, access, &name);
        let part = call.span().in_scope(|| part("authenticate"));
        let known = known.instrument(part).instrument(call.span().clone()).await;
        let caller = known.inspect_err(|refusal| {
            let (code, reason) = status::names(refusal);
            call.answered(code, reason);
        })?;
        if let Some(peer) = &peer {
            peer.prove(caller.own_tenant().map(TenantId::as_str));
        }
        self.count_for(&caller, request).inspect_err(|refusal| {
            let (code, reason) = status::names(refusal);
            call.answered(code, reason);
        })?;
        request.extensions_mut().insert(caller);
        request.extensions_mut().insert(call);
        Ok(())
    }

    /// Counts the request for the caller's tenant.
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

    /// Who calls, and that it may.
    async fn know(
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

/// Adds the guard to gRPC services.
impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Guarded { inner, guard: self.clone() }
    }
}

/// Services under a [`Guard`].
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
        // The one that was asked whether it is ready is the one to call.
        let waiting = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, waiting);
        let guard = self.guard.clone();
        Box::pin(async move {
            match guard.admit(&mut request).await {
                Ok(()) => inner.call(request).await,
                Err(refusal) => Ok(status::of(&refusal).into_http()),
            }
        })
    }
}

#[cfg(test)]
mod tests;
