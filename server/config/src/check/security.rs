//! Contradictions between the keys of authentication and TLS. A setting that leaves the server more open than it looks
//! is a mistake.

use super::{is_absent, mistake};
use crate::components::AuthMethod;
use crate::key::{Fallback, KeySpec, OptionalKey};
use crate::keys::{
    AUTH_ADMIN_KEY_FILE, AUTH_AUDIENCE, AUTH_CERTIFICATES, AUTH_ISSUER, AUTH_JWKS_CA_FILE,
    AUTH_JWKS_FILE, AUTH_JWKS_URL, AUTH_METHODS, AUTH_PRINCIPAL_CLAIM, AUTH_ROLES_CLAIM,
    AUTH_SCOPES_CLAIM, AUTH_TENANT_CLAIM, AUTH_TRUST_DOMAIN, TLS_CERT_FILE, TLS_CLIENT_CA_FILE,
    TLS_KEY_FILE,
};
use crate::mistake::{Mistake, Source};
use crate::settings::Settings;

/// Keys that have no effect unless the given authentication method is enabled.
const OF_METHODS: [(&KeySpec, AuthMethod); 12] = [
    (&AUTH_ADMIN_KEY_FILE.spec, AuthMethod::ApiKey),
    (&AUTH_JWKS_FILE.spec, AuthMethod::Jwt),
    (&AUTH_JWKS_URL.spec, AuthMethod::Jwt),
    (&AUTH_JWKS_CA_FILE.spec, AuthMethod::Jwt),
    (&AUTH_ISSUER.spec, AuthMethod::Jwt),
    (&AUTH_AUDIENCE.spec, AuthMethod::Jwt),
    (&AUTH_TENANT_CLAIM.spec, AuthMethod::Jwt),
    (&AUTH_PRINCIPAL_CLAIM.spec, AuthMethod::Jwt),
    (&AUTH_ROLES_CLAIM.spec, AuthMethod::Jwt),
    (&AUTH_SCOPES_CLAIM.spec, AuthMethod::Jwt),
    (&AUTH_TRUST_DOMAIN.spec, AuthMethod::Mtls),
    (&AUTH_CERTIFICATES.spec, AuthMethod::Mtls),
];

pub(super) fn check(settings: &Settings) -> Vec<Mistake> {
    let methods = settings.read(&AUTH_METHODS);
    let mut found: Vec<Wrong> = Vec::new();
    for (key, method) in OF_METHODS {
        if is_said(settings, key) && !methods.contains(&method) {
            let problem = format!("has no effect unless {AUTH_METHODS} has {}", method.name());
            found.push((key, problem));
        }
    }
    if methods.contains(&AuthMethod::Jwt) {
        found.extend(tokens(settings));
    }
    if methods.contains(&AuthMethod::Mtls) {
        found.extend(certificates(settings));
    }
    for (file, other) in [
        (&TLS_CERT_FILE, &TLS_KEY_FILE),
        (&TLS_KEY_FILE, &TLS_CERT_FILE),
        (&TLS_CLIENT_CA_FILE, &TLS_CERT_FILE),
    ] {
        if !is_absent(settings, &file.spec) && is_absent(settings, &other.spec) {
            found.push((&file.spec, format!("needs {other} beside it")));
        }
    }
    found.into_iter().map(|(key, problem)| mistake(settings, key, problem)).collect()
}

/// Key and the problem with its value.
type Wrong = (&'static KeySpec, String);

/// Checks the keys of signed tokens. A missing issuer or audience is a mistake, because other services' tokens would be
/// accepted.
fn tokens(settings: &Settings) -> Vec<Wrong> {
    let url = text(settings, &AUTH_JWKS_URL);
    let has_file = !is_absent(settings, &AUTH_JWKS_FILE.spec);
    let mut found: Vec<Wrong> = Vec::new();
    match (has_file, url.is_some()) {
        (true, true) => {
            found.push((&AUTH_JWKS_URL.spec, format!("{AUTH_JWKS_FILE} is set too: keep one")));
        }
        (false, false) => {
            let problem = format!("jwt needs {AUTH_JWKS_FILE} or {AUTH_JWKS_URL}");
            found.push((&AUTH_METHODS.spec, problem));
        }
        _ => {}
    }
    for claim in [&AUTH_ISSUER, &AUTH_AUDIENCE] {
        if text(settings, claim).is_none() {
            let problem = format!("jwt needs {claim}: tokens of others would do");
            found.push((&AUTH_METHODS.spec, problem));
        }
    }
    if !is_absent(settings, &AUTH_JWKS_CA_FILE.spec) && url.is_none() {
        let problem = format!("is for {AUTH_JWKS_URL}, which is not set");
        found.push((&AUTH_JWKS_CA_FILE.spec, problem));
    }
    if url.is_some_and(|url| !is_https(&url)) {
        let problem = "must be an https:// URL, without a user or password";
        found.push((&AUTH_JWKS_URL.spec, problem.into()));
    }
    found
}

fn certificates(settings: &Settings) -> Vec<Wrong> {
    let mut found: Vec<Wrong> = Vec::new();
    if is_absent(settings, &TLS_CLIENT_CA_FILE.spec) {
        found.push((&AUTH_METHODS.spec, format!("mtls needs {TLS_CLIENT_CA_FILE}")));
    }
    if !is_said(settings, &AUTH_TRUST_DOMAIN.spec) && !is_said(settings, &AUTH_CERTIFICATES.spec) {
        let problem =
            format!("mtls needs {AUTH_TRUST_DOMAIN} or {AUTH_CERTIFICATES} to tell who is who");
        found.push((&AUTH_METHODS.spec, problem));
    }
    found
}

/// Returns the text of a key; `None` if it is absent or empty.
fn text(settings: &Settings, key: &OptionalKey<String>) -> Option<String> {
    settings.read_optional(key).filter(|text| !text.is_empty())
}

/// Returns true if a source sets the key to something other than its default.
fn is_said(settings: &Settings, key: &KeySpec) -> bool {
    let setting = settings.get(key);
    let default = match key.default {
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
