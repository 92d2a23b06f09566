//! What a client can be told. All defaults are those that the service documents.

use std::time::Duration;

/// How a client behaves.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The most that a call may take, its retries included. Default: 5 s. The server may cut it.
    pub deadline: Duration,
    /// The most that connecting may take. Default: 3 s.
    pub connect_timeout: Duration,
    /// The tenant of requests that name none. Default: "", which the service reads as "default" while
    /// authentication is off.
    pub tenant: String,
    /// The largest message received or sent, in bytes. Default: 4 MiB, as the service's.
    pub max_message_bytes: usize,
    /// How UNAVAILABLE is retried.
    pub retry: RetryOptions,
}

/// How UNAVAILABLE is retried. Nothing else ever is.
#[derive(Debug, Clone, Copy)]
pub struct RetryOptions {
    /// Attempts in all, the first included. Default: 3; 1 for no retries.
    pub max_attempts: u32,
    /// The delay before the first retry; it doubles with each, and a random half of it is left away. A
    /// longer delay that the server asks for counts instead. Default: 100 ms.
    pub base_delay: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(3),
            tenant: String::new(),
            max_message_bytes: 4 << 20,
            retry: RetryOptions::default(),
        }
    }
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self { max_attempts: 3, base_delay: Duration::from_millis(100) }
    }
}
