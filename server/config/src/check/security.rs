//! Contradictions between the keys of authentication and TLS. A setting that leaves the server more open than it looks
//! is a mistake.

use super::mistake;
use crate::components::AuthMethod;
use crate::key::Fallback;
use crate::mistake::{Mistake, Source};
use crate::settings::Settings;
use crate::value::Value;

/// Keys that have no effect unless the given authentication method is enabled.
const OF_METHODS: [(&str, AuthMethod); 12] = [
    ("auth.admin_key_file", AuthMethod::ApiKey),
    ("auth.jwks_file", AuthMethod::Jwt),
    ("auth.jwks_url", AuthMethod::Jwt),
    ("auth.jwks_ca_file", AuthMethod::Jwt),
    ("auth.issuer", AuthMethod::Jwt),
    ("auth.audience", AuthMethod::Jwt),
    ("auth.tenant_claim", AuthMethod::Jwt),
    ("auth.principal_claim", AuthMethod::Jwt),
    ("auth.roles_claim", AuthMethod::Jwt),
    ("auth.scopes_claim", AuthMethod::Jwt),
    ("auth.trust_domain", AuthMethod::Mtls),
    ("auth.certificates", AuthMethod::Mtls),
];

pub(super) fn check(settings: &Settings) -> Vec<Mistake> {
    let mut found = Vec::new();
    for (name, method) in OF_METHODS {
        if is_said(settings, name) && !has(settings, method) {
            let problem = format!("has no effect unless auth.methods has {}", method.name());
            found.push((name, problem));
        }
    }
    if has(settings, AuthMethod::Jwt) {
        found.extend(tokens(settings));
    }
    if has(settings, AuthMethod::Mtls) {
        found.extend(certificates(settings));
    }
    for (name, other) in [
        ("tls.cert_file", "tls.key_file"),
        ("tls.key_file", "tls.cert_file"),
        ("tls.client_ca_file", "tls.cert_file"),
    ] {
        if is_set(settings, name) && !is_set(settings, other) {
            found.push((name, format!("needs {other} beside it")));
        }
    }
    found.into_iter().map(|(name, problem)| mistake(settings, name, problem)).collect()
}

/// Name of a key and the problem with its value.
type Wrong = (&'static str, String);

/// Checks the keys of signed tokens. A missing issuer or audience is a mistake, because other services' tokens would be
/// accepted.
fn tokens(settings: &Settings) -> Vec<Wrong> {
    let is_set = |name: &str| is_set(settings, name);
    let mut found: Vec<Wrong> = Vec::new();
    match (is_set("auth.jwks_file"), is_set("auth.jwks_url")) {
        (true, true) => {
            found.push(("auth.jwks_url", "auth.jwks_file is set too: keep one".into()));
        }
        (false, false) => {
            found.push(("auth.methods", "jwt needs auth.jwks_file or auth.jwks_url".into()));
        }
        _ => {}
    }
    for name in ["auth.issuer", "auth.audience"] {
        if !is_set(name) {
            let problem = format!("jwt needs {name}: tokens of others would do");
            found.push(("auth.methods", problem));
        }
    }
    if is_set("auth.jwks_ca_file") && !is_set("auth.jwks_url") {
        found.push(("auth.jwks_ca_file", "is for auth.jwks_url, which is not set".into()));
    }
    let url = settings.text("auth.jwks_url").unwrap_or_default();
    if !url.is_empty() && !is_https(&url) {
        let problem = "must be an https:// URL, without a user or password";
        found.push(("auth.jwks_url", problem.into()));
    }
    found
}

fn certificates(settings: &Settings) -> Vec<Wrong> {
    let mut found: Vec<Wrong> = Vec::new();
    if !is_set(settings, "tls.client_ca_file") {
        found.push(("auth.methods", "mtls needs tls.client_ca_file".into()));
    }
    if !is_said(settings, "auth.trust_domain") && !is_said(settings, "auth.certificates") {
        let problem = "mtls needs auth.trust_domain or auth.certificates to tell who is who";
        found.push(("auth.methods", problem.into()));
    }
    found
}

fn has(settings: &Settings, method: AuthMethod) -> bool {
    settings.words("auth.methods").contains(&method.name())
}

fn is_set(settings: &Settings, name: &str) -> bool {
    match &settings.get(name).value {
        Value::Absent => false,
        Value::Text(text) => !text.is_empty(),
        _ => true,
    }
}

/// Returns true if a source sets the key to something other than its default.
fn is_said(settings: &Settings, name: &str) -> bool {
    let setting = settings.get(name);
    let default = match setting.key.default {
        Fallback::Text(text) => text,
        _ => "",
    };
    setting.source != Source::Default && setting.value.to_string() != default
}

fn is_https(url: &str) -> bool {
    let uri: Option<ureq::http::Uri> = url.parse().ok();
    uri.is_some_and(|uri| {
        uri.scheme_str() == Some("https")
            && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
    })
}
