//! Credentials: the headers that carry them, and the hosts that receive them.

use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::{Code, Status};
use toolgate_client::{Client, ClientOptions, Credentials, Error, TlsOptions};

use crate::fake::Script;
use crate::{connect, options, route};

const SECRET: &str = "hunter2";

fn with(credentials: Credentials) -> ClientOptions {
    ClientOptions { credentials, ..options() }
}

fn sent(script: &Script) -> Vec<Option<String>> {
    script.asked().into_iter().map(|call| call.authorization).collect()
}

#[tokio::test]
async fn a_key_goes_with_each_call_and_into_no_text() {
    let script = Script::default();
    let client = connect(&script, with(Credentials::api_key(SECRET))).await;
    route(&client).await.expect("routed");
    route(&client.with_options(options())).await.expect("routed");
    assert_eq!(sent(&script), vec![Some(format!("Bearer {SECRET}")); 2]);
    let texts = format!("{:?} {:?}", *client, client.options());
    assert!(!texts.contains(SECRET), "{texts}");

    let script = Script::default();
    route(&connect(&script, options()).await.client).await.expect("routed");
    assert_eq!(sent(&script), [None]);
}

#[tokio::test]
async fn a_source_is_asked_before_each_attempt() {
    let script = Script::failing([Status::unavailable("gone")]);
    let asked = AtomicUsize::new(0);
    let source = Credentials::token_source(move || {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        async move { Ok(format!("token-{number}")) }
    });
    route(&connect(&script, with(source)).await.client).await.expect("routed");
    assert_eq!(sent(&script), ["Bearer token-0", "Bearer token-1"].map(|value| Some(value.into())));
}

#[tokio::test]
async fn a_source_that_fails_or_gives_no_token_is_an_error() {
    let script = Script::default();
    let failing = Credentials::token_source(|| async { Err("the vault is sealed".into()) });
    let broken = Credentials::token_source(|| async { Ok(format!("{SECRET}\n")) });
    let slow = Credentials::token_source(std::future::pending);
    for (source, part) in [(failing, "the vault is sealed"), (broken, "white space")] {
        let error =
            route(&connect(&script, with(source)).await.client).await.expect_err("no token");
        assert_eq!(error.code(), Some(Code::Unauthenticated));
        let text = format!("{error} {error:?}");
        assert!(text.contains(part) && !text.contains(SECRET), "{text}");
    }
    let deadline = std::time::Duration::from_millis(20);
    let client = connect(&script, ClientOptions { deadline, ..with(slow) }).await;
    let error = route(&client).await.expect_err("no token");
    assert!(matches!(error, Error::Deadline { .. }), "{error:?}");
    assert!(script.asked().is_empty());
}

#[tokio::test]
async fn credentials_go_unencrypted_to_this_machine_only() {
    let key = || with(Credentials::api_key(SECRET));
    for target in ["127.0.0.1:1", "127.9.9.9:1", "http://localhost:1", "http://[::1]:1"] {
        Client::lazy(target, key()).expect(target);
    }
    for target in ["example.org:1", "http://10.0.0.1:1", "http://localhost.example.org:1"] {
        let error = Client::lazy(target, key()).expect_err(target);
        assert!(matches!(error, Error::Options { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("allow_insecure_credentials") && !text.contains(SECRET), "{text}");
        let allowed = ClientOptions { allow_insecure_credentials: true, ..key() };
        Client::lazy(target, allowed).expect(target);
        Client::lazy(target, options()).expect(target);
    }
}

#[tokio::test]
async fn options_that_cannot_be_are_refused() {
    for credentials in ["", "a b", "a\n", "schlüssel"].map(Credentials::api_key) {
        let error = Client::lazy("127.0.0.1:1", with(credentials)).expect_err("no key");
        assert!(error.to_string().contains("API key"), "{error}");
        assert_eq!(error.code(), None);
    }
    let tls = ClientOptions { tls: Some(TlsOptions::default()), ..options() };
    let error = Client::lazy("127.0.0.1:1", tls).expect_err("not encrypted");
    assert!(error.to_string().contains("https://"), "{error}");
}
