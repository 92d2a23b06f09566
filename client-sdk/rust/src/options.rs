//! What a client can be told. All defaults are those that the service documents.

use std::time::Duration;

use crate::credentials::Credentials;
use crate::tls::TlsOptions;

/// How a client behaves. What its `Debug` prints holds no secret.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The most that a call may take, its retries included. Default: 5 s. The server may cut it.
    pub deadline: Duration,
    /// The most that connecting may take. Default: 3 s.
    pub connect_timeout: Duration,
    /// The tenant of requests that name none. Default: "", which the service reads as "default" while
    /// authentication is off.
    pub tenant: String,
    /// The largest request sent, in bytes. Default: 4 MiB, as the service's `limits.max_message_size`.
    pub max_request_bytes: usize,
    /// The largest answer taken, in bytes. Default: 64 MiB, since a page of 1,000 tools may be large.
    pub max_answer_bytes: usize,
    /// How UNAVAILABLE is retried.
    pub retry: RetryOptions,
    /// How an `https://` target is spoken to. Default: as [`TlsOptions::default`]. An error with any other
    /// target.
    pub tls: Option<TlsOptions>,
    /// Who the client says it is. Default: nobody.
    pub credentials: Credentials,
    /// Whether credentials may go over an unencrypted connection to another host. Default: false, which makes
    /// that an error. To a loopback address they always may.
    pub allow_insecure_credentials: bool,
}

/// How UNAVAILABLE is retried. Nothing else ever is. Over a connection on which many attempts fail, retries
/// stop until enough calls succeed again: a bucket of 10 tokens, of which each such attempt takes one and each
/// success gives back a tenth, must be more than half full.
#[derive(Debug, Clone, Copy)]
pub struct RetryOptions {
    /// Attempts in all, the first included. Default: 3; 1 for no retries.
    pub max_attempts: u32,
    /// The delay before the first retry; it doubles with each, and a random half of it is left away. A
    /// longer delay that the server asks for counts instead. Default: 100 ms.
    pub base_delay: Duration,
    /// The longest that a delay grows to. Default: 1 s.
    pub max_delay: Duration,
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
            max_request_bytes: 4 << 20,
            max_answer_bytes: 64 << 20,
            retry: RetryOptions::default(),
            tls: None,
            credentials: Credentials::default(),
            allow_insecure_credentials: false,
        }
    }
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            base_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(1),
        }
    }
}
