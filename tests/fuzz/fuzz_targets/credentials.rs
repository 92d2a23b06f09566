//! Fuzz target for credentials: headers, API keys, tokens and key sets. The first byte selects one. No input may panic,
//! and no unsigned token may be accepted.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolgate_access::auth::Authorization;
use toolgate_access::auth::api_key::{ApiKey, looks_like_one};
use toolgate_access::auth::authorization::CREDENTIAL_MAX;
use toolgate_access::auth::jwt::{self, Rules};
use toolgate_access::auth::key_set::KeySet;

/// Public keys of RFC 8037 and RFC 7517. The fuzzer has no private key, so it can't sign.
const KEYS: &str = r#"{"keys": [
    {"kty": "OKP", "crv": "Ed25519", "kid": "k1", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
    {"kty": "EC", "crv": "P-256", "kid": "k2", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
     "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}
]}"#;

static SET: LazyLock<KeySet> =
    LazyLock::new(|| KeySet::parse(KEYS.as_bytes()).expect("two good keys"));
static RULES: LazyLock<Rules> = LazyLock::new(|| Rules {
    issuer: "i".into(),
    audiences: vec!["a".into()],
    skew: 30,
    tenant: "/realm/tenant".into(),
    principal: "sub".into(),
    roles: "roles".into(),
    scopes: Some("scope".into()),
});

fuzz_target!(|input: &[u8]| {
    let Some((kind, rest)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    match kind % 4 {
        0 => header(rest),
        1 => {
            if let Some(key) = ApiKey::parse(&text) {
                assert!(looks_like_one(&text) && key.reveal() == text);
            }
        }
        2 => assert!(jwt::verify(&text, &SET, &RULES, 1_800_000_000).is_err(), "{text}"),
        _ => {
            if let Ok(set) = KeySet::parse(rest) {
                assert!(jwt::verify("e30.e30.", &set, &RULES, 0).is_err());
            }
        }
    }
});

/// Reads header values, separated by line breaks.
fn header(bytes: &[u8]) {
    let values = || bytes.split(|byte| *byte == b'\n');
    match Authorization::read(values()) {
        Authorization::Absent => unreachable!("there is a value"),
        Authorization::Bearer(credential) => {
            assert!(values().count() == 1 && (1..=CREDENTIAL_MAX).contains(&credential.len()));
            assert!(!credential.contains(char::is_whitespace));
        }
        Authorization::Unusable => {}
    }
}
