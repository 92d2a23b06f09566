//! Tests of hand-made tokens, with every kind of fault.

use proptest::prelude::*;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_000;

/// Token that another program signed, valid until the year 2100, and the modulus of its key.
const RSA_TOKEN: &str = concat!(
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIiwidHlwIjoiSldUIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUuY2",
    "9tIiwiYXVkIjoidG9vbGdhdGUiLCJzdWIiOiJhbm4iLCJ0ZW5hbnQiOiJhY21lIiwicm9sZXMiOlsiYWdlbnQiXSwi",
    "ZXhwIjo0MTAyNDQ0ODAwfQ.h5d1ZHMhWBjPbPEWf0JhwFCA99uGYERGHFn0FjIbgCrCnMoLnx1gJFR0sl5FFX5mJ9G",
    "WB3dzX8gkWGX4mJyYDJPHCgz_VmAR1UGS9MuSnD4v668kmj9I4ubEBEMXsuMm4VdaHYhfh6iER0IcPKh9DaB6-",
    "UfYvSibpwegs2eSW4VgnPZODuhuhMq6UTalZ7xg8rYQUYL-",
    "V5K0dD1kW9ABwn5yIvKxWqkY5_tlY18lgpxDea8EPoyCnflvSopk36iUEFuVDl5Q00PMDopZ4XDoB-",
    "uNUiTl6PnNSy1kEcPf-4tLoku0MJnTBrQoy_ciE_4RJkw-WzXgoNgi9Ndkt5LdBQ",
);
const RSA_MODULUS: &str = concat!(
    "10s49TA3t4TkZxfzm5FqC-Ygwbk8DtfOKeokIkeAUwxdQHXWyGSX0ci8wZmu3fggv35iig4WmLwZtw3JD-8B-",
    "vf046RDolEywt1DlVvciStj_ryjH3mzb0wF1SoRgirXuVyQv8L4UOn9DWrvQ0XrhYBqk_gVK3D0FOGQLLk2QqDHYr_",
    "d18u8_sQsmgXkQbbxPniVm551OVRwX-0rqFOct5fpF4Ia84RS1vBDzG7zhCueC5-w5MaJu-",
    "xDtqo1knYSbsu0tTCjmVFHVyPXbHTHXctMb-",
    "_yhhA2BvKPKMqeO38nd6lLqNf2WpdTsWdOM5zTPIphRqV9SVc0IK7mLvBJGQ",
);

enum Signer {
    EdDsa(Ed25519KeyPair),
    Es256(EcdsaKeyPair),
}

impl Signer {
    fn ed25519() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self::EdDsa(Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key"))
    }

    fn p256() -> Self {
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).expect("a key");
        Self::Es256(EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).expect("a key"))
    }

    fn jwk(&self, id: &str) -> Value {
        match self {
            Self::EdDsa(pair) => {
                let x = base64(pair.public_key().as_ref());
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": x })
            }
            Self::Es256(pair) => {
                let point = pair.public_key().as_ref();
                let x = base64(&point[1..33]);
                let y = base64(&point[33..]);
                json!({ "kty": "EC", "crv": "P-256", "kid": id, "x": x, "y": y, "use": "sig" })
            }
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let signature = match self {
            Self::EdDsa(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
            Self::Es256(pair) => {
                let signed = pair.sign(&SystemRandom::new(), message.as_bytes());
                signed.expect("a signature").as_ref().to_vec()
            }
        };
        format!("{message}.{}", base64(&signature))
    }
}

fn base64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn encoded(value: &Value) -> String {
    base64(value.to_string().as_bytes())
}

fn set(keys: &[Value]) -> KeySet {
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).expect("a set")
}

fn rules() -> Rules {
    Rules {
        issuer: "https://id.example.com".into(),
        audiences: vec!["other".into(), "toolgate".into()],
        skew: 30,
        tenant: "tenant".into(),
        principal: "sub".into(),
        roles: "roles".into(),
        scopes: None,
    }
}

fn claims() -> Value {
    json!({
        "iss": "https://id.example.com", "aud": "toolgate", "sub": "ann", "tenant": "acme",
        "roles": ["agent", "other"], "exp": NOW + 60,
    })
}

fn header(alg: &str) -> Value {
    json!({ "alg": alg, "kid": "k1", "typ": "JWT" })
}

/// Verifies a token with valid claims and `changes` to them. A null removes a claim.
fn judged(changes: &Value, rules: &Rules) -> Result<Claims, TokenFault> {
    let signer = Signer::ed25519();
    let mut claims = claims();
    for (name, value) in changes.as_object().expect("an object") {
        claims[name] = value.clone();
    }
    claims.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    let token = signer.sign(&header("EdDSA"), &claims);
    verify(&token, &set(&[signer.jwk("k1")]), rules, NOW)
}

