//! Request bodies that are read whole, within limits on size, time and the memory that all bodies share.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use toolgate_serving::{Owner, Share};

use super::WebLimits;
use super::failure::Failure;
use super::rooms::{Place, Rooms};
use toolgate_app::telemetry::{Metrics, Rejection};
use toolgate_core::error::Error;

/// Factor by which a body may be longer than its message as protobuf; base64 and field names take space.
const LONGER: usize = 2;

/// Reader of the bodies of callers without gRPC.
pub(super) struct Bodies {
    rooms: Rooms,
    longest: usize,
    max_deadline: Duration,
    metrics: Arc<Metrics>,
}

impl Bodies {
    pub(super) fn new(limits: &WebLimits, metrics: Arc<Metrics>) -> Self {
        Self {
            rooms: Rooms::new(limits.max_concurrent_calls),
            longest: limits.max_message_bytes.saturating_mul(LONGER),
            max_deadline: limits.max_deadline,
            metrics,
        }
    }

    /// Takes a place for a call, which the call keeps until it is answered.
    pub(super) fn enter(&self, owner: &Owner) -> Result<Place, Failure> {
        self.rooms.enter(owner).ok_or_else(|| self.full())
    }

    /// Reads the whole body within the call's time, and returns it with the memory share that it takes up.
    pub(super) async fn read(
        &self,
        body: Body,
        owner: &Owner,
        asked: Option<Duration>,
    ) -> Result<(Bytes, Share), Failure> {
        let within = asked.map_or(self.max_deadline, |asked| asked.min(self.max_deadline));
        if within.is_zero() {
            return Err(Failure::from(&Error::DeadlineExceeded));
        }
        let read = timeout(within, self.whole(body, owner)).await;
        read.unwrap_or_else(|_| {
            self.metrics.rejected(Rejection::WebBodyLate);
            Err(Failure::from(&Error::DeadlineExceeded))
        })
    }

    async fn whole(&self, mut body: Body, owner: &Owner) -> Result<(Bytes, Share), Failure> {
        let mut room = self.rooms.for_body(owner).ok_or_else(|| self.full())?;
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            // The caller is gone, so this error is never read.
            let frame = frame.map_err(|_| Status::cancelled("the request's body ended early"))?;
            let Ok(piece) = frame.into_data() else { continue };
            let length = bytes.len() + piece.len();
            if length > self.longest {
                return Err(Failure::too_large(self.longest));
            }
            if !self.rooms.grow(&mut room, length) {
                return Err(self.full());
            }
            bytes.extend_from_slice(&piece);
        }
        Ok((bytes.freeze(), room))
    }

    fn full(&self) -> Failure {
        self.metrics.rejected(Rejection::WebBodies);
        Failure::from(&Error::Overloaded)
    }
}
