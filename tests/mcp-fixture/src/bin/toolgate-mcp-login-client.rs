//! Client for the OAuth scenarios of the official conformance suite: it asks a server through `toolgate_upstream`, and logs
//! in where the server asks for it, as `toolgate gateway login` does, with a browser that consents to everything. The suite
//! names the scenario in `MCP_CONFORMANCE_SCENARIO` and gives the server's URL as the argument.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use toolgate_upstream::{
    Authorization, CredentialStore, Endpoint, Entry, Eras, Fleet, Limits, Login, OAuthClient,
    Owner, Processes, Request, RequestError, Secret, ServerState, Upstream,
};
use url::Url;

const SERVER: &str = "scenario";
const REDIRECT: &str = "http://127.0.0.1:3000/callback";
const METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// Time for the server to be ready, and for each request.
const PATIENCE: Duration = Duration::from_secs(20);

/// Logins that a person would make before they gave up.
const LOGINS_MAX: usize = 2;

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Client {
    fleet: Fleet,
    endpoint: Endpoint,
    store: CredentialStore,
    logins: usize,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).ok_or("the argument is missing: the server's URL")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    let Upstream::Http(mut endpoint) = Upstream::parse(&url)? else { return Err("no URL".into()) };
    endpoint.authorization = authorization(&scenario)?;
    let folder = folder()?;
    let store = CredentialStore::open(&folder, None)?;
    let entry = Entry {
        name: SERVER.to_owned(),
        upstream: Upstream::Http(endpoint.clone()),
        limits: Limits::default(),
        waits_for: None,
    };
    let fleet =
        Fleet::start_with(vec![entry], Some(store.clone()), Processes::default(), Eras::default());
    let mut client = Client { fleet, endpoint, store, logins: 0 };
    let played = client.play().await;
    client.fleet.close().await;
    std::fs::remove_dir_all(folder)?;
    played
}

/// Returns what the gateway's file would say of the server.
fn authorization(scenario: &str) -> Outcome<Authorization> {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context)?;
    let text = |key: &str| context[key].as_str().map(str::to_owned);
    let id = text("client_id");
    let metadata_url = if id.is_none() { Some(Url::parse(METADATA)?) } else { None };
    let client = OAuthClient {
        id,
        secret: text("client_secret").map(Secret::new),
        metadata_url,
        ..OAuthClient::default()
    };
    Ok(if scenario.starts_with("auth/client-credentials") {
        Authorization::ClientCredentials(client)
    } else {
        Authorization::Login(client)
    })
}

/// Returns a folder that no other client has.
fn folder() -> Outcome<PathBuf> {
    let folder = std::env::temp_dir().join(format!("toolgate-login-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    Ok(folder)
}

impl Client {
    async fn play(&mut self) -> Outcome<()> {
        self.ready().await?;
        let listing = self.fleet.listing(SERVER).ok_or("no tools were listed")?;
        for tool in &listing.tools {
            let tool: Value = serde_json::from_str(tool.get())?;
            while let Err(error) = self.call(&tool["name"]).await {
                let is_login = matches!(
                    error,
                    RequestError::Unavailable { state: ServerState::NeedsLogin, .. }
                        | RequestError::Server { code: -32003, .. }
                );
                if !is_login {
                    return Err(error.into());
                }
                self.log_in().await?;
                self.ready().await?;
            }
        }
        Ok(())
    }

    async fn call(&self, tool: &Value) -> Result<(), RequestError> {
        let mut params = Map::new();
        params.insert("name".to_owned(), tool.clone());
        params.insert("arguments".to_owned(), Value::Object(Map::new()));
        let method = "tools/call".to_owned();
        let principal = String::new();
        let request = Request {
            method,
            params,
            principal,
            progress: None,
            asker: None,
            requester: None,
            sent: None,
            process: None,
        };
        self.fleet.request(SERVER, request, Instant::now() + PATIENCE).await.map(|_result| ())
    }

    /// Waits until the server has listed its tools, and logs in whenever it asks for it.
    async fn ready(&mut self) -> Outcome<()> {
        let mut changes = self.fleet.changes();
        loop {
            changes.borrow_and_update();
            let status = self.fleet.status();
            let status = status.first().ok_or("the server is gone")?;
            match status.state {
                ServerState::Ready => return Ok(()),
                ServerState::NeedsLogin => {
                    self.log_in().await?;
                }
                ServerState::Starting => {}
                state => return Err(format!("{state:?}: {:?}", status.problem).into()),
            }
            timeout(PATIENCE, changes.changed()).await??;
        }
    }

    async fn log_in(&mut self) -> Outcome<()> {
        if self.logins == LOGINS_MAX {
            return Err("it asks for one login after the other".into());
        }
        self.logins += 1;
        let owner = Owner::operator(SERVER);
        let known = self.store.scopes(&owner, &self.endpoint.url);
        let login = Login::begin(&self.endpoint, REDIRECT, &known).await?;
        let redirected = location(login.url()).await?;
        Ok(login.finish(&redirected, &self.store, &owner).await?)
    }
}

/// Returns where a page of this machine redirects to.
async fn location(url: &Url) -> Outcome<String> {
    let host = url.host_str().ok_or("no host")?;
    let port = url.port_or_known_default().ok_or("no port")?;
    let mut stream = TcpStream::connect((host, port)).await?;
    let target = &url[url::Position::BeforePath..];
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some((name, value)) = line.split_once(": ")
            && name.eq_ignore_ascii_case("location")
        {
            return Ok(value.to_owned());
        }
    }
    Err("the page does not redirect".into())
}
