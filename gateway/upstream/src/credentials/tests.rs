//! Credentials against authorization servers that misbehave, which a few lines of HTTP stand for. What a real one does is
//! tested in tests/e2e/test_gateway_credentials.py.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use url::Url;

use super::challenge::Challenge;
use super::client::{AuthClient, Lookup};
use super::discovery::discover;
use super::keys::KeyRing;
use super::store::Stored;
use super::tokens::{Registered, Token};
use super::{
    Authorization, Authorizer, CredentialError, CredentialStore, KeyUse, Login, OAuthClient, Owner,
    Requester, Secret,
};
use crate::target::{Endpoint, Upstream};

const REDIRECT: &str = "http://127.0.0.1:9/callback";

/// Authorization server whose answers a test sets.
#[derive(Clone, Default)]
struct TestServer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    url: Mutex<String>,
    /// Status line and body by path.
    answers: Mutex<HashMap<String, (String, String)>>,
    /// Path and body of each request.
    seen: Mutex<Vec<(String, String)>>,
    /// Holds back the answers to token requests until it is told.
    held: Mutex<Option<Arc<Notify>>>,
}

impl TestServer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let server = Self::default();
        *server.0.url.lock() = format!("http://{}", listener.local_addr().expect("an address"));
        let running = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(running.clone().answer(stream));
            }
        });
        server.set("/.well-known/oauth-authorization-server", "200 OK", &server.metadata());
        server
    }

    fn url(&self) -> String {
        self.0.url.lock().clone()
    }

    fn metadata(&self) -> Value {
        let url = self.url();
        json!({
            "issuer": url,
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
            "registration_endpoint": format!("{url}/register"),
            "code_challenge_methods_supported": ["S256"],
        })
    }

    fn set(&self, path: &str, status: &str, body: &Value) {
        let answer = (status.to_owned(), body.to_string());
        self.0.answers.lock().insert(path.to_owned(), answer);
    }

    fn set_metadata(&self, key: &str, value: Value) {
        let mut metadata = self.metadata();
        metadata[key] = value;
        self.set("/.well-known/oauth-authorization-server", "200 OK", &metadata);
    }

    fn bodies(&self, path: &str) -> Vec<String> {
        let seen = self.0.seen.lock();
        seen.iter().filter(|(at, _)| at == path).map(|(_, body)| body.clone()).collect()
    }

    async fn answer(self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let lower = head.to_lowercase();
        let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
        stream.read_exact(&mut body).await.expect("a body");
        let body = String::from_utf8(body).expect("text");
        self.0.seen.lock().push((path.clone(), body.clone()));
        let held = self.0.held.lock().clone().filter(|_| path == "/token");
        if let Some(held) = held {
            held.notified().await;
        }
        let by_method = |method: &str| body.contains(&format!("\"method\":\"{method}\""));
        let list = by_method("tools/list").then(|| format!("{path}#tools/list"));
        let answer = self.0.answers.lock().get(&list.unwrap_or(path)).cloned();
        let (status, body) = answer.unwrap_or(("404 Not Found".to_owned(), String::new()));
        let length = body.len();
        let reply = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        let _left = stream.write_all(reply.as_bytes()).await;
    }

    fn endpoint(&self) -> Endpoint {
        endpoint(&format!("{}/mcp", self.url()))
    }
}

fn endpoint(url: &str) -> Endpoint {
    let Ok(Upstream::Http(mut endpoint)) = Upstream::parse(url) else { panic!("a URL") };
    endpoint.authorization = Authorization::Login(OAuthClient::default());
    endpoint
}

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

fn owner() -> Owner {
    Owner::operator("s")
}

fn store(folder: &TempDir) -> CredentialStore {
    CredentialStore::open(folder.path(), None).expect("a store")
}

fn stored(server: &TestServer) -> Stored {
    Stored {
        server: format!("{}/mcp", server.url()),
        issuer: server.url(),
        resource: format!("{}/mcp", server.url()),
        scopes: vec!["a".to_owned()],
        client: Registered { id: "registered".to_owned(), secret: None, method: None },
        token: Token {
            access: Secret::new("old-access".to_owned()),
            refresh: Some(Secret::new("old-refresh".to_owned())),
            renew_at: None,
        },
    }
}

fn authorizer(server: &TestServer, store: &CredentialStore) -> Arc<Authorizer> {
    Authorizer::new(&server.endpoint(), "s", Some(store))
        .expect("a client for HTTP")
        .expect("an authorizer")
}

fn new_token() -> Value {
    json!({"access_token": "new-access", "token_type": "bearer", "refresh_token": "new-refresh"})
}

async fn get(server: &str, place: &str) -> Result<Option<Value>, CredentialError> {
    AuthClient::new(&url(server), &[]).expect("a client").document(&url(place)).await
}

async fn begin(server: &TestServer) -> Result<Login, CredentialError> {
    server.set("/register", "201 Created", &json!({"client_id": "registered"}));
    Login::begin(&server.endpoint(), REDIRECT, &[]).await
}

