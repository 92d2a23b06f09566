//! The LLM proxy's decision as a service of Envoy's external processing. Envoy has the host's connection and sends the request;
//! what becomes of it is decided by the LLM proxy, as if its host had called that.

mod carrier;
mod headers;
mod session;
mod wire;

use std::net::SocketAddr;

use axum::response::Response;
use axum::serve::Listener;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Request, Status, Streaming};
use toolgate_gateway_llm::{CarriedChat, Peer, Proxy, serve_routes};

use session::{Decide, process};
use wire::v3::external_processor_server::{ExternalProcessor, ExternalProcessorServer};
use wire::v3::{ProcessingRequest, ProcessingResponse};

/// Most messages that wait until Envoy takes them.
const WAITING_MAX: usize = 4;

/// Largest message of Envoy's, in bytes: a whole answer, which the LLM proxy reads no larger.
const MESSAGE_MAX: usize = 33 << 20;

struct Service {
    proxy: Proxy,
}

/// Serves Envoy until `stop`, and then ends requests under way within ten seconds.
pub async fn serve(
    proxy: Proxy,
    listener: impl Listener<Addr = SocketAddr>,
    stop: CancellationToken,
) {
    let head_timeout = proxy.head_timeout();
    let service = ExternalProcessorServer::new(Service { proxy });
    let service = service.max_decoding_message_size(MESSAGE_MAX);
    let routes = Routes::new(service).into_axum_router();
    serve_routes(listener, routes, head_timeout, stop).await;
}

#[tonic::async_trait]
impl ExternalProcessor for Service {
    type ProcessStream = ReceiverStream<Result<ProcessingResponse, Status>>;

    async fn process(
        &self,
        request: Request<Streaming<ProcessingRequest>>,
    ) -> Result<tonic::Response<Self::ProcessStream>, Status> {
        let peer = request.extensions().get::<Peer>().map(Peer::ip);
        let peer = peer.ok_or_else(|| Status::internal("the connection has no address"))?;
        let (out, answers) = mpsc::channel(WAITING_MAX);
        let proxy = self.proxy.clone();
        tokio::spawn(async move {
            Box::pin(process(&proxy, peer, request.into_inner(), out)).await;
        });
        Ok(tonic::Response::new(ReceiverStream::new(answers)))
    }
}

impl Decide for Proxy {
    fn answer<'a>(&'a self, chat: CarriedChat<'a>) -> BoxFuture<'a, Response> {
        Box::pin(Self::answer(self, chat))
    }
}
