//! Request bodies that are read whole, within limits on size, time and the memory that all bodies share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use toolgate_serving::{Owner, Share};

use super::WebLimits;
use super::body_budget::{BodyBudget, Place};
use super::failure::Failure;
use crate::edge::longest;
use toolgate_app::telemetry::{Metrics, Rejection};
use toolgate_core::error::Error;

/// Factor by which a body may be longer than its message as protobuf; base64 and field names take space.
const LONGER: usize = 2;

/// Reader of the bodies of callers without gRPC.
pub(super) struct Bodies {
    budget: BodyBudget,
    longest: usize,
    max_deadline: Duration,
    metrics: Arc<Metrics>,
}

impl Bodies {
    pub(super) fn new(limits: &WebLimits, metrics: Arc<Metrics>) -> Self {
        Self {
            budget: BodyBudget::new(limits.max_concurrent_calls),
            longest: limits.max_message_bytes.saturating_mul(LONGER),
            max_deadline: limits.max_deadline,
            metrics,
        }
    }

    /// Takes a place for a call, which the call keeps until it is answered.
    pub(super) fn enter(&self, owner: &Owner) -> Result<Place, Failure> {
        self.budget.enter(owner).ok_or_else(|| self.full())
    }

    /// Returns the time that is left for the body of a call: until the caller's timeout or the method's maximum, counted
    /// from the arrival.
    pub(super) fn time_left(
        &self,
        path: &str,
        asked: Option<Duration>,
        arrived: Instant,
    ) -> Duration {
        let longest = longest(path, self.max_deadline);
        let whole = asked.map_or(longest, |asked| asked.min(longest));
        whole.saturating_sub(arrived.elapsed())
    }

    /// Reads the whole body within this time, and returns it with the memory share that it takes up.
    pub(super) async fn read(
        &self,
        body: Body,
        owner: &Owner,
        within: Duration,
    ) -> Result<(Bytes, Share), Failure> {
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
        let mut share = self.budget.for_body(owner).ok_or_else(|| self.full())?;
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            // The caller is gone, so this error is never read.
            let frame = frame.map_err(|_| Status::cancelled("the request's body ended early"))?;
            let Ok(piece) = frame.into_data() else { continue };
            let length = bytes.len() + piece.len();
            if length > self.longest {
                return Err(Failure::too_large(self.longest));
            }
            if !self.budget.grow(&mut share, length) {
                return Err(self.full());
            }
            bytes.extend_from_slice(&piece);
        }
        Ok((bytes.freeze(), share))
    }

    fn full(&self) -> Failure {
        self.metrics.rejected(Rejection::WebBodies);
        Failure::from(&Error::Overloaded)
    }
}

#[cfg(test)]
mod tests {
    use http_body::Frame;
    use http_body_util::StreamBody;
    use tokio_stream::StreamExt as _;
    use tokio_stream::wrappers::IntervalStream;

    use super::*;

    const MAX: Duration = Duration::from_secs(30);
    const ROUTE: &str = "/toolgate.v1.RouterService/Route";
    const REGISTER: &str = "/toolgate.v1.CatalogService/RegisterServer";

    fn bodies() -> Bodies {
        let limits = WebLimits {
            max_message_bytes: 1 << 20,
            max_concurrent_calls: 4,
            max_deadline: MAX,
            admin_port: 0,
        };
        Bodies::new(&limits, Arc::default())
    }

    /// Returns a body of one byte a second, of this many bytes.
    fn slow(bytes: usize) -> Body {
        let every = IntervalStream::new(tokio::time::interval(Duration::from_secs(1)));
        let frames =
            every.take(bytes).map(|_| Ok::<_, Status>(Frame::data(Bytes::from_static(b"a"))));
        Body::new(StreamBody::new(frames))
    }

    #[tokio::test(start_paused = true)]
    async fn a_registration_may_take_longer_to_send_than_other_calls() {
        let bodies = bodies();
        let read = async |path, asked| {
            let within = bodies.time_left(path, asked, Instant::now());
            bodies
                .read(slow(60), &Owner::default(), within)
                .await
                .map(|(bytes, _)| bytes.len())
                .ok()
        };
        assert_eq!(read(REGISTER, None).await, Some(60));
        assert_eq!(read(ROUTE, None).await, None);
        assert_eq!(read(REGISTER, Some(Duration::from_secs(10))).await, None, "its caller leaves");
    }

    #[test]
    fn time_counts_from_the_arrival() {
        let bodies = bodies();
        let long_ago = Instant::now().checked_sub(Duration::from_secs(20)).expect("a past");
        let left = bodies.time_left(ROUTE, None, long_ago);
        assert!(left <= Duration::from_secs(10), "{left:?}");
        let passed = bodies.time_left(ROUTE, Some(Duration::from_secs(5)), long_ago);
        assert_eq!(passed, Duration::ZERO);
    }
}
