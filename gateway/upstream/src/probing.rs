//! The handshake with a server, which may speak any revision, and behind a URL over either transport.

use std::sync::Arc;

use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle,
};
use rmcp::{ClientHandler, RoleClient};

use crate::connection::{not_shaken, problem_of};
use crate::credentials::Authorizer;
use crate::eras::Era;
use crate::error::UpstreamError;
use crate::http::{self, Failure};
use crate::process::{ProcessLimits, ProcessTransport, StandardError};
use crate::sse::SseTransport;
use crate::tap::Tap;
use crate::target::{Endpoint, Launch};

/// Connection that has been agreed on.
pub(crate) struct Agreed<H: ClientHandler> {
    pub(crate) service: RunningService<RoleClient, H>,
    pub(crate) tap: Tap,
    /// `stdio`, `http` or `sse`.
    pub(crate) transport: &'static str,
}

/// Server that is asked, and the source of its tokens.
struct Target<'a> {
    endpoint: &'a Endpoint,
    authorizer: Option<Arc<Authorizer>>,
    result_bytes_max: usize,
}

/// Returns the order in which revisions are tried: 2026-07-28 first, unless the era is known.
fn revisions(era: Option<Era>) -> ClientLifecycleMode {
    match era {
        Some(Era::Modern) => discovery(),
        Some(Era::Older) => ClientLifecycleMode::Initialize,
        None => ClientLifecycleMode::Auto {
            preferred_versions: modern_versions(),
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

fn discovery() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: modern_versions() }
}

fn modern_versions() -> Vec<ProtocolVersion> {
    vec![ProtocolVersion::V_2026_07_28]
}

/// Shakes hands with a process: `server/discover`, then `initialize`, or by the era that is known. One that can't tell its
/// revisions is started again, as it may not take a second handshake. So is one that tells them after `initialize` was sent:
/// package runners fetch the server first.
pub(crate) async fn over_process<H: ClientHandler>(
    handler: &impl Fn(&Tap) -> H,
    launch: &Launch,
    stderr: &StandardError,
    limits: ProcessLimits,
    era: Option<Era>,
) -> Result<Agreed<H>, UpstreamError> {
    let mut tap = Tap::default();
    let start = |tap: &Tap| ProcessTransport::start(launch, tap.clone(), stderr.clone(), limits);
    let mut shaken = over_streams(handler, start(&tap)?, &tap, revisions(era)).await;
    let again = if era.is_some() {
        None
    } else if tap.is_known_late() {
        Some(discovery())
    } else {
        shaken.as_ref().is_err_and(is_no_discovery).then_some(ClientLifecycleMode::Initialize)
    };
    if let Some(mode) = again {
        // The first process ends before the second begins.
        drop(shaken);
        tap = Tap::default();
        shaken = over_streams(handler, start(&tap)?, &tap, mode).await;
    }
    shaken.map_err(|error| match tap.exit() {
        Some(status) if is_closed(&error) => UpstreamError::Handshake {
            asks_for_login: false,
            problem: format!("it ended ({status})"),
            said: stderr.said(),
        },
        _ => not_shaken(&error, stderr.said()),
    })
}

async fn over_streams<H: ClientHandler>(
    handler: &impl Fn(&Tap) -> H,
    transport: ProcessTransport,
    tap: &Tap,
    mode: ClientLifecycleMode,
) -> Result<Agreed<H>, ClientInitializeError> {
    let service = serve_client_with_lifecycle(handler(tap), transport, mode).await?;
    Ok(Agreed { service, tap: tap.clone(), transport: "stdio" })
}

/// Shakes hands with a server behind a URL: `server/discover`, then `initialize`, or by the era that is known, then HTTP+SSE
/// where Streamable HTTP is refused by the status alone. Each try has a tap of its own, and a handler for it.
pub(crate) async fn over_http<H: ClientHandler>(
    handler: &impl Fn(&Tap) -> H,
    endpoint: &Endpoint,
    authorizer: Option<Arc<Authorizer>>,
    result_bytes_max: usize,
    era: Option<Era>,
) -> Result<Agreed<H>, UpstreamError> {
    let target = Target { endpoint, authorizer, result_bytes_max };
    let mut shaken = over_streamable(handler, &target, revisions(era)).await?;
    if era.is_none() && shaken.as_ref().is_err_and(is_no_discovery) {
        let mode = ClientLifecycleMode::Initialize;
        shaken = over_streamable(handler, &target, mode).await?;
    }
    match shaken {
        Err(error) if is_no_streamable_http(&error) => {
            Box::pin(over_sse(handler, target, &error)).await
        }
        shaken => shaken.map_err(|error| not_shaken(&error, String::new())),
    }
}

async fn over_streamable<H: ClientHandler>(
    handler: &impl Fn(&Tap) -> H,
    target: &Target<'_>,
    mode: ClientLifecycleMode,
) -> Result<Result<Agreed<H>, ClientInitializeError>, UpstreamError> {
    let tap = Tap::default();
    let Target { endpoint, authorizer, result_bytes_max } = target;
    let transport = http::transport(endpoint, tap.clone(), authorizer.clone(), *result_bytes_max)?;
    let shaken = serve_client_with_lifecycle(handler(&tap), transport, mode).await;
    Ok(shaken.map(|service| Agreed { service, tap, transport: "http" }))
}

async fn over_sse<H: ClientHandler>(
    handler: &impl Fn(&Tap) -> H,
    target: Target<'_>,
    before: &ClientInitializeError,
) -> Result<Agreed<H>, UpstreamError> {
    let tap = Tap::default();
    let Target { endpoint, authorizer, result_bytes_max } = target;
    let client = http::client()?;
    let opened = SseTransport::open(client, endpoint, authorizer, tap.clone(), result_bytes_max);
    let transport = opened.await.map_err(|error| UpstreamError::Handshake {
        asks_for_login: matches!(error, Failure::AuthRequired(_)),
        problem: format!("no Streamable HTTP ({}), and no HTTP+SSE ({error})", problem_of(before)),
        said: String::new(),
    })?;
    let mode = ClientLifecycleMode::Initialize;
    let shaken = serve_client_with_lifecycle(handler(&tap), transport, mode).await;
    let service = shaken.map_err(|error| not_shaken(&error, String::new()))?;
    Ok(Agreed { service, tap, transport: "sse" })
}

/// Returns whether a server answered `server/discover` as if it knew it, but not with what it can do, or with older revisions
/// alone.
fn is_no_discovery(error: &ClientInitializeError) -> bool {
    matches!(
        error,
        ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::ExpectedInitResponse(_)
            | ClientInitializeError::NoCompatibleProtocolVersion { .. }
    )
}

/// Returns whether a server closed the connection instead of answering.
fn is_closed(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_) => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => is_closed(fallback),
        _ => false,
    }
}

