//! Service `grpc.health.v1`, based on the worker's phase. A watch ends once the phase can't change any more, so that
//! watchers don't delay the drain.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;
use tonic::server::NamedService;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use toolgate_proto::v1::encoder_service_server::EncoderServiceServer;

use super::service::Face;
use crate::lifecycle::{Lifecycle, Phase};

/// Health of the single service of this process.
pub(super) struct WorkerHealth {
    pub(super) lifecycle: Arc<Lifecycle>,
}

/// Stream of health changes for one caller.
pub(super) struct Watch {
    phases: WatchStream<Phase>,
    ended: bool,
}

#[tonic::async_trait]
impl Health for WorkerHealth {
    type WatchStream = Watch;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        known(request.get_ref())?;
        Ok(Response::new(response(self.lifecycle.phase())))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Watch>, Status> {
        known(request.get_ref())?;
        let phases = WatchStream::new(self.lifecycle.watch());
        Ok(Response::new(Watch { phases, ended: false }))
    }
}

fn known(request: &HealthCheckRequest) -> Result<(), Status> {
    let ours = ["", EncoderServiceServer::<Face>::NAME];
    if ours.contains(&request.service.as_str()) {
        return Ok(());
    }
    Err(Status::not_found("service not registered"))
}

fn response(phase: Phase) -> HealthCheckResponse {
    let status =
        if phase == Phase::Serving { ServingStatus::Serving } else { ServingStatus::NotServing };
    HealthCheckResponse { status: status.into() }
}

impl Stream for Watch {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = Pin::new(&mut self.phases).poll_next(cx);
        next.map(|phase| {
            let phase = phase?;
            self.ended = phase.is_last();
            Some(Ok(response(phase)))
        })
    }
}
