//! Signed tokens (RFC 7519, in the compact form of RFC 7515). The signature is verified before the claims are read.
//! The key determines the algorithm; a token can only agree with it.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use super::caller::is_principal;
use super::key_set::{Algorithm, KeySet};
use super::refusal::TokenFault;
use toolgate_core::identity::TenantId;
use toolgate_core::role::Roles;

/// Maximum number of scopes of one token.
const SCOPES_MAX: usize = 1_000;

/// Requirements on a token, and the names of the claims that identify the caller.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Required value of `iss`.
    pub issuer: String,
    /// Values of which `aud` must be or contain one.
    pub audiences: Vec<String>,
    /// Allowed difference between the issuer's clock and this server's, in seconds.
    pub skew: i64,
    /// Name of the claim with the tenant.
    pub tenant: String,
    /// Name of the claim with the principal.
    pub principal: String,
    /// Name of the claim with the roles.
    pub roles: String,
    /// Name of the claim with the scopes that an agent may have at most; `None` if tokens don't limit scopes.
    pub scopes: Option<String>,
}

/// Content of a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Tenant of the caller; `None` if the token names none, as an admin's may.
    pub tenant: Option<TenantId>,
    /// Name of the caller within the tenant.
    pub principal: String,
    /// Roles of the caller.
    pub roles: Roles,
    /// Scopes that an agent may have at most; `None` if [`Rules::scopes`] names no claim.
    pub scopes: Option<BTreeSet<String>>,
    /// Expiry with the clock skew added, in seconds since 1970 (UTC).
    pub good_until: i64,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

/// Verifies a token at the time `now` (seconds since 1970, UTC) and returns its claims.
///
/// # Errors
/// The first fault that is found.
pub fn verify(token: &str, keys: &KeySet, rules: &Rules, now: i64) -> Result<Claims, TokenFault> {
    let (message, signature) = token.rsplit_once('.').ok_or(TokenFault::Malformed)?;
    let (header, payload) = message.split_once('.').ok_or(TokenFault::Malformed)?;
    let header: Header = part(header)?;
    let is_token = header.typ.is_none_or(|typ| {
        ["JWT", "at+jwt", "application/at+jwt"].iter().any(|known| typ.eq_ignore_ascii_case(known))
    });
    // Critical extensions must be understood, and this server supports none.
    if !is_token || header.crit.is_some() {
        return Err(TokenFault::Malformed);
    }
    let algorithm = Algorithm::named(&header.alg).ok_or(TokenFault::Algorithm)?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenFault::Malformed)?;
    let mut fitting = keys.fitting(algorithm, header.kid.as_deref()).peekable();
    fitting.peek().ok_or(TokenFault::UnknownKey)?;
    if !fitting.any(|key| key.signed(message.as_bytes(), &signature)) {
        return Err(TokenFault::Signature);
    }
    let claims: Value = part(payload)?;
    let good_until = judge(&claims, rules, now)?;
    read(&claims, rules, good_until)
}

fn part<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, TokenFault> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenFault::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenFault::Malformed)
}

/// Checks the issuer, the audience and the times. Returns the expiry with the clock skew added.
fn judge(claims: &Value, rules: &Rules, now: i64) -> Result<i64, TokenFault> {
    if claims.get("iss").and_then(Value::as_str) != Some(&rules.issuer) {
        return Err(TokenFault::Issuer);
    }
    let is_ours = |audience: &Value| {
        let said = audience.as_str();
        rules.audiences.iter().any(|ours| said == Some(ours))
    };
    let ours = match claims.get("aud") {
        Some(Value::Array(several)) => several.iter().any(is_ours),
        Some(one) => is_ours(one),
        None => false,
    };
    if !ours {
        return Err(TokenFault::Audience);
    }
    let good_until = moment(claims, "exp")?.ok_or(TokenFault::Claims)?.saturating_add(rules.skew);
    if good_until <= now {
        return Err(TokenFault::Expired);
    }
    if moment(claims, "nbf")?.is_some_and(|from| from.saturating_sub(rules.skew) > now) {
        return Err(TokenFault::NotYetValid);
    }
    Ok(good_until)
}

/// Reads a time claim in seconds since 1970. A fraction is cut off.
fn moment(claims: &Value, name: &str) -> Result<Option<i64>, TokenFault> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let whole = value.as_i64();
    #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
    let cut = || value.as_f64().filter(|s| (0.0..1e15).contains(s)).map(|seconds| seconds as i64);
    whole.or_else(cut).map(Some).ok_or(TokenFault::Claims)
}

fn read(claims: &Value, rules: &Rules, good_until: i64) -> Result<Claims, TokenFault> {
    let tenant = match find(claims, &rules.tenant) {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(TenantId::parse(name).map_err(|_| TokenFault::Claims)?),
        Some(_) => return Err(TokenFault::Claims),
    };
    let principal = find(claims, &rules.principal).and_then(Value::as_str);
    let principal =
        principal.filter(|name| is_principal(name)).ok_or(TokenFault::Claims)?.to_owned();
    let roles = Roles::named(words(find(claims, &rules.roles))?);
    let scopes = match &rules.scopes {
        None => None,
        Some(claim) => {
            let scopes = words(find(claims, claim))?;
            if scopes.len() > SCOPES_MAX {
                return Err(TokenFault::Claims);
            }
            Some(scopes.into_iter().map(str::to_owned).collect())
        }
    };
    Ok(Claims { tenant, principal, roles, scopes, good_until })
}

/// Finds a claim by name, or by a JSON pointer if the name begins with a slash.
fn find<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    if name.starts_with('/') { claims.pointer(name) } else { claims.get(name) }
}

/// Reads an array of texts, or one text with words separated by spaces. A missing claim gives no words.
fn words(claim: Option<&Value>) -> Result<Vec<&str>, TokenFault> {
    match claim {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(text.split_ascii_whitespace().collect()),
        Some(Value::Array(items)) => {
            items.iter().map(|item| item.as_str().ok_or(TokenFault::Claims)).collect()
        }
        Some(_) => Err(TokenFault::Claims),
    }
}

#[cfg(test)]
mod tests;
