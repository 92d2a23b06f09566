//! What a caller learns of its request while it runs.

use std::sync::atomic::{AtomicU64, Ordering};

/// Values that stand for no process.
const NOT_SENT: u64 = 0;
const TO_NO_PROCESS: u64 = 1;

/// Record of whether a request was sent, and to which process. A request that is dropped before it is sent has no effects.
#[derive(Debug, Default)]
pub struct Sent(AtomicU64);

impl Sent {
    /// Returns whether it was sent.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.0.load(Ordering::Acquire) != NOT_SENT
    }

    /// Returns the process that it was sent to, by which requests about its task name it ([`Request::process`](super::Request));
    /// `None` if it was not sent, or to a URL.
    #[must_use]
    pub fn process(&self) -> Option<u64> {
        match self.0.load(Ordering::Acquire) {
            NOT_SENT | TO_NO_PROCESS => None,
            process => Some(process),
        }
    }

    pub(super) fn tell(&self, process: Option<u64>) {
        self.0.store(process.unwrap_or(TO_NO_PROCESS), Ordering::Release);
    }
}

/// Returns a number for a process, which no other has: not one of an earlier start of the gateway either.
pub(crate) fn process_number() -> u64 {
    fastrand::u64(TO_NO_PROCESS + 1..)
}
