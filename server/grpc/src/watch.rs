//! Stream of `CatalogService/WatchCatalog`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep_until};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};
use toolgate_proto::v1::{WatchCatalogRequest, WatchCatalogResponse};
use toolgate_serving::time_asked;

use super::edge::Edge;
use super::{bounded, status};
use toolgate_access::auth::{Authenticator, Caller};
use toolgate_app::pipeline::{Identity, log_failure};
use toolgate_app::plane::watching::{CatalogWatch, Watched};
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_core::live::Live;
use toolgate_core::role::{Role, Roles};
use toolgate_store::Changes;

pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<WatchCatalogResponse, Status>> + Send>>;

/// Interval at which the credential of an open stream is checked again.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(2);

/// Opens a watch. It ends when the caller disconnects, at the caller's deadline if there is one, when the credential
/// becomes invalid, or when the service drains.
pub(super) fn open(
    edge: &Edge,
    Identity { caller, tenant }: Identity,
    request: Request<WatchCatalogRequest>,
) -> Result<Response<Answers>, Error> {
    let until = time_asked(request.metadata().as_ref()).map(|asked| Instant::now() + asked);
    let message = request.into_inner();
    let watch = edge.pipeline.plane.watch(&tenant, message.since_revision, watched(&caller))?;
    // The channel holds one answer. Commits in the meantime are combined in the next one.
    let (sender, receiver) = mpsc::channel(1);
    let credential = Credential { caller, authenticator: Arc::clone(edge.guard.authenticator()) };
    let watcher = Watcher { answers: sender, limits: Arc::clone(&edge.pipeline.limits) };
    tokio::spawn(tell(watch, watcher, until, credential, edge.pipeline.draining.clone()));
    Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
}

/// Returns the part of the catalog that the caller may watch. Those who maintain the catalog see all of it; for agents
/// the credential sets the maximum scopes.
fn watched(caller: &Caller) -> Watched {
    let keepers = Roles::of(&[Role::CatalogWriter, Role::Admin]);
    match caller.roles().meets(keepers) {
        true => Watched::All,
        false => Watched::AsAgent { scopes: caller.scopes().cloned() },
    }
}

/// Receiver of the stream.
struct Watcher {
    answers: mpsc::Sender<Result<WatchCatalogResponse, Status>>,
    limits: Arc<Live<LimitsConfig>>,
}

/// Credential of the watcher.
struct Credential {
    caller: Caller,
    authenticator: Arc<Authenticator>,
}

impl Credential {
    /// Completes when the credential is no longer valid.
    async fn ended(&self) {
        if !self.authenticator.is_on() {
            return std::future::pending().await;
        }
        let mut turns = interval(LOOKED_AT_EVERY);
        loop {
            turns.tick().await;
            if !self.authenticator.is_still_good(&self.caller).await {
                return;
            }
        }
    }
}

async fn tell(
    mut watch: CatalogWatch,
    Watcher { answers, limits }: Watcher,
    until: Option<Instant>,
    credential: Credential,
    draining: CancellationToken,
) {
    let mut ended = std::pin::pin!(credential.ended());
    loop {
        let over = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let next = tokio::select! {
            biased;
            () = answers.closed() => return,
            () = draining.cancelled() => Err(Error::Draining),
            () = over => Err(Error::DeadlineExceeded),
            () = &mut ended => {
                Err(Error::Unauthenticated("the credential is no longer good: it expired, was revoked, or the issuer has other keys now"))
            }
            next = watch.next() => next,
        };
        let ends = next.is_err();
        let most = limits.now().max_message_bytes;
        let answer = next
            .map(|changes| bounded::watched(render(changes), most))
            .inspect_err(log_failure)
            .map_err(|failure| status::of(&failure));
        if answers.send(answer).await.is_err() || ends {
            return;
        }
    }
}

fn render(changes: Changes) -> WatchCatalogResponse {
    WatchCatalogResponse {
        catalog_revision: changes.revision,
        servers: changes.servers,
        policy_changed: changes.policy,
        reset: !changes.told,
    }
}
