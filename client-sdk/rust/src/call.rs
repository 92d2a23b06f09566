//! One call: its deadline, its attempts and the pauses between them. Knows no RPC.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

use prost::Message;
use tokio::time::{Instant, sleep, timeout_at};
use tonic::{Request, Response, Status};

use crate::client::Client;
use crate::error::Error;

/// Whether a request may be sent again when nobody knows what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Sent twice it does what it does once.
    Safe,
    /// Only when the service itself said that it did nothing.
    OnlyIfRefused,
}

/// An RPC by name, and whether it may be repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rpc {
    pub(crate) name: &'static str,
    pub(crate) repeat: Repeat,
}

impl Rpc {
    /// An RPC that only reads.
    pub(crate) const fn read(name: &'static str) -> Self {
        Self { name, repeat: Repeat::Safe }
    }

    fn may_repeat(self, error: &Error) -> bool {
        error.is_unavailable() && (self.repeat == Repeat::Safe || error.reason().is_some())
    }
}

impl Client {
    /// Runs `send` until it succeeds, fails for good, or the deadline passes.
    pub(crate) async fn call<Q, A, F>(
        &self,
        rpc: Rpc,
        message: Q,
        mut send: impl FnMut(Request<Q>) -> F,
    ) -> Result<A, Error>
    where
        Q: Message + Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        self.check_size(rpc, &message)?;
        let end = Instant::now() + self.options().deadline;
        let mut attempt = 1;
        loop {
            let mut request = Request::new(message.clone());
            request.set_timeout(end.saturating_duration_since(Instant::now()));
            let error = match timeout_at(end, send(request)).await {
                Ok(Ok(answer)) => return Ok(answer.into_inner()),
                Ok(Err(status)) => Error::from_status(rpc.name, self.endpoint(), &status),
                Err(_elapsed) => return Err(self.too_late(rpc)),
            };
            if Instant::now() >= end && error.reason().is_none() {
                return Err(self.too_late(rpc));
            }
            let pause = self.pause_before_next(attempt, &error);
            let in_time = Instant::now() + pause < end;
            let has_attempts = attempt < self.options().retry.max_attempts;
            if !(rpc.may_repeat(&error) && has_attempts && in_time) {
                return Err(error);
            }
            sleep(pause).await;
            attempt += 1;
        }
    }

    /// Said here, because the transport would only say that the stream broke.
    fn check_size(&self, rpc: Rpc, message: &impl Message) -> Result<(), Error> {
        let (bytes, limit) = (message.encoded_len(), self.options().max_message_bytes);
        if bytes > limit {
            return Err(Error::TooLarge { rpc: rpc.name, bytes, limit });
        }
        Ok(())
    }

    fn too_late(&self, rpc: Rpc) -> Error {
        Error::Deadline {
            rpc: rpc.name,
            endpoint: self.endpoint().to_owned(),
            deadline: self.options().deadline,
        }
    }

    /// Exponential with jitter, and never less than the service asked for.
    fn pause_before_next(&self, attempt: u32, error: &Error) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let longest = self.options().retry.base_delay.saturating_mul(doubled);
        let jittered = longest.mul_f64(0.5 + 0.5 * random_unit());
        jittered.max(error.retry_delay().unwrap_or_default())
    }
}

/// From 0 to 1. Each `RandomState` has keys of its own, which is random enough to spread retries.
fn random_unit() -> f64 {
    RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_its_bounds_and_varies() {
        let drawn: Vec<f64> = (0..64).map(|_| random_unit()).collect();
        assert!(drawn.iter().all(|unit| (0.0..=1.0).contains(unit)));
        assert!(drawn.iter().any(|unit| *unit < 0.5) && drawn.iter().any(|unit| *unit > 0.5));
    }
}