/// Returns the redirect that a login waits for, with more parameters.
fn redirect(login: &Login, more: &str) -> String {
    let state = login.url().query_pairs().find(|(name, _)| name == "state").expect("a state").1;
    format!("{REDIRECT}?state={state}{more}")
}

#[tokio::test]
async fn an_answer_leads_to_no_private_network_and_to_nothing_in_the_clear() {
    for place in [
        "http://auth.example/x",
        "https://10.0.0.1/x",
        "https://192.168.1.1:8443/x",
        "https://169.254.169.254/latest/meta-data",
        "https://[fd00:ec2::254]/x",
        "https://[::ffff:10.0.0.1]/x",
        "https://127.0.0.1/x",
        "https://2130706433/x",
        "https://localhost/x",
        "http://localhost/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://me:secret@auth.example/x",
    ] {
        let error =
            get("https://tools.example/mcp", place).await.expect_err("an error").to_string();
        assert!(error.contains("refused") || error.contains("private"), "{place}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    // A server on this machine may have its authorization server here, and nowhere else in private.
    for place in ["https://10.0.0.1/x", "https://169.254.169.254/x"] {
        let error = get("http://127.0.0.1:9/mcp", place).await.expect_err("an error").to_string();
        assert!(error.contains("private"), "{place}: {error}");
    }
}

#[tokio::test]
async fn a_name_is_refused_when_it_resolves_to_a_private_address() {
    let asked = async |lookup: Lookup, place: &str| {
        let client = AuthClient::with_lookup(&url("https://tools.example/mcp"), &[], lookup);
        let answer = client.expect("a client").document::<Value>(&url(place)).await;
        answer.expect_err("an error").to_string()
    };
    let private = asked(
        |_| Box::pin(async { Ok(vec!["10.1.2.3:0".parse().expect("an address")]) }),
        "https://a.example/",
    );
    assert!(private.await.contains("a.example is in a private network"));
    let mixed = asked(
        |_| {
            Box::pin(async {
                Ok(vec![
                    "1.1.1.1:0".parse().expect("an address"),
                    "169.254.169.254:0".parse().expect("an address"),
                ])
            })
        },
        "https://a.example/",
    );
    assert!(mixed.await.contains("private network"));
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_reached() {
    let server = TestServer::start().await;
    server.set("/x", "200 OK", &json!({"a": 1}));
    let port = url(&server.url()).port().expect("a port");
    let lookup = |name: String| -> futures_util::future::BoxFuture<'static, _> {
        assert_eq!(name, "as.localhost");
        Box::pin(async { Ok(vec!["127.0.0.1:0".parse().expect("an address")]) })
    };
    let client =
        AuthClient::with_lookup(&url("http://127.0.0.1:9/mcp"), &[], lookup).expect("a client");
    let place = url(&format!("http://as.localhost:{port}/x"));
    let document: Option<Value> = client.document(&place).await.expect("an answer");
    assert_eq!(document, Some(json!({"a": 1})));
}

#[tokio::test]
async fn redirects_are_not_followed_and_long_answers_not_read() {
    let server = TestServer::start().await;
    let place = format!("{}/x", server.url());
    server.set("/x", "302 Found\r\nlocation: /y", &Value::Null);
    server.set("/y", "200 OK", &json!({}));
    let error = get(&server.url(), &place).await.expect_err("an error").to_string();
    assert!(error.contains("redirect"), "{error}");
    assert!(server.bodies("/y").is_empty());
    server.set("/x", "200 OK", &json!("x".repeat(1 << 20)));
    let error = get(&server.url(), &place).await.expect_err("an error").to_string();
    assert!(error.contains("more than"), "{error}");
}

#[tokio::test]
async fn an_authorization_server_is_the_one_that_it_says_it_is() {
    let server = TestServer::start().await;
    server.set_metadata("issuer", json!("https://evil.example"));
    let error = begin(&server).await.expect_err("an error").to_string();
    assert!(error.contains("evil.example") && error.contains("is not"), "{error}");
    server.set_metadata("issuer", json!(server.url()));
    begin(&server).await.expect("a login");
}

#[tokio::test]
async fn a_resource_is_described_by_itself() {
    let server = TestServer::start().await;
    let at = "/.well-known/oauth-protected-resource/mcp";
    let described = |resource: &str, issuer: &str| {
        server.set(
            at,
            "200 OK",
            &json!({"resource": resource, "authorization_servers": [issuer], "scopes_supported": ["a"]}),
        );
    };
    described("https://other.example/mcp", &server.url());
    let error = begin(&server).await.expect_err("an error").to_string();
    assert!(error.contains("other.example"), "{error}");
    described(&format!("{}/mcp", server.url()), "https://169.254.169.254");
    let error = begin(&server).await.expect_err("an error").to_string();
    assert!(error.contains("private"), "{error}");
    described(&format!("{}/mcp", server.url()), &server.url());
    let login = begin(&server).await.expect("a login");
    let asked: HashMap<_, _> = login.url().query_pairs().into_owned().collect();
    assert_eq!(asked["resource"], format!("{}/mcp", server.url()));
    assert_eq!(asked["scope"], "a");
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["code_challenge"].len(), 43);
}

#[tokio::test]
async fn the_operators_issuer_goes_before_the_servers() {
    let server = TestServer::start().await;
    let other = TestServer::start().await;
    let at = "/.well-known/oauth-protected-resource/mcp";
    server.set(at, "200 OK", &json!({"authorization_servers": ["https://evil.example"]}));
    let settings = OAuthClient { issuer: Some(other.url()), ..OAuthClient::default() };
    let client = AuthClient::new(&url(&server.url()), &[url(&other.url())]).expect("a client");
    let place = url(&format!("{}/mcp", server.url()));
    let found = discover(&client, &place, &settings, &Challenge::default())
        .await
        .expect("an authorization server");
    assert_eq!(found.server.issuer, other.url());
}

#[tokio::test]
async fn a_login_needs_pkce_and_a_page_of_the_web() {
    let server = TestServer::start().await;
    for (key, value, told) in [
        ("code_challenge_methods_supported", json!(["plain"]), "PKCE"),
        ("code_challenge_methods_supported", json!([]), "PKCE"),
        ("authorization_endpoint", json!("file:///bin/sh"), "refused"),
        ("authorization_endpoint", json!("http://auth.example/"), "refused"),
        ("authorization_endpoint", Value::Null, "no page"),
        ("registration_endpoint", Value::Null, "client_id"),
        ("registration_endpoint", json!("https://10.0.0.1/register"), "private"),
    ] {
        server.set_metadata(key, value.clone());
        let error = begin(&server).await.expect_err("an error").to_string();
        assert!(error.contains(told), "{key}={value}: {error}");
    }
}

#[tokio::test]
async fn a_redirect_is_taken_once_of_this_login_and_of_its_issuer() {
    let server = TestServer::start().await;
    let folder = TempDir::new().expect("a folder");
    let store = store(&folder);
    server.set("/token", "200 OK", &new_token());
    let login = begin(&server).await.expect("a login that began");
    assert!(!login.owns(&format!("{REDIRECT}?state=x&code=c")) && !login.owns("nothing"));
    let foreign = format!("{REDIRECT}?state=x&code=c");
    let error = login.finish(&foreign, &store, &owner()).await.expect_err("an error").to_string();
    assert!(error.contains("another login"), "{error}");
    let login = begin(&server).await.expect("a login that began");
    let mixed_up = redirect(&login, "&code=c&iss=https://evil.example");
    assert!(login.owns(&mixed_up));
    let error = login.finish(&mixed_up, &store, &owner()).await.expect_err("an error").to_string();
    assert!(error.contains("does not come from"), "{error}");
    let login = begin(&server).await.expect("a login that began");
    let normalized = redirect(&login, &format!("&code=c&iss={}/", server.url()));
    assert!(login.finish(&normalized, &store, &owner()).await.is_err(), "one slash more");
    let login = begin(&server).await.expect("a login that began");
    let refused = redirect(&login, "&error=access_denied");
    let error = login.finish(&refused, &store, &owner()).await.expect_err("an error").to_string();
    assert!(error.contains("access_denied"), "{error}");
    server.set_metadata("authorization_response_iss_parameter_supported", json!(true));
    let login = begin(&server).await.expect("a login that began");
    let bare = redirect(&login, "&code=c");
    assert!(login.finish(&bare, &store, &owner()).await.is_err(), "`iss` was promised");
    assert!(server.bodies("/token").is_empty(), "no code was sent");
    let login = begin(&server).await.expect("a login that began");
    let right = redirect(&login, &format!("&code=c&iss={}", server.url()));
    login.finish(&right, &store, &owner()).await.expect("a token");
    let sent = server.bodies("/token").remove(0);
    assert!(sent.contains("code_verifier=") && sent.contains("resource="), "{sent}");
    assert_eq!(
        store
            .load(&owner())
            .expect("a store that can be read")
            .expect("a credential")
            .token
            .access
            .reveal(),
        "new-access"
    );
}

#[tokio::test]
async fn a_refusal_that_repeats_a_token_is_not_repeated() {
    let server = TestServer::start().await;
    let folder = TempDir::new().expect("a folder");
    let store = store(&folder);
    store.save(&owner(), &stored(&server)).expect("a credential that is kept");
    let echo = json!({"error": "OLD-REFRESH old-refresh", "error_description": "old-refresh"});
    for (status, body) in [
        ("400 Bad Request", echo),
        ("500 Internal Server Error", json!("old-refresh")),
        ("200 OK", json!({"access_token": "new-access", "token_type": 3})),
        ("200 OK", json!({"access_token": "new-access", "token_type": "mac"})),
        ("200 OK", json!({"access_token": "new-access\n", "token_type": "bearer"})),
    ] {
        server.set("/token", status, &body);
        let authorizer = authorizer(&server, &store);
        let token = authorizer.token().await.expect("a source of tokens");
        let error = authorizer.renewed(token, "").await.expect_err("an error");
        let shown = format!("{error} {error:?} {authorizer:?} {store:?}");
        for secret in ["OLD-REFRESH", "old-access", "new-access", "old-refresh old"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(!shown.contains("old-refresh") || shown.contains("refuses: old"), "{shown}");
    }
}

#[tokio::test]
async fn many_that_are_refused_renew_the_token_once() {
    let server = TestServer::start().await;
    let folder = TempDir::new().expect("a folder");
    let store = store(&folder);
    store.save(&owner(), &stored(&server)).expect("a credential that is kept");
    server.set("/token", "200 OK", &new_token());
    let authorizer = authorizer(&server, &store);
    let renewals = (0..32).map(|_| async {
        let token = authorizer.token().await.expect("a source of tokens");
        authorizer
            .renewed(Some(Secret::new("old-access".to_owned())), "")
            .await
            .expect("a new token");
        token
    });
    join_all(renewals).await;
    let sent = server.bodies("/token");
    assert_eq!(sent.len(), 1);
    assert!(sent[0].contains("refresh_token=old-refresh") && sent[0].contains("resource="));
    let kept = store.load(&owner()).expect("a store that can be read").expect("a credential");
    assert_eq!(kept.token.refresh.expect("a refresh token").reveal(), "new-refresh");
    // Another process with the same store uses what the first has got.
    let second = Authorizer::new(&server.endpoint(), "s", Some(&store))
        .expect("a client for HTTP")
        .expect("an authorizer");
    let old = Some(Secret::new("old-access".to_owned()));
    assert_eq!(second.renewed(old, "").await.expect("a new token").reveal(), "new-access");
    assert_eq!(server.bodies("/token").len(), 1);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let server = TestServer::start().await;
    let folder = TempDir::new().expect("a folder");
    let store = store(&folder);
    let mut short = stored(&server);
    short.token.renew_at = Some(1);
    store.save(&owner(), &short).expect("a credential that is kept");
    let mut lasting = new_token();
    lasting["expires_in"] = json!(3600);
    lasting.as_object_mut().expect("an object").remove("refresh_token");
    server.set("/token", "200 OK", &lasting);
    let authorizer = authorizer(&server, &store);
    for _ in 0..3 {
        assert_eq!(
            authorizer.token().await.expect("a source of tokens").expect("a token").reveal(),
            "new-access"
        );
    }
    assert_eq!(server.bodies("/token").len(), 1);
    let kept = store.load(&owner()).expect("a store that can be read").expect("a credential").token;
    assert_eq!(
        kept.refresh.expect("a refresh token").reveal(),
        "old-refresh",
        "none came, so the old one is good"
    );
}

#[tokio::test]
async fn a_caller_that_leaves_loses_no_refresh_token() {
    let server = TestServer::start().await;
    let folder = TempDir::new().expect("a folder");
    let store = store(&folder);
    store.save(&owner(), &stored(&server)).expect("a credential that is kept");
    server.set("/token", "200 OK", &new_token());
    let held = Arc::new(Notify::new());
    *server.0.held.lock() = Some(Arc::clone(&held));
    let authorizer = authorizer(&server, &store);
    let leaving = Arc::clone(&authorizer);
    let caller = tokio::spawn(async move { leaving.renewed(leaving.token().await?, "").await });
    while server.bodies("/token").is_empty() {
        tokio::task::yield_now().await;
    }
    caller.abort();
    assert!(caller.await.expect_err("a task that was cancelled").is_cancelled());
    held.notify_one();
    let old = Some(Secret::new("old-access".to_owned()));
    assert_eq!(authorizer.renewed(old, "").await.expect("a new token").reveal(), "new-access");
    assert_eq!(server.bodies("/token").len(), 1);
}

#[tokio::test]
async fn a_refresh_token_that_is_not_good_any_more_ends_the_login() {
    for code in ["invalid_grant", "invalid_client"] {
        let server = TestServer::start().await;
        let folder = TempDir::new().expect("a folder");
        let store = store(&folder);
        store.save(&owner(), &stored(&server)).expect("a credential that is kept");
        server.set("/token", "400 Bad Request", &json!({"error": code}));
        let authorizer = authorizer(&server, &store);
        let token = authorizer.token().await.expect("a source of tokens");
        let error = authorizer.renewed(token, "").await.expect_err("an error");
        assert!(matches!(error, CredentialError::Login(_)), "{error}");
        assert!(store.load(&owner()).expect("a store that can be read").is_none());
        assert_eq!(authorizer.token().await.expect("a source of tokens"), None);
        // A new login is noticed.
        let waiting = Arc::clone(&authorizer);
        let noticed = tokio::spawn(async move { waiting.until_changed().await });
        store.save(&owner(), &stored(&server)).expect("a credential that is kept");
        noticed.await.expect("a task that ends");
        assert_eq!(
            authorizer.token().await.expect("a source of tokens").expect("a token").reveal(),
            "old-access"
        );
    }
}

#[tokio::test]
async fn a_token_goes_to_the_server_and_a_refresh_token_to_the_issuer_that_it_is_of() {
    let server = TestServer::start().await;
    let folder = TempDir::new().expect("a folder");
    let store = store(&folder);
    store.save(&owner(), &stored(&server)).expect("a credential that is kept");
    let moved = endpoint("https://evil.example/mcp");
    let authorizer = Authorizer::new(&moved, "s", Some(&store))
        .expect("a client for HTTP")
        .expect("an authorizer");
    assert_eq!(authorizer.token().await.expect("a source of tokens"), None);
    let mut other_issuer = server.endpoint();
    let settings = OAuthClient { issuer: Some("https://b.example".into()), ..Default::default() };
    other_issuer.authorization = Authorization::Login(settings);
    let authorizer = Authorizer::new(&other_issuer, "s", Some(&store))
        .expect("a client for HTTP")
        .expect("an authorizer");
    assert_eq!(authorizer.token().await.expect("a source of tokens"), None);
    // Whatever the server's challenge and metadata name now, the stored issuer is asked.
    let evil = TestServer::start().await;
    evil.set("/token", "200 OK", &new_token());
    let at = "/.well-known/oauth-protected-resource/mcp";
    server.set(at, "200 OK", &json!({"authorization_servers": [evil.url()]}));
    server.set("/token", "200 OK", &new_token());
    let authorizer = self::authorizer(&server, &store);
    let token = authorizer.token().await.expect("a source of tokens");
    let challenge = format!("Bearer resource_metadata=\"{}/x\"", evil.url());
    authorizer.renewed(token, &challenge).await.expect("a new token");
    assert!(evil.0.seen.lock().is_empty());
    assert_eq!(server.bodies("/token").len(), 1);
}

#[tokio::test]
async fn scopes_that_a_server_asks_for_are_those_of_the_next_login() {
    let server = TestServer::start().await;
    let folder = TempDir::new().expect("a folder");
    let store = store(&folder);
    store.save(&owner(), &stored(&server)).expect("a credential that is kept");
    let authorizer = authorizer(&server, &store);
    let token = authorizer.token().await.expect("a source of tokens");
    let challenge = Challenge::parse("Bearer error=\"insufficient_scope\", scope=\"a b\"");
    assert!(challenge.lacks_scopes);
    let told = authorizer.lacks(&challenge).await.expect("advice");
    assert!(told.contains("login s") && told.contains("(a b)"), "{told}");
    assert_eq!(
        authorizer.token().await.expect("a source of tokens"),
        token,
        "it is good for the rest"
    );
    let endpoint = server.endpoint();
    let known = store.scopes(&owner(), &endpoint.url);
    assert_eq!(known, ["a", "b"]);
    assert!(store.scopes(&owner(), &url("https://evil.example/mcp")).is_empty());
    server.set("/register", "201 Created", &json!({"client_id": "registered"}));
    let login = Login::begin(&endpoint, REDIRECT, &known).await.expect("a login that began");
    assert!(login.url().query_pairs().any(|(name, value)| name == "scope" && value == "a b"));
}

#[tokio::test]
async fn the_scopes_of_a_challenge_are_asked_for_even_if_the_handshake_is_open_to_all() {
    let server = TestServer::start().await;
    let challenge = "401 Unauthorized\r\nwww-authenticate: Bearer scope=\"x y\"";
    server.set("/mcp", "200 OK", &json!({}));
    server.set("/mcp#tools/list", challenge, &Value::Null);
    let login = begin(&server).await.expect("a login that began");
    assert!(login.url().query_pairs().any(|(name, value)| name == "scope" && value == "x y"));
}

#[tokio::test]
async fn client_credentials_are_got_on_a_refusal_and_kept() {
    let server = TestServer::start().await;
    let mut endpoint = server.endpoint();
    endpoint.authorization = Authorization::ClientCredentials(OAuthClient {
        id: Some("me".to_owned()),
        secret: Some(Secret::new("hunter2".to_owned())),
        ..OAuthClient::default()
    });
    server.set("/token", "200 OK", &new_token());
    let authorizer =
        Authorizer::new(&endpoint, "s", None).expect("a client for HTTP").expect("an authorizer");
    assert_eq!(authorizer.token().await.expect("a source of tokens"), None);
    let token = authorizer.renewed(None, "Bearer scope=\"a b\"").await.expect("a new token");
    assert_eq!(authorizer.token().await.expect("a source of tokens"), Some(token));
    let sent = server.bodies("/token");
    assert_eq!(sent.len(), 1);
    assert!(sent[0].contains("grant_type=client_credentials&scope=a+b&resource="), "{}", sent[0]);
    server.set("/token", "401 Unauthorized", &json!({"error": "invalid_client"}));
    let old = authorizer.token().await.expect("a source of tokens");
    let error = authorizer.renewed(old, "").await.expect_err("an error");
    assert!(matches!(error, CredentialError::Unavailable(_)), "{error}");
    assert!(!format!("{error} {authorizer:?}").contains("hunter2"));
}

fn credential(server: &str) -> Stored {
    Stored {
        server: server.to_owned(),
        issuer: "https://issuer.example".to_owned(),
        resource: server.to_owned(),
        scopes: Vec::new(),
        client: Registered { id: "id".to_owned(), secret: None, method: None },
        token: Token {
            access: Secret::new("plain-token".to_owned()),
            refresh: None,
            renew_at: None,
        },
    }
}

#[test]
fn stored_credentials_are_unreadable_private_and_bound_to_their_owner() {
    let folder = TempDir::new().expect("a folder");
    let kept = store(&folder);
    let credential = credential("https://x/mcp");
    let [one, other] = ["one", "other"].map(|principal| Owner {
        tenant: "t".to_owned(),
        principal: principal.to_owned(),
        server: "s".to_owned(),
    });
    kept.save(&one, &credential).expect("a credential that is kept");
    assert!(kept.load(&other).expect("a store that can be read").is_none());
    let files: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|file| file.expect("a file"))
        .collect();
    assert_eq!(files.len(), 3, "the key, its lock and one credential, no draft");
    for file in &files {
        let bytes = std::fs::read(file.path()).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("plain-token") && !text.contains("issuer.example"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = file.metadata().expect("metadata").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file:?}");
        }
    }
    // A file under another's name is not another's credential.
    let is_credential = |path: &std::path::Path| {
        !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("key"))
    };
    let mine = files.iter().map(std::fs::DirEntry::path).find(|path| is_credential(path));
    let mine = mine.expect("a file");
    kept.save(&other, &credential).expect("a credential that is kept");
    let theirs = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|file| file.expect("a file").path());
    let theirs = theirs.filter(|path| *path != mine && is_credential(path));
    for path in theirs {
        std::fs::copy(&mine, path).expect("a copy");
    }
    let foreign = kept.load(&other).expect_err("an error").to_string();
    assert!(foreign.contains("log in again"), "{foreign}");
    // The key of the folder is found again; another key opens nothing.
    assert!(store(&folder).load(&one).expect("a store that can be read").is_some());
    let key = Secret::new("ab".repeat(32));
    let closed = CredentialStore::open(folder.path(), Some(&key)).expect("a store");
    assert!(closed.load(&one).is_err());
    assert!(CredentialStore::open(folder.path(), Some(&Secret::new("short".into()))).is_err());
    std::fs::write(&mine, b"TGCRED1\n").expect("a file");
    assert!(kept.load(&one).is_err());
    assert!(
        kept.remove(&one).expect("a store that can be written")
            && !kept.remove(&one).expect("a store that can be written")
    );
}