#[test]
fn a_good_token_says_who_calls() {
    for (signer, alg) in
        [(Signer::ed25519(), "EdDSA"), (Signer::ed25519(), "Ed25519"), (Signer::p256(), "ES256")]
    {
        let token = signer.sign(&header(alg), &claims());
        let told = verify(&token, &set(&[signer.jwk("k1")]), &rules(), NOW).expect("good");
        assert_eq!(told.tenant.as_ref().map(TenantId::as_str), Some("acme"));
        assert_eq!((told.principal.as_str(), told.roles.to_string()), ("ann", "agent".into()));
        assert_eq!((told.scopes, told.good_until), (None, NOW + 60 + 30));
    }
    let rsa = json!({ "kty": "RSA", "kid": "r1", "alg": "RS256", "n": RSA_MODULUS, "e": "AQAB" });
    assert_eq!(verify(RSA_TOKEN, &set(&[rsa]), &rules(), NOW).expect("good").principal, "ann");
}

#[test]
fn only_the_right_time_issuer_and_audience_will_do() {
    for (changes, want) in [
        (json!({ "exp": NOW - 29 }), None),
        (json!({ "exp": NOW - 30 }), Some(TokenFault::Expired)),
        (json!({ "exp": null }), Some(TokenFault::Claims)),
        (json!({ "exp": "later" }), Some(TokenFault::Claims)),
        (json!({ "exp": i64::MAX }), None),
        (json!({ "exp": NOW as f64 + 0.5 }), None),
        (json!({ "exp": -1 }), Some(TokenFault::Expired)),
        (json!({ "nbf": NOW + 30 }), None),
        (json!({ "nbf": NOW + 31 }), Some(TokenFault::NotYetValid)),
        (json!({ "nbf": i64::MIN }), None),
        (json!({ "iss": "https://id.example.com/" }), Some(TokenFault::Issuer)),
        (json!({ "iss": null }), Some(TokenFault::Issuer)),
        (json!({ "aud": ["x", "toolgate"] }), None),
        (json!({ "aud": ["x"] }), Some(TokenFault::Audience)),
        (json!({ "aud": [] }), Some(TokenFault::Audience)),
        (json!({ "aud": "Toolgate" }), Some(TokenFault::Audience)),
        (json!({ "aud": null }), Some(TokenFault::Audience)),
    ] {
        assert_eq!(judged(&changes, &rules()).err(), want, "{changes}");
    }
}

#[test]
fn who_calls_must_be_said_rightly() {
    for (changes, want) in [
        (json!({ "tenant": "Not one" }), Some(TokenFault::Claims)),
        (json!({ "tenant": ["acme"] }), Some(TokenFault::Claims)),
        (json!({ "tenant": "" }), Some(TokenFault::Claims)),
        (json!({ "tenant": null }), None),
        (json!({ "sub": "" }), Some(TokenFault::Claims)),
        (json!({ "sub": null }), Some(TokenFault::Claims)),
        (json!({ "sub": "a\nb" }), Some(TokenFault::Claims)),
        (json!({ "sub": "a".repeat(257) }), Some(TokenFault::Claims)),
        (json!({ "roles": null }), None),
        (json!({ "roles": "agent admin" }), None),
        (json!({ "roles": [1] }), Some(TokenFault::Claims)),
        (json!({ "roles": { "agent": true } }), Some(TokenFault::Claims)),
    ] {
        assert_eq!(judged(&changes, &rules()).err(), want, "{changes}");
    }
    let of_realm = Rules {
        tenant: "/realm/tenant".into(),
        roles: "https://example.com/roles".into(),
        scopes: Some("scope".into()),
        ..rules()
    };
    let changes = json!({
        "tenant": null, "realm": { "tenant": "acme" }, "https://example.com/roles": "admin", "scope": "a b a",
    });
    let told = judged(&changes, &of_realm).expect("good");
    assert_eq!(told.tenant.as_ref().map(TenantId::as_str), Some("acme"));
    assert_eq!(told.roles.to_string(), "admin");
    assert_eq!(told.scopes, Some(["a".to_owned(), "b".to_owned()].into()));
    let without = judged(&json!({}), &of_realm).expect("good");
    assert_eq!((without.tenant, without.scopes), (None, Some(BTreeSet::new())));
}

#[test]
fn the_algorithm_is_the_key_s_own() {
    let ed = Signer::ed25519();
    let ec = Signer::p256();
    let both = set(&[ed.jwk("k1"), ec.jwk("k2")]);
    let check = |token: &str, want| {
        assert_eq!(verify(token, &both, &rules(), NOW).err(), Some(want), "{token}");
    };
    for alg in ["none", "None", "HS256", "RS512", "PS256", "ES384", "", "eddsa"] {
        check(&ed.sign(&header(alg), &claims()), TokenFault::Algorithm);
    }
    // As an HMAC with the bytes of the public key, the signature would be correct.
    let message = format!("{}.{}", encoded(&header("HS256")), encoded(&claims()));
    let public = ed.jwk("k1")["x"].as_str().expect("text").to_owned();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.as_bytes());
    let tag = ring::hmac::sign(&key, message.as_bytes());
    check(&format!("{message}.{}", base64(tag.as_ref())), TokenFault::Algorithm);
    let unsigned = format!("{}.{}.", encoded(&header("none")), encoded(&claims()));
    check(&unsigned, TokenFault::Algorithm);
    // The algorithm of another key, with the id of this key.
    check(&ed.sign(&header("ES256"), &claims()), TokenFault::UnknownKey);
    check(&ec.sign(&header("EdDSA"), &claims()), TokenFault::Signature);
}

