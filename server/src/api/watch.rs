//! `CatalogService/WatchCatalog` as a stream.

use std::pin::Pin;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};
use toolgate_proto::v1::{WatchCatalogRequest, WatchCatalogResponse};
use toolgate_serving::time_asked;

use super::edge::{Edge, tenant};
use super::status;
use crate::error::Error;
use crate::plane::watching::CatalogWatch;
use crate::store::Changes;

pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<WatchCatalogResponse, Status>> + Send>>;

/// Opens a watch that ends with the caller, with its deadline if it has one, or when the service drains.
pub(super) fn open(
    edge: &Edge,
    request: Request<WatchCatalogRequest>,
) -> Result<Response<Answers>, Error> {
    let until = time_asked(request.metadata()).map(|asked| Instant::now() + asked);
    let message = request.into_inner();
    let watch = edge.plane.watch(&tenant(&message.tenant)?, message.since_revision)?;
    // One answer waits for its reader; what is committed meanwhile comes together in the next.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(tell(watch, sender, until, edge.draining.clone()));
    Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
}

async fn tell(
    mut watch: CatalogWatch,
    answers: mpsc::Sender<Result<WatchCatalogResponse, Status>>,
    until: Option<Instant>,
    draining: CancellationToken,
) {
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
            next = watch.next() => next,
        };
        let ends = next.is_err();
        let answer = next.map(render).map_err(|failure| status::of(&failure));
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
