//! Contradictions between the keys of who may call. What would leave the server more open than it looks is a mistake.

use super::mistake;
use crate::config::components::AuthMethod;
use crate::config::key::Fallback;
use crate::config::mistake::{Mistake, Source};
use crate::config::settings::Settings;
use crate::config::value::Value;

/// Keys that mean nothing without a method.
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
    let has = |method: AuthMethod| settings.words("auth.methods").contains(&method.name());
    let mut found = Vec::new();
    let mut wrong = |name: &str, problem: String| found.push(mistake(settings, name, problem));
    for (name, method) in OF_METHODS {
        if is_said(settings, name) && !has(method) {
            let problem = format!("has no effect unless auth.methods has {}", method.name());
            wrong(name, problem);
        }
    }
    let is_set = |name: &str| is_set(settings, name);
    if has(AuthMethod::Jwt) {
        match (is_set("auth.jwks_file"), is_set("auth.jwks_url")) {
            (true, true) => wrong("auth.jwks_url", "auth.jwks_file is set too: keep one".into()),
            (false, false) => {
                wrong("auth.methods", "jwt needs auth.jwks_file or auth.jwks_url".into());
            }
            _ => {}
        }
        for name in ["auth.issuer", "auth.audience"] {
            if !is_set(name) {
                wrong("auth.methods", format!("jwt needs {name}: tokens of others would do"));
            }
        }
        if is_set("auth.jwks_ca_file") && !is_set("auth.jwks_url") {
            wrong("auth.jwks_ca_file", "is for auth.jwks_url, which is not set".into());
        }
        let url = settings.text("auth.jwks_url").unwrap_or_default();
        if !url.is_empty() && !is_https(&url) {
            wrong("auth.jwks_url", "must be an https:// URL, without a user or password".into());
        }
    }
    if has(AuthMethod::Mtls) {
        if !is_set("tls.client_ca_file") {
            wrong("auth.methods", "mtls needs tls.client_ca_file".into());
        }
        if !is_said(settings, "auth.trust_domain") && !is_said(settings, "auth.certificates") {
            let problem = "mtls needs auth.trust_domain or auth.certificates to tell who is who";
            wrong("auth.methods", problem.into());
        }
    }
    for (name, other) in [
        ("tls.cert_file", "tls.key_file"),
        ("tls.key_file", "tls.cert_file"),
        ("tls.client_ca_file", "tls.cert_file"),
    ] {
        if is_set(name) && !is_set(other) {
            wrong(name, format!("needs {other} beside it"));
        }
    }
    found
}

fn is_set(settings: &Settings, name: &str) -> bool {
    match &settings.get(name).value {
        Value::Absent => false,
        Value::Text(text) => !text.is_empty(),
        _ => true,
    }
}

/// Whether somebody said so, and something else than the default.
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