/// Returns whether a server refused `initialize` as one does that takes no POST at this URL.
fn is_no_streamable_http(error: &ClientInitializeError) -> bool {
    let error = match error {
        ClientInitializeError::TransportError { error, .. } => error,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            return is_no_streamable_http(fallback);
        }
        _ => return false,
    };
    matches!(
        error.error.downcast_ref::<Failure>(),
        Some(Failure::UnexpectedServerResponse(text))
            if ["HTTP 400", "HTTP 404", "HTTP 405"].iter().any(|status| text.starts_with(status))
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::connection::{Connection, ConnectionLimits, Told, client};
    use crate::target::Upstream;

    /// Time after which the library gives its question up, and more.
    const GIVEN_UP: Duration = Duration::from_secs(15);

    /// Connects to a server that answers the question only after it was given up. Returns the revision that was agreed on.
    async fn revision_of_late(kind: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let mut upstream = Upstream::parse("python3 -c").expect("a command");
        if let Upstream::Process(launch) = &mut upstream {
            launch.arguments.push(include_str!("fleet/test_server.py").to_owned());
            let mark = folder.path().join("mark").display().to_string();
            launch.environment.extend(
                [("LATE", kind.to_owned()), ("LATE_MARK", mark)]
                    .map(|(name, value)| (name.to_owned(), value)),
            );
        }
        let stderr = StandardError::default();
        let limits =
            ConnectionLimits { handshake: GIVEN_UP * 1_000, ..ConnectionLimits::default() };
        let info = client(rmcp::model::ClientCapabilities::default());
        let told = Told::default();
        let connecting =
            Connection::open_within(&upstream, info, limits, stderr.clone(), told, None, None);
        let mut connecting = std::pin::pin!(connecting);
        let give_up = async {
            while !stderr.text(None).contains("it is asked") {
                tokio::task::yield_now().await;
            }
            tokio::time::advance(GIVEN_UP).await;
        };
        tokio::select! {
            connected = &mut connecting => panic!("it is to wait: {connected:?}"),
            () = give_up => {}
        }
        let connection = connecting.await.expect("a connection");
        let revision = connection.identity().protocol;
        connection.close().await;
        revision
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_to_the_question_does_not_end_the_start() {
        // While it runs, time stands still but where it is moved.
        let (done, until_done) = std::sync::mpsc::channel::<()>();
        let holding = tokio::task::spawn_blocking(move || until_done.recv());
        assert_eq!(revision_of_late("older").await, "2025-11-25");
        assert_eq!(revision_of_late("modern").await, "2026-07-28");
        drop(done);
        // The channel is closed.
        let _closed = holding.await;
    }
}