#[test]
fn keys_of_before_open_and_the_first_seals() {
    let folder = TempDir::new().expect("a folder");
    let open = |keys: &[&str]| {
        let lines: Vec<String> = keys.iter().map(|key| key.repeat(32)).collect();
        let keys = Secret::new(lines.join("\n"));
        CredentialStore::open(folder.path(), Some(&keys)).expect("a store")
    };
    let credential = credential("https://x/mcp");
    open(&["aa"]).save(&owner(), &credential).expect("a credential that is kept");
    let both = open(&["bb", "aa"]);
    assert!(both.load(&owner()).expect("a store that can be read").is_some());
    assert!(open(&["bb"]).load(&owner()).is_err());
    both.save(&owner(), &credential).expect("a credential that is kept");
    assert!(open(&["bb"]).load(&owner()).expect("a store that can be read").is_some());
    assert!(open(&["aa"]).load(&owner()).is_err());
    let odd = Secret::new(format!("{}\nshort", "aa".repeat(32)));
    assert!(CredentialStore::open(folder.path(), Some(&odd)).is_err());
}

fn owners() -> [Owner; 2] {
    let of_ann =
        Owner { tenant: "acme".to_owned(), principal: "ann".to_owned(), server: "s".to_owned() };
    [owner(), of_ann]
}

