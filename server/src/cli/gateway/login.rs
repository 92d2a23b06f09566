//! `toolgate gateway login` and `logout`: a person's login at the authorization server of an MCP server.

use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use toolgate_mcp::{Auth, Config};
use toolgate_serving::{ConnectionLimits, Connections};
use toolgate_upstream::{
    CredentialError, CredentialStore, Endpoint, Entry, Login, Owner, Upstream,
};

use super::credentials;
use super::data_dir;
use super::files::GatewayFiles;
use crate::cli::arguments::ConfigArguments;
use crate::cli::failure::{Exit, Failure};
use crate::cli::names::unknown;
use crate::cli::output;

/// Folder of credentials in the gateway's data directory.
pub(super) const FOLDER: &str = "credentials";

/// Path that a login leads back to.
const CALLBACK: &str = "/callback";

/// Time for a person to log in.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Redirects that wait to be looked at. More are refused.
const REDIRECTS_WAITING: usize = 16;

/// Most connections of browsers at once; one more takes the place of another.
const CONNECTIONS_MAX: usize = 32;

/// Time after which a connection without a request is closed.
const UNUSED_MAX: Duration = Duration::from_secs(30);

/// Longest line that is taken as a redirected URL, in bytes.
const LINE_MAX: u64 = 16 << 10;

/// Server whose login it is, and the gateway's files.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The server.
    server: String,
    #[command(flatten)]
    files: GatewayFiles,
    /// The gateway's data directory. Default: `gateway` in the usual one.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Arguments of a login.
#[derive(Debug, Args)]
pub(super) struct LogIn {
    #[command(flatten)]
    place: Place,
    /// Only print the URL.
    #[arg(long)]
    no_browser: bool,
}

/// Server of the gateway's file that takes logins.
struct Found {
    endpoint: Endpoint,
    port: u16,
    store: CredentialStore,
    owner: Owner,
}

/// Opens the store of credentials of a gateway.
pub(super) fn store(config: &Config, data: &Path) -> Result<CredentialStore, Failure> {
    let key = config.credential_key().map_err(|error| Failure::usage(error.to_string()))?;
    CredentialStore::open(&data.join(FOLDER), key.as_ref()).map_err(failure)
}

/// Opens the store where a server takes logins, and seals anew what older keys had sealed. One that can't be opened matters only if
/// the file asks for logins.
pub(super) fn store_if_needed(
    config: &Config,
    data: &Path,
) -> Result<Option<CredentialStore>, Failure> {
    let entries = config.entries().map_err(|error| Failure::usage(error.to_string()))?;
    let takes_login = |entry: &Entry| match &entry.upstream {
        Upstream::Http(endpoint) => endpoint.takes_login(),
        Upstream::Process(_) => false,
    };
    if !entries.iter().any(takes_login) {
        return Ok(None);
    }
    let is_asked_for = config
        .server
        .values()
        .any(|server| matches!(server.auth, Some(Auth::Oauth | Auth::OauthPerUser)));
    match store(config, data) {
        Err(failure) if !is_asked_for => {
            output::note(format_args!("nobody can log in to a server: {}", failure.message()));
            Ok(None)
        }
        Err(failure) => Err(failure),
        Ok(store) => {
            credentials::reseal_and_tell(&store);
            Ok(Some(store))
        }
    }
}

pub(super) async fn log_in(arguments: LogIn) -> Result<Exit, Failure> {
    let name = arguments.place.server.clone();
    let Found { endpoint, port, store, owner } = arguments.place.find()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| {
        Failure::new(format!("port {port} of this machine can't be listened on: {error}"))
    })?;
    let redirect_uri = format!("http://{}{CALLBACK}", listener.local_addr()?);
    let known = store.scopes(&owner, &endpoint.url);
    let login = Login::begin(&endpoint, &redirect_uri, &known).await.map_err(failure)?;
    output::note(format_args!("{name}: log in at {}", login.issuer()));
    output::print(&format!("{}\n", login.url()))?;
    output::note("on another machine: paste the URL that the browser ends at, and press Enter");
    if !arguments.no_browser {
        open(login.url().as_str());
    }
    let redirected = redirected(listener, &login);
    let redirected = tokio::time::timeout(PATIENCE, redirected).await;
    let redirected = redirected.map_err(|_late| Failure::new("nobody logged in in time"))?;
    login.finish(&redirected?, &store, &owner).await.map_err(failure)?;
    output::note(format_args!("{name}: logged in; a gateway that runs starts it by itself"));
    Ok(Exit::Done)
}

pub(super) async fn log_out(place: Place) -> Result<Exit, Failure> {
    let name = place.server.clone();
    let Found { endpoint, store, owner, .. } = place.find()?;
    match toolgate_upstream::log_out(&endpoint, &store, &owner).await {
        Ok(true) => output::note(format_args!("{name}: logged out")),
        Ok(false) => output::note(format_args!("{name}: nobody was logged in")),
        Err(CredentialError::Unavailable(problem)) => {
            output::note(format_args!(
                "{name}: logged out here; its authorization server was not told: {problem}"
            ));
        }
        Err(error) => return Err(failure(error)),
    }
    Ok(Exit::Done)
}

