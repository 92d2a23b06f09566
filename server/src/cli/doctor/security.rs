//! Checks the files for authentication, TLS and safety rules.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::check::Check;
use crate::serve;
use toolgate_access::auth;
use toolgate_config::{AuthConfig, Config, SafetyConfig, TlsConfig};
use toolgate_core::error::with_causes;

const TLS: &str = "certificate";
const AUTH: &str = "callers";
const RULES: &str = "safety rules";

/// Remaining life of a certificate below which it should have been renewed: 14 days.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// Checks the configured files. It may ask an issuer of tokens for its keys. Blocks.
pub(super) fn check(config: &Config) -> Vec<Check> {
    let certificate = config.tls.as_ref().map(certificate);
    certificate.into_iter().chain([callers(&config.auth)]).chain(rules(&config.safety)).collect()
}

fn certificate(config: &TlsConfig) -> Check {
    let tls = match serve::load_tls(config) {
        Ok(tls) => tls,
        Err(error) => {
            return Check::fail(TLS, with_causes(&error))
                .advice("mend tls.cert_file and tls.key_file");
        }
    };
    let ends = UNIX_EPOCH + Duration::from_millis(u64::try_from(tls.not_after_ms()).unwrap_or(0));
    let Ok(left) = ends.duration_since(SystemTime::now()) else {
        return Check::fail(TLS, "it has expired: no client connects").advice("renew it");
    };
    let detail = format!("good for {} more days", left.as_secs() / 86_400);
    if left < SOON {
        return Check::warn(TLS, detail)
            .advice("renew it; a server takes the new file without a restart");
    }
    Check::ok(TLS, detail)
}

fn callers(config: &AuthConfig) -> Check {
    if config.methods.is_empty() {
        return Check::ok(AUTH, "not told apart: auth.methods is empty");
    }
    match auth::look(config) {
        Ok(()) => Check::ok(AUTH, "told apart; the files of auth can be used"),
        Err(error) => Check::fail(AUTH, with_causes(&error))
            .advice("docs/security.md says what it should hold"),
    }
}

fn rules(config: &SafetyConfig) -> Option<Check> {
    let path = config.rules_file.as_deref()?;
    Some(match serve::read_rules(path) {
        Ok(_) => Check::ok(RULES, format!("{} has no mistakes", path.display())),
        Err(problem) => {
            Check::fail(RULES, problem).advice("docs/safety.md says how rules are written")
        }
    })
}
