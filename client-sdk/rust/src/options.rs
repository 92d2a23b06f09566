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

/// How a client of an encoder worker connects.
#[derive(Debug, Clone, Copy)]
pub struct EncoderOptions {
    /// The most that connecting may take. Default: 1 s.
    pub connect_timeout: Duration,
    /// How often the connection is asked for a sign of life, also while nothing is called. Default: 5 s.
    pub keep_alive_interval: Duration,
    /// How long that sign may take before the connection is given up. Default: 2 s.
    pub keep_alive_timeout: Duration,
    /// The largest answer taken, in bytes. Default: 4 MiB.
    pub max_message_bytes: usize,
}

impl Default for EncoderOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(1),
            keep_alive_interval: Duration::from_secs(5),
            keep_alive_timeout: Duration::from_secs(2),
            max_message_bytes: 4 << 20,
        }
    }
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
