//! Requests to providers: always to the operator's base URL, within deadlines, over TLS with the system's roots and the
//! operator's own.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use reqwest::redirect::Policy;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use url::Url;

use crate::config::{Config, UpstreamConfig};
use crate::provider::Provider;
use crate::upload::{Deadlines, Late, Upload};
use crate::way::{Answer, Payload, Pieces};

/// Time between two pieces of a host's request.
pub(crate) const PIECE_MAX: Duration = Duration::from_secs(30);

/// Error that keeps requests from being sent.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The file of certificates can't be read.
    #[error("llm.ca_file: {0}")]
    Certificates(String),
    /// TLS can't be set up.
    #[error("TLS can't be set up: {0}")]
    Client(String),
}

/// Failure of one request, with what the host is told.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

/// Client of the providers.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    client: reqwest::Client,
    places: UpstreamConfig,
    connect: Duration,
    first_byte: Duration,
    idle: Duration,
}

/// Request to a provider, without its body, so that it can be sent more than once. It holds keys, so that it has no `Debug`.
#[derive(Clone)]
pub(crate) struct Head {
    pub(crate) provider: Provider,
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

impl Upstream {
    pub(crate) fn new(config: &Config) -> Result<Self, UpstreamError> {
        let roots = roots(config.llm.ca_file.as_deref())?;
        let failed = |error: &dyn std::error::Error| UpstreamError::Client(error.to_string());
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        // A redirect is the host's to follow: a key of one place is not for another.
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(Policy::none())
            .connect_timeout(config.llm.connect_timeout)
            .build()
            .map_err(|error| failed(&error))?;
        Ok(Self {
            client,
            places: config.upstream.clone(),
            connect: config.llm.connect_timeout,
            first_byte: config.llm.first_byte_timeout,
            idle: config.llm.idle_timeout,
        })
    }

    /// Returns the longest time between two pieces of an answer.
    pub(crate) fn idle_timeout(&self) -> Duration {
        self.idle
    }

    /// Returns the URL of a provider's path and query. `None` if the path climbs.
    pub(crate) fn url(&self, provider: Provider, path: &str, query: Option<&str>) -> Option<Url> {
        if is_climbing(path) {
            return None;
        }
        let base = self.places.of(provider).as_str().trim_end_matches('/');
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        Url::parse(&format!("{base}{path}{query}")).ok()
    }