impl Place {
    fn find(&self) -> Result<Found, Failure> {
        let config = self.files.clone().settled().read()?.config;
        let name = &self.server;
        let entries = config.entries().map_err(|error| Failure::usage(error.to_string()))?;
        let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
        let entry = entries.into_iter().find(|entry| entry.name == *name);
        if let Some(problem) = entry.as_ref().and_then(|entry| entry.waits_for.as_ref()) {
            return Err(Failure::usage(format!("server.{name} waits: {problem}")));
        }
        let upstream = entry.map(|entry| entry.upstream);
        let endpoint = match upstream {
            Some(Upstream::Http(endpoint)) if endpoint.takes_login() => endpoint,
            Some(Upstream::Http(_)) => {
                return Err(Failure::usage(format!(
                    "server.{name} takes no login: its `auth` or its `headers` say otherwise"
                )));
            }
            Some(Upstream::Process(_)) => {
                let problem = "is a `command`, which takes its secrets from `env`";
                return Err(Failure::usage(format!("server.{name} {problem}")));
            }
            None => {
                let problem = format!("the gateway's file has no server.{name}");
                let names = names.iter().map(String::as_str);
                let list = "toolgate gateway status";
                return Err(Failure::usage(unknown(&problem, name, names, list)));
            }
        };
        let oauth = config.server.get(name).and_then(|server| server.oauth.as_ref());
        let port = oauth.and_then(|oauth| oauth.redirect_port).unwrap_or(0);
        let usual = ConfigArguments { config: None, settings: Vec::new() };
        let data = data_dir(self.data_dir.as_deref(), &usual, Vec::new())?;
        let store = store(&config, &data)?;
        Ok(Found { endpoint, port, store, owner: Owner::operator(name) })
    }
}

/// Waits for the redirect of a login: at the listener, or on standard input.
async fn redirected(listener: TcpListener, login: &Login) -> Result<String, Failure> {
    let (sender, mut arrived) = mpsc::channel(REDIRECTS_WAITING);
    let router = Router::new().route(CALLBACK, get(callback)).with_state(sender);
    let refused = |refusal| tracing::debug!(?refusal, "a connection was refused");
    let limits = ConnectionLimits {
        unproven_idle: Some(UNUSED_MAX),
        ..ConnectionLimits::of(CONNECTIONS_MAX)
    };
    let listener = Connections::new(listener, limits, refused).into_listener();
    let mut serving = std::pin::pin!(async { axum::serve(listener, router).await });
    let mut lines = input_lines();
    let mut is_read = true;
    loop {
        tokio::select! {
            served = &mut serving => {
                served?;
                return Err(Failure::new("the redirect can't be waited for"));
            }
            Some((redirect, answer)) = arrived.recv() => {
                let is_ours = login.owns(&redirect);
                let _gone = answer.send(is_ours);
                if is_ours {
                    // The page reaches the browser before this process goes on.
                    let _late = tokio::time::timeout(Duration::from_secs(1), &mut serving).await;
                    return Ok(redirect);
                }
            }
            line = lines.recv(), if is_read => match line {
                Some(line) if login.owns(&line) => return Ok(line),
                Some(line) if line.trim().is_empty() => {}
                Some(_) => output::note("this is not the URL that the login leads to"),
                None => is_read = false,
            },
        }
    }
}

/// Returns the lines of standard input. A thread of its own reads them, which nobody waits for at the end.
fn input_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = String::new();
            let read = (&mut input).take(LINE_MAX).read_line(&mut line);
            if !read.is_ok_and(|bytes| bytes > 0) || sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

type Arrived = mpsc::Sender<(String, tokio::sync::oneshot::Sender<bool>)>;

/// Takes a redirect. One of another login is refused and changes nothing.
async fn callback(State(arrived): State<Arrived>, uri: Uri) -> Response {
    let (answer, is_ours) = tokio::sync::oneshot::channel();
    let is_sent = arrived.try_send((uri.to_string(), answer)).is_ok();
    if is_sent && is_ours.await.unwrap_or(false) {
        page(StatusCode::OK, "This window can be closed: Toolgate goes on in its terminal.")
    } else {
        page(StatusCode::BAD_REQUEST, "This belongs to no login that Toolgate waits for.")
    }
}

/// Returns a page without scripts, which no other page may frame.
fn page(status: StatusCode, text: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONNECTION, "close"),
    ];
    let body = format!("<!doctype html><title>Toolgate</title><p>{text}</p>\n");
    (status, headers, body).into_response()
}

/// Opens a URL in the person's browser, if there is one. No shell sees the URL.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    // Without a browser the printed URL is enough.
    let _started = tokio::process::Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err`")]
pub(super) fn failure(error: CredentialError) -> Failure {
    Failure::new(error.to_string())
}