#[test]
fn keys_are_told_apart_by_id() {
    let one = Signer::ed25519();
    let other = Signer::ed25519();
    let keys = set(&[one.jwk("k1"), other.jwk("k2")]);
    let judge = |signer: &Signer, header: Value, keys| {
        verify(&signer.sign(&header, &claims()), keys, &rules(), NOW).err()
    };
    assert_eq!(judge(&one, header("EdDSA"), &keys), None);
    assert_eq!(judge(&other, header("EdDSA"), &keys), Some(TokenFault::Signature));
    assert_eq!(judge(&other, json!({ "alg": "EdDSA", "kid": "k2" }), &keys), None);
    let unknown = json!({ "alg": "EdDSA", "kid": "k3" });
    assert_eq!(judge(&one, unknown, &keys), Some(TokenFault::UnknownKey));
    // Without an id, only one key may be possible.
    let unnamed = || json!({ "alg": "EdDSA" });
    assert_eq!(judge(&one, unnamed(), &keys), Some(TokenFault::UnknownKey));
    assert_eq!(judge(&one, unnamed(), &set(&[one.jwk("k1")])), None);
}

#[test]
fn other_forms_are_refused() {
    let signer = Signer::ed25519();
    let keys = set(&[signer.jwk("k1")]);
    let good = signer.sign(&header("EdDSA"), &claims());
    assert!(verify(&good, &keys, &rules(), NOW).is_ok());
    let parts: Vec<_> = good.split('.').collect();
    let critical = json!({ "alg": "EdDSA", "kid": "k1", "crit": ["b64"], "b64": false });
    let of_identity = json!({ "alg": "EdDSA", "kid": "k1", "typ": "secevent+jwt" });
    for token in [
        String::new(),
        "..".into(),
        parts[0].into(),
        format!("{}.{}", parts[0], parts[1]),
        format!("{good}.x"),
        format!("{good}="),
        format!("{}.{}.!", parts[0], parts[1]),
        format!("{}.{}.{}", base64(b"[]"), parts[1], parts[2]),
        signer.sign(&critical, &claims()),
        signer.sign(&of_identity, &claims()),
        signer.sign(&header("EdDSA"), &json!([])),
    ] {
        assert!(verify(&token, &keys, &rules(), NOW).is_err(), "{token}");
    }
}

#[test]
fn sets_hold_what_can_be_used_and_no_more() {
    let good = || Signer::ed25519().jwk("k1");
    let count = |keys: Vec<Value>| {
        let set = KeySet::parse(json!({ "keys": keys }).to_string().as_bytes());
        set.map_or(0, |set| set.len())
    };
    let with = |changes: Value| {
        let mut key = good();
        for (name, value) in changes.as_object().expect("an object") {
            key[name] = value.clone();
        }
        key
    };
    assert_eq!(count(vec![good(), Signer::p256().jwk("k2")]), 2);
    for bad in [
        with(json!({ "use": "enc" })),
        with(json!({ "key_ops": ["encrypt"] })),
        with(json!({ "alg": "ES256" })),
        with(json!({ "kty": "oct", "k": "AAAA" })),
        with(json!({ "crv": "Ed448" })),
        with(json!({ "x": "AAAA" })),
        with(json!({ "x": "!" })),
        json!({ "kty": "RSA", "n": base64(&[255; 128]), "e": "AQAB" }),
        json!({ "kty": "RSA", "n": base64(&[[0; 128], [255; 128]].concat()), "e": "AQAB" }),
        json!({ "kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA" }),
        json!(7),
    ] {
        assert_eq!(count(vec![bad.clone(), good()]), 1, "{bad}");
        assert_eq!(count(vec![bad]), 0, "a set of nothing is none");
    }
    assert!(KeySet::parse(b"{}").is_err() && KeySet::parse(b"").is_err());
    assert!(KeySet::parse(&vec![b' '; 300 << 10]).expect_err("large").contains("bytes"));
    assert_eq!(count(vec![good(); 101]), 0);
}

proptest! {
    #[test]
    fn no_text_gets_through_and_none_is_a_panic(text in "[A-Za-z0-9._-]{0,200}", flip in 0usize..2_000) {
        let signer = Signer::ed25519();
        let keys = set(&[signer.jwk("k1")]);
        prop_assert!(verify(&text, &keys, &rules(), NOW).is_err());
        let mut token = signer.sign(&header("EdDSA"), &claims()).into_bytes();
        let at = flip % token.len();
        token[at] = if token[at] == b'A' { b'B' } else { b'A' };
        let token = String::from_utf8(token).expect("ASCII");
        prop_assert!(verify(&token, &keys, &rules(), NOW).is_err());
    }
}
