//! Options of the clients.

use std::time::Duration;

use crate::credentials::Credentials;
use crate::tls::TlsOptions;

/// Options of a client. Its `Debug` output holds no secret.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Longest time that a call may take, including its retries. Default: 5 s. The server may shorten it.
    pub deadline: Duration,
    /// Longest time that connecting may take. Default: 3 s.
    pub connect_timeout: Duration,
    /// Tenant of requests that name none. Default: "", which the service reads as "default" while authentication is
    /// off.
    pub tenant: String,
    /// Principal of the tenant that calls are made for, as a gateway makes them for its callers. The credential needs the role
    /// `delegate`. Default: "", the credential's own principal.
    pub principal: String,
    /// Largest request that is sent, in bytes. Default: 4 MiB, the same as the service's `limits.max_message_size`.
    pub max_request_bytes: usize,
    /// Largest answer that is accepted, in bytes. Default: 64 MiB, because a page of 1,000 tools may be large.
    pub max_answer_bytes: usize,
    /// Retries of calls that fail with UNAVAILABLE.
    pub retry: RetryOptions,
    /// TLS of an `https://` target. Default: the same as [`TlsOptions::default`]. Setting it for any other target is an
    /// error.
    pub tls: Option<TlsOptions>,
    /// Credentials sent with each call. Default: none.
    pub credentials: Credentials,
    /// True if credentials may be sent unencrypted to another host. Default: false, which makes such a connection an
    /// error. They may always be sent to a loopback address.
    pub allow_insecure_credentials: bool,
    /// Trace that calls belong to, so that the service's spans are below the caller's. Default: none.
    pub trace: Option<TraceContext>,
}

/// Trace in the format of W3C Trace Context. A text that no header can carry is not sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// Trace, calling span, and sampling flag: `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`.
    pub traceparent: String,
    /// Additions of tracing systems; often empty.
    pub tracestate: String,
}

/// Retries of calls that fail with UNAVAILABLE; no other failure is retried. Retries stop while many attempts on a
/// connection fail, and resume after enough successes. A bucket of 10 tokens decides this: each such attempt takes one,
/// each success returns a tenth, and it must be more than half full.
#[derive(Debug, Clone, Copy)]
pub struct RetryOptions {
    /// Number of attempts, including the first. Default: 3. 1 turns retries off.
    pub max_attempts: u32,
    /// Pause before the first retry. It doubles with each retry, and a random part of up to a half is taken off. A
    /// longer pause that the server asks for takes precedence. Default: 100 ms.
    pub base_delay: Duration,
    /// Longest pause. Default: 1 s.
    pub max_delay: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(3),
            tenant: String::new(),
            principal: String::new(),
            max_request_bytes: 4 << 20,
            max_answer_bytes: 64 << 20,
            retry: RetryOptions::default(),
            tls: None,
            credentials: Credentials::default(),
            allow_insecure_credentials: false,
            trace: None,
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
