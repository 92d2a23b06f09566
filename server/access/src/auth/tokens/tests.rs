//! Tests that tokens are verified once, and again when the issuer's keys change.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::Authenticator;
use super::super::failures::Failures;
use super::super::jwks_source::JwksOrigin;
use super::*;

const NOW_MS: i64 = 1_800_000_000_000;

fn pair() -> Ed25519KeyPair {
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
    Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key")
}

fn write(path: &Path, pairs: &[&Ed25519KeyPair]) {
    let key = |pair: &&Ed25519KeyPair| {
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": &x[..8] })
    };
    let keys: Vec<_> = pairs.iter().map(key).collect();
    fs::write(path, json!({ "keys": keys }).to_string()).expect("written");
}

fn token(pair: &Ed25519KeyPair, exp: i64) -> String {
    let kid = &URL_SAFE_NO_PAD.encode(pair.public_key().as_ref())[..8];
    let claims = json!({
        "iss": "i", "aud": "a", "sub": "ann", "tenant": "acme", "roles": "agent", "exp": exp,
    });
    let header = json!({ "alg": "EdDSA", "kid": kid });
    let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(&header), part(&claims));
    let signature = URL_SAFE_NO_PAD.encode(pair.sign(message.as_bytes()).as_ref());
    format!("{message}.{signature}")
}

fn rules() -> Rules {
    Rules {
        issuer: "i".into(),
        audiences: vec!["a".into()],
        skew: 0,
        tenant: "tenant".into(),
        principal: "sub".into(),
        roles: "roles".into(),
        scopes: None,
    }
}

/// Issuer whose keys are in a file, read again on SIGHUP.
struct Issuer {
    path: PathBuf,
    source: Source,
    hangups: watch::Sender<()>,
    _folder: TempDir,
}

impl Issuer {
    fn of(pair: &Ed25519KeyPair) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("jwks.json");
        write(&path, &[pair]);
        let begun = Source::begin(
            JwksOrigin::File(path.clone()),
            Duration::from_secs(60),
            Duration::from_secs(86_400),
        );
        let (source, follower) = begun.expect("a source");
        let (hangups, hung_up) = watch::channel(());
        tokio::spawn(follower.run(hung_up, CancellationToken::new()));
        Self { path, source, hangups, _folder: folder }
    }
}

#[tokio::test]
async fn a_remembered_token_ends_with_its_time_and_with_its_key() {
    let old = pair();
    let new = pair();
    let issuer = Issuer::of(&old);
    let tokens = Tokens::new(rules(), issuer.source.clone());
    let judge = async |token: &str, now: i64| {
        let told = tokens.caller(token, Now::at_ms(now)).await;
        told.err().map_or("", |refusal| refusal.reason())
    };
    let of_old = token(&old, NOW_MS / 1_000 + 60);
    assert_eq!(judge(&of_old, NOW_MS).await, "");
    assert_eq!(judge(&of_old, NOW_MS + 59_999).await, "");
    assert_eq!(judge(&of_old, NOW_MS + 60_000).await, "token_expired");
    let caller = tokens.caller(&of_old, Now::at_ms(NOW_MS)).await.expect("good");
    assert!(
        matches!(caller.credential(), CredentialId::Jwt { id, .. } if !of_old.contains(id.as_str()))
    );

    write(&issuer.path, &[&new]);
    issuer.hangups.send_replace(());
    while issuer.source.keys().generation == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(judge(&of_old, NOW_MS).await, "token_unknown_key", "its key is gone");
    assert_eq!(judge(&token(&new, NOW_MS / 1_000 + 60), NOW_MS).await, "");
}

#[tokio::test]
async fn a_stream_opened_with_a_token_ends_when_the_issuer_s_keys_change() {
    let old = pair();
    let new = pair();
    let issuer = Issuer::of(&old);
    let tokens = Tokens::new(rules(), issuer.source.clone());
    let now = Now::read();
    let of_old = token(&old, now.ms / 1_000 + 3_600);
    let caller = tokens.caller(&of_old, now).await.expect("good");
    let failures = Failures::new(crate::auth::AuthMetrics::default());
    let authenticator =
        Authenticator { keys: None, tokens: Some(tokens), certificates: None, failures };
    assert!(authenticator.is_still_good(&caller).await);
    write(&issuer.path, &[&new]);
    issuer.hangups.send_replace(());
    while issuer.source.keys().generation == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(
        !authenticator.is_still_good(&caller).await,
        "it may be the token of a key that is gone"
    );
}

#[tokio::test]
async fn a_token_of_a_new_key_has_the_keys_asked_for() {
    let old = pair();
    let new = pair();
    let issuer = Issuer::of(&old);
    let tokens = Tokens::new(rules(), issuer.source.clone());
    write(&issuer.path, &[&old, &new]);
    // A file may be read again after a second.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let of_new = token(&new, NOW_MS / 1_000 + 60);
    assert!(tokens.caller(&of_new, Now::at_ms(NOW_MS)).await.is_ok());
}