#[test]
fn what_older_keys_sealed_comes_to_the_first_whoever_owns_it() {
    let folder = TempDir::new().expect("a folder");
    let open = |keys: &[&str]| {
        let lines: Vec<String> = keys.iter().map(|key| key.repeat(32)).collect();
        let keys = Secret::new(lines.join("\n"));
        CredentialStore::open(folder.path(), Some(&keys)).expect("a store")
    };
    for owner in owners() {
        open(&["aa"]).save(&owner, &credential("https://x/mcp")).expect("a kept credential");
    }
    let uses =
        |sealing: &[KeyUse]| -> Vec<usize> { sealing.iter().map(|key| key.credentials).collect() };
    let both = open(&["bb", "aa"]);
    assert_eq!(uses(&both.sealing().expect("a store that can be read").keys), [0, 2]);
    assert_eq!(both.reseal().expect("a store that can be written"), 2);
    assert_eq!(uses(&both.sealing().expect("a store that can be read").keys), [2, 0]);
    assert_eq!(both.reseal().expect("a store that can be written"), 0);
    for owner in owners() {
        let loaded = open(&["bb"]).load(&owner).expect("a store that can be read");
        assert_eq!(loaded.expect("a credential").server, "https://x/mcp");
    }
    // The missing key has a name, which is no part of it.
    let without = open(&["aa"]);
    let sealing = without.sealing().expect("a store that can be read");
    assert_eq!((uses(&sealing.keys), uses(&sealing.missing)), (vec![0], vec![2]));
    let told = without.load(&owner()).expect_err("an error").to_string();
    for id in [sealing.missing[0].id, sealing.keys[0].id] {
        assert!(told.contains(&id.to_string()), "{told}");
    }
    assert!(!told.contains("bbbb") && !told.contains("aaaa"), "{told}");
    assert_eq!(without.reseal().expect("a store that can be read"), 0, "it can't be opened");
}