    /// Sends a request, and waits for the head of its answer.
    pub(crate) async fn send(&self, head: &Head, body: Payload) -> Result<Answer, Failure> {
        let mut headers = head.headers.clone();
        match &body {
            Payload::Whole(bytes) if bytes.is_empty() => {}
            // It may be sent in pieces, whose number of bytes is known all the same.
            Payload::Whole(bytes) => {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            }
            Payload::Pieces(_) if headers.contains_key(header::CONTENT_LENGTH) => {}
            // Else that of a GET would not be sent.
            Payload::Pieces(_) => {
                headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
        }
        let (body, mut upload) = Upload::of(body);
        let request = self.client.request(head.method.clone(), head.url.clone());
        let sent = request.headers(headers).body(body).send();
        let answer = self.in_time(head.provider, &mut upload, sent).await?;
        let answer = answer.map_err(|error| self.failure(head.provider, &upload, &error))?;
        let status = answer.status();
        if status.is_informational() {
            // No request asks for another protocol.
            let place = self.place(head.provider);
            let message = format!("{place} answered with {status}, which nobody asked for");
            return Err(Failure { status: StatusCode::BAD_GATEWAY, message });
        }
        let headers = answer.headers().clone();
        let pieces = answer.bytes_stream();
        let pieces =
            pieces.map(|piece| piece.map_err(|error| io::Error::other(error.without_url())));
        Ok(Answer { status, headers, pieces: self.within_idle(Box::pin(pieces)) })
    }

    /// Waits for the head of an answer, but not for longer than the request and then the answer may take.
    pub(crate) async fn in_time<T>(
        &self,
        provider: Provider,
        upload: &mut Upload,
        answered: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let deadlines = Deadlines { piece: self.idle, answer: self.first_byte };
        upload.answered(deadlines, answered).await.map_err(|late| {
            let place = self.place(provider);
            let Deadlines { piece, answer } = deadlines;
            let message = match late {
                Late::Piece => {
                    format!(
                        "{place} took no more of the request within {piece:?} (llm.idle_timeout)"
                    )
                }
                Late::Answer => format!(
                    "{place} did not begin to answer within {answer:?} (llm.first_byte_timeout)"
                ),
            };
            Failure { status: StatusCode::GATEWAY_TIMEOUT, message }
        })
    }

    /// Returns the body of an answer. It ends with an error if nothing comes for too long.
    pub(crate) fn within_idle(&self, body: Pieces) -> Pieces {
        let idle = self.idle;
        let pieces = stream::unfold(Some(body), move |body| async move {
            let mut body = body?;
            let next = tokio::time::timeout(idle, body.next()).await;
            match next {
                Ok(Some(Ok(piece))) => Some((Ok(piece), Some(body))),
                Ok(Some(Err(error))) => {
                    flushed().await;
                    Some((Err(error), None))
                }
                Ok(None) => None,
                Err(_) => {
                    let silent = "the provider was silent for too long (llm.idle_timeout)";
                    Some((Err(io::Error::new(io::ErrorKind::TimedOut, silent)), None))
                }
            }
        });
        Box::pin(pieces)
    }

    /// Returns the scheme, host and port of a provider, for messages. A key in a query is no part of it.
    pub(crate) fn place(&self, provider: Provider) -> String {
        self.places.of(provider).origin().ascii_serialization()
    }

    fn failure(&self, provider: Provider, upload: &Upload, error: &reqwest::Error) -> Failure {
        if let Some(failure) = broken_off(upload) {
            return failure;
        }
        let place = self.place(provider);
        if error.is_timeout() && error.is_connect() {
            let status = StatusCode::GATEWAY_TIMEOUT;
            let connect = self.connect;
            let message =
                format!("no connection to {place} within {connect:?} (llm.connect_timeout)");
            return Failure { status, message };
        }
        let what = if error.is_connect() { "can't be reached" } else { "failed" };
        let status = StatusCode::BAD_GATEWAY;
        Failure { status, message: format!("{place} {what}: {}", innermost(error)) }
    }
}

/// Returns the failure of a request whose host did not send it to its end.
pub(crate) fn broken_off(upload: &Upload) -> Option<Failure> {
    let broken = upload.broken()?;
    Some(if broken.is_late {
        let message = format!("the host sent no more of its request within {PIECE_MAX:?}");
        Failure { status: StatusCode::REQUEST_TIMEOUT, message }
    } else {
        let message = format!("the request broke off: {}", broken.problem);
        Failure { status: StatusCode::BAD_REQUEST, message }
    })
}

/// Returns true if a path has a part that may lead out of where it stands.
pub(crate) fn is_climbing(path: &str) -> bool {
    // Some servers decode slashes too, and cut parameters off.
    let decoded = path.to_ascii_lowercase().replace("%2e", ".");
    let decoded = decoded.replace("%2f", "/").replace("%5c", "/").replace("%3b", ";");
    let is_climbing = |part: &str| matches!(part.split(';').next(), Some("." | ".."));
    decoded.split(['/', '\\']).any(is_climbing)
}

/// Waits until what was written before an error is on its way: the server drops the connection at once.
pub(crate) async fn flushed() {
    tokio::task::yield_now().await;
}

/// Returns the cause of an error, which names no URL.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if std::ptr::addr_eq(cause, error) {
        return "the request could not be sent".to_owned();
    }
    cause.to_string()
}

fn roots(own: Option<&Path>) -> Result<RootCertStore, UpstreamError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let Some(path) = own else { return Ok(roots) };
    let failed = |problem: String| {
        UpstreamError::Certificates(format!("{} can't be used: {problem}", path.display()))
    };
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    let mut added = 0;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
        added += 1;
    }
    if added == 0 {
        return Err(failed("it holds no certificate in PEM".to_owned()));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(base: &str) -> Upstream {
        let mut config = Config::default();
        config.upstream.openai = Url::parse(base).expect("a URL");
        Upstream::new(&config).expect("TLS")
    }

    #[test]
    fn requests_stay_below_the_operators_base() {
        let upstream = upstream("https://models.example/base/");
        let url = |path: &str, query| upstream.url(Provider::OpenAi, path, query);
        let found = url("/v1/chat%20x", Some("a=%2F&b")).expect("a URL");
        assert_eq!(found.as_str(), "https://models.example/base/v1/chat%20x?a=%2F&b");
        assert_eq!(url("", None).expect("a URL").as_str(), "https://models.example/base");
        let odd = url("/@evil.example/x", None).expect("a URL");
        assert_eq!(odd.host_str(), Some("models.example"));
        let model = url("/v1/models/org%2Fmodel", None).expect("a URL");
        assert_eq!(model.path(), "/base/v1/models/org%2Fmodel");
        for climbing in [
            "/../x",
            "/v1/%2e%2E/x",
            "/v1/..",
            "/a\\..\\b",
            "/./x",
            "/v1/..%2Fx",
            "/v1%2f%2e%2e%5cx",
            "/v1/..;a=b/x",
            "/v1/..%3Bx",
        ] {
            assert_eq!(url(climbing, None), None, "{climbing}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_told() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut config = Config::default();
        config.llm.ca_file = Some(file.path().to_owned());
        let error = Upstream::new(&config).expect_err("no certificate").to_string();
        assert!(error.contains("llm.ca_file"), "{error}");
    }
}
