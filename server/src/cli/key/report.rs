//! Keys as text and as JSON, without secrets.

use serde_json::{Value, json};
use toolgate_client::well_known::Timestamp;

use super::super::table::{Column, render};
use super::super::text::one_line;
use toolgate_core::identity::TenantId;
use toolgate_store::StoredKey;

/// Returns the reason why a key is no longer valid, in a word.
pub(super) fn end(key: &StoredKey, now_ms: i64) -> Option<&'static str> {
    if key.revoked_ms.is_some_and(|at| at <= now_ms) {
        return Some("revoked");
    }
    key.expires_ms.is_some_and(|at| at <= now_ms).then_some("expired")
}

pub(super) fn as_json(key: &StoredKey, now_ms: i64) -> Value {
    json!({
        "id": key.id,
        "tenant": key.tenant.as_ref().map(TenantId::as_str),
        "roles": key.roles,
        "principal": key.principal,
        "label": key.label,
        "state": state(key, now_ms),
        "created": moment(key.created_ms),
        "ends": ends_ms(key).map(moment),
        "last_used": key.used_ms.map(moment),
    })
}

pub(super) fn list_as_json(keys: &[StoredKey], now_ms: i64) -> Value {
    json!({ "keys": keys.iter().map(|key| as_json(key, now_ms)).collect::<Vec<_>>() })
}

pub(super) fn list(keys: &[StoredKey], now_ms: i64) -> String {
    if keys.is_empty() {
        return "There are no keys.\n".to_owned();
    }
    let columns = ["ID", "TENANT", "ROLES", "STATE", "ENDS", "LAST USED", "LABEL"];
    let rows = keys.iter().map(|key| {
        vec![
            key.id.clone(),
            key.tenant.as_ref().map_or("(any)", TenantId::as_str).to_owned(),
            key.roles.join("+"),
            state(key, now_ms).to_owned(),
            ends_ms(key).map_or_else(|| "never".to_owned(), moment),
            key.used_ms.map_or_else(|| "never".to_owned(), moment),
            one_line(&key.label, 40),
        ]
    });
    render(&columns.map(Column::Left), rows)
}

/// Returns the note that is shown with a new key.
pub(super) fn made(key: &StoredKey) -> String {
    let of = key.tenant.as_ref().map_or_else(
        || "of any tenant that a call names".to_owned(),
        |tenant| format!("of tenant {}", tenant.as_str()),
    );
    let ends = ends_ms(key).map_or_else(|| "never".to_owned(), moment);
    format!(
        "{} ({}), {of}, ends: {ends}. Keep it: it can't be shown again.",
        key.id,
        key.roles.join(", ")
    )
}

fn state(key: &StoredKey, now_ms: i64) -> &'static str {
    match end(key, now_ms) {
        Some(word) => word,
        None if key.revoked_ms.is_some() => "rotated",
        None => "good",
    }
}

fn ends_ms(key: &StoredKey) -> Option<i64> {
    [key.expires_ms, key.revoked_ms].into_iter().flatten().min()
}

fn moment(ms: i64) -> String {
    Timestamp { seconds: ms.div_euclid(1_000), nanos: 0 }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> StoredKey {
        StoredKey {
            id: "0123456789ab".into(),
            secret_hash: [7; 32],
            tenant: TenantId::parse("acme").ok(),
            principal: "key:0123456789ab".into(),
            roles: vec!["agent".into(), "catalog-writer".into()],
            label: "a bot".into(),
            created_ms: 0,
            expires_ms: Some(86_400_000),
            revoked_ms: None,
            used_ms: None,
        }
    }

    #[test]
    fn keys_read_well_and_hold_no_secret() {
        let text = list(&[key()], 0);
        for part in ["0123456789ab", "acme", "agent+catalog-writer", "good", "1970-01-02T00:00:00Z"]
        {
            assert!(text.contains(part), "{text}");
        }
        let rotated = StoredKey { revoked_ms: Some(9), ..key() };
        for (at, word) in [(8, "rotated"), (9, "revoked"), (i64::MAX, "revoked")] {
            assert_eq!(state(&rotated, at), word);
        }
        assert_eq!(state(&key(), 86_400_000), "expired");
        let json = as_json(&key(), 0).to_string();
        assert!(json.contains("\"state\":\"good\"") && !json.contains("0707"), "{json}");
        assert!(list(&[], 0).contains("no keys"));
    }
}