#[tokio::test]
async fn what_another_process_renews_is_left_to_it() {
    let folder = TempDir::new().expect("a folder");
    let kept = store(&folder);
    for owner in owners() {
        kept.save(&owner, &credential("https://x/mcp")).expect("a kept credential");
    }
    let lock = kept.lock(&owner()).await.expect("a lock");
    assert_eq!(kept.rotate().expect("a store that can be written"), 1);
    let uses = |store: &CredentialStore| -> Vec<usize> {
        let keys = store.sealing().expect("a store that can be read").keys;
        keys.iter().map(|key| key.credentials).collect()
    };
    assert_eq!(uses(&kept), [1, 1], "its key stays");
    drop(lock);
    assert_eq!(kept.rotate().expect("a store that can be written"), 2);
    assert_eq!(uses(&kept), [2], "nothing needs the keys of before");
}

#[test]
fn a_new_key_is_taken_by_everybody_who_has_the_store_open() {
    let folder = TempDir::new().expect("a folder");
    let [ours, theirs] = [store(&folder), store(&folder)];
    let [one, other] = owners();
    ours.save(&one, &credential("https://x/mcp")).expect("a kept credential");
    assert_eq!(theirs.rotate().expect("a store that can be written"), 1);
    assert!(ours.load(&one).expect("a store that can be read").is_some());
    ours.save(&other, &credential("https://x/mcp")).expect("a kept credential");
    let sealing = theirs.sealing().expect("a store that can be read");
    assert_eq!((sealing.keys.len(), sealing.keys[0].credentials), (1, 2));
    let key = Secret::new("ab".repeat(32));
    let named = CredentialStore::open(folder.path(), Some(&key)).expect("a store");
    assert!(named.rotate().is_err(), "the operator's keys are the operator's");
}

