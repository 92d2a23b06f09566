//! The LLM proxy's decision as a service of Envoy's external processing. Envoy has the host's connection and sends the request;
//! what becomes of it is decided by the LLM proxy, as if its host had called that.

mod carrier;
mod headers;
mod session;
mod wire;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Once};
use std::time::Duration;

use axum::response::Response;
use axum::serve::Listener;
use futures_util::future::BoxFuture;
use http::{HeaderMap, header};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Request, Status, Streaming};
use toolgate_gateway_llm::{Caller, CarriedChat, ChatPath, Peer, Proxy, serve_routes};

use session::{Decide, process};
use wire::v3::external_processor_server::{ExternalProcessor, ExternalProcessorServer};
use wire::v3::{ProcessingRequest, ProcessingResponse};

/// Most messages that wait until Envoy takes them.
const WAITING_MAX: usize = 4;

/// Largest message of Envoy's, in bytes: a whole answer, which the LLM proxy reads no larger.
const MESSAGE_MAX: usize = 33 << 20;

/// Most streams at once: as many requests as Envoy has under way to one cluster, unless it is told otherwise.
const STREAMS_MAX: usize = 1024;

struct Service {
    proxy: Proxy,
    /// Places of streams.
    streams: Arc<Semaphore>,
}

/// Serves Envoy until `stop`, and then ends requests under way within ten seconds.
pub async fn serve(
    proxy: Proxy,
    listener: impl Listener<Addr = SocketAddr>,
    stop: CancellationToken,
) {
    let pace = proxy.pace();
    let streams = Arc::new(Semaphore::new(STREAMS_MAX));
    let service = ExternalProcessorServer::new(Service { proxy, streams });
    let service = service.max_decoding_message_size(MESSAGE_MAX);
    let routes = Routes::new(service).into_axum_router();
    serve_routes(listener, routes, pace, stop).await;
}

#[tonic::async_trait]
impl ExternalProcessor for Service {
    type ProcessStream = ReceiverStream<Result<ProcessingResponse, Status>>;

    async fn process(
        &self,
        request: Request<Streaming<ProcessingRequest>>,
    ) -> Result<tonic::Response<Self::ProcessStream>, Status> {
        if request.metadata().contains_key(header::ORIGIN.as_str()) {
            return Err(Status::permission_denied("web pages are not answered: this is for Envoy"));
        }
        let peer = request.extensions().get::<Peer>().map(Peer::ip);
        let peer = peer.ok_or_else(|| Status::internal("the connection has no address"))?;
        let (out, answers) = mpsc::channel(WAITING_MAX);
        let Ok(place) = Arc::clone(&self.streams).try_acquire_owned() else {
            warn_of_streams();
            // Envoy goes on by itself where a stream ends.
            return Ok(tonic::Response::new(ReceiverStream::new(answers)));
        };
        let proxy = self.proxy.clone();
        tokio::spawn(async move {
            let _place = place;
            Box::pin(process(&proxy, peer, request.into_inner(), out)).await;
        });
        Ok(tonic::Response::new(ReceiverStream::new(answers)))
    }
}

/// Says once that requests are sent as they come because there are too many.
fn warn_of_streams() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::warn!(
            "Envoy has {STREAMS_MAX} requests under way here: those beyond them are sent as they come"
        );
    });
}

impl Decide for Proxy {
    fn admit<'a>(
        &'a self,
        path: ChatPath<'a>,
        headers: &'a HeaderMap,
        peer: IpAddr,
    ) -> BoxFuture<'a, Result<Caller, Box<Response>>> {
        Box::pin(Self::admit(self, path, headers, peer))
    }

    fn answer<'a>(&'a self, chat: CarriedChat<'a>) -> BoxFuture<'a, Response> {
        Box::pin(Self::answer(self, chat))
    }

    fn idle_timeout(&self) -> Duration {
        Self::idle_timeout(self)
    }
}