#[test]
fn what_an_earlier_version_sealed_is_read_and_counted() {
    let folder = TempDir::new().expect("a folder");
    let kept = store(&folder);
    kept.save(&owner(), &credential("https://x/mcp")).expect("a kept credential");
    let key = std::fs::read_to_string(folder.path().join("key")).expect("a key");
    let keys = KeyRing::parse(&key).expect("keys");
    let text = serde_json::to_vec(&credential("https://y/mcp")).expect("JSON");
    let sealed = keys.sealed(&owner().bytes(), text).expect("a sealed text");
    let path = kept.files().expect("a folder").pop().expect("a file");
    std::fs::write(&path, [b"TGCRED1\n", &sealed[..]].concat()).expect("a file");
    let loaded = kept.load(&owner()).expect("a store that can be read").expect("a credential");
    assert_eq!(loaded.server, "https://y/mcp");
    assert_eq!(kept.sealing().expect("a store that can be read").unnamed, 1);
    kept.rotate().expect("a store that can be written");
    assert!(kept.load(&owner()).expect("a store that can be read").is_some(), "its key stays");
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().expect("a folder");
    let _made = store(&folder);
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(folder.path().join("key"), open).expect("permissions");
    let error = CredentialStore::open(folder.path(), None).expect_err("an error").to_string();
    assert!(error.contains("chmod 600"), "{error}");
}

fn requester(principal: &str, token: &str) -> Requester {
    let token = Some(Secret::new(token.to_owned()));
    Requester { tenant: "acme".into(), principal: principal.into(), token }
}

fn of_principal(
    endpoint: &Endpoint,
    store: Option<&CredentialStore>,
    requester: &Requester,
) -> Result<Arc<Authorizer>, CredentialError> {
    Authorizer::of_principal(endpoint, "s", store, requester)
}

#[tokio::test]
async fn an_expired_token_of_a_principal_is_refreshed_once_for_all_its_calls() {
    let server = TestServer::start().await;
    let folder = TempDir::new().expect("a folder");
    let store = store(&folder);
    let mut endpoint = server.endpoint();
    endpoint.authorization = Authorization::PerPrincipal(OAuthClient::default());
    for name in ["ann", "bob"] {
        let mut expired = stored(&server);
        expired.token.renew_at = Some(0);
        expired.token.refresh = Some(Secret::new(format!("refresh-of-{name}")));
        let owner = requester(name, "t").owner("s");
        store.save(&owner, &expired).expect("a credential that is kept");
    }
    let of = |name| of_principal(&endpoint, Some(&store), &requester(name, "t"));
    let [ann, bob] = ["ann", "bob"].map(|name| of(name).expect("an authorizer"));
    server.set("/token", "200 OK", &new_token());
    let calls = (0..40).map(|number| if number % 2 == 0 { ann.token() } else { bob.token() });
    for token in futures_util::future::join_all(calls).await {
        let token = token.expect("a source of tokens").expect("a token");
        assert_eq!(token.reveal(), "new-access");
    }
    let asked = server.bodies("/token");
    assert_eq!(asked.len(), 2, "{asked:?}");
    for name in ["ann", "bob"] {
        let of_one = asked.iter().filter(|body| body.contains(&format!("refresh-of-{name}")));
        assert_eq!(of_one.count(), 1);
    }
}

#[tokio::test]
async fn a_principal_has_its_own_credential_or_none() {
    let server = TestServer::start().await;
    let folder = TempDir::new().expect("a folder");
    let store = store(&folder);
    let mut endpoint = server.endpoint();
    endpoint.authorization = Authorization::PerPrincipal(OAuthClient::default());
    let ann = requester("ann", "x");
    let bob = requester("bob", "x");
    let other = Requester { tenant: "umbrella".into(), ..ann.clone() };
    store.save(&owner(), &stored(&server)).expect("a credential that is kept");
    let mut hers = stored(&server);
    hers.token.access = Secret::new("anns".to_owned());
    store.save(&ann.owner("s"), &hers).expect("a credential that is kept");
    let token = async |requester: &Requester| {
        let authorizer = of_principal(&endpoint, Some(&store), requester).expect("an authorizer");
        authorizer.token().await.expect("a source of tokens").map(|token| token.reveal().to_owned())
    };
    assert_eq!(token(&ann).await.as_deref(), Some("anns"));
    assert_eq!(token(&bob).await, None);
    assert_eq!(token(&other).await, None);
    assert!(of_principal(&endpoint, None, &ann).is_err(), "there is no store");
    assert_ne!(ann.key(false), bob.key(false));
    assert_ne!(ann.key(false), other.key(false));
    // The operator's is for what the server lists.
    let shared = Authorizer::new(&endpoint, "s", Some(&store))
        .expect("a client for HTTP")
        .expect("an authorizer");
    assert_eq!(
        shared.token().await.expect("a source of tokens").expect("a token").reveal(),
        "old-access"
    );
}

#[tokio::test]
async fn a_callers_token_is_exchanged_once_and_goes_to_the_operators_issuer_alone() {
    let issuer = TestServer::start().await;
    let server = TestServer::start().await;
    // The server would have the token sent to itself.
    let told = json!({"resource": format!("{}/mcp", server.url()), "authorization_servers": [server.url()]});
    server.set("/.well-known/oauth-protected-resource/mcp", "200 OK", &told);
    let mut endpoint = server.endpoint();
    endpoint.authorization = Authorization::Exchange(OAuthClient {
        id: Some("gateway".to_owned()),
        secret: Some(Secret::new("secret".to_owned())),
        issuer: Some(issuer.url()),
        audience: Some("tools".to_owned()),
        ..OAuthClient::default()
    });
    let answer =
        |access: &str| json!({"access_token": access, "token_type": "bearer", "expires_in": 600});
    issuer.set("/token", "200 OK", &answer("exchanged"));
    let authorizer =
        of_principal(&endpoint, None, &requester("ann", "hers")).expect("an authorizer");
    let tokens = join_all((0..8).map(|_| authorizer.token())).await;
    for token in tokens {
        assert_eq!(token.expect("a source of tokens").expect("a token").reveal(), "exchanged");
    }
    let sent = issuer.bodies("/token");
    assert_eq!(sent.len(), 1);
    for part in ["grant-type%3Atoken-exchange", "subject_token=hers", "audience=tools", "resource="]
    {
        assert!(sent[0].contains(part), "{}", sent[0]);
    }
    assert!(server.0.seen.lock().iter().all(|(_, body)| !body.contains("hers")));
    // Another token of the same principal may be good for less.
    assert_ne!(requester("ann", "hers").key(true), requester("ann", "other").key(true));
    // The caller's own token in the answer is none.
    issuer.set("/token", "200 OK", &answer("hers"));
    let authorizer =
        of_principal(&endpoint, None, &requester("ann", "hers")).expect("an authorizer");
    let error = authorizer.token().await.expect_err("an error").to_string();
    assert!(error.contains("the caller's own token"), "{error}");
    assert!(authorizer.token().await.is_err(), "it was kept");
    let without = Requester { token: None, ..requester("ann", "") };
    assert!(of_principal(&endpoint, None, &without).is_err());
}
