//! Keys of hosts' entries that an entry of a gateway does not carry over, and what does the same there.

use serde_json::{Map, Value};

use crate::Host;
use crate::found::is_off;

/// Keys that are carried over. The transport is found by asking.
const CARRIED: [&str; 18] = [
    "type",
    "transport",
    "command",
    "args",
    "env",
    "environment",
    "cwd",
    "url",
    "httpUrl",
    "serverUrl",
    "headers",
    "disabled",
    "enabled",
    // Codex.
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "env_vars",
    // Zed: where the entry comes from.
    "source",
];

/// Keys of the command within an entry of Zed that are carried over.
const OF_COMMAND: [&str; 5] = ["path", "command", "args", "env", "cwd"];

/// Keys whose values are texts by name.
const TABLES: [&str; 5] = ["env", "environment", "headers", "http_headers", "env_http_headers"];

/// Keys that are not carried over, and what does the same in the gateway's file.
const REMEDIES: [(&[&str], &str); 5] = [
    (
        &["includeTools", "enabled_tools"],
        "tools = { allow = [\"NAME\"] } in the new entry does the same",
    ),
    (
        &["excludeTools", "disabled_tools"],
        "tools = { deny = [\"NAME\"] } in the new entry does the same",
    ),
    (
        &["oauth", "auth", "scopes", "oauth_resource"],
        "oauth = { client_id = \"ID\", scopes = [\"SCOPE\"] } in the new entry is for logins",
    ),
    (&["timeout", "tool_timeout_sec"], "gateway.call_timeout is that of all servers"),
    (&["trust"], "trust = \"trusted\" in the new entry believes what its tools say of themselves"),
];

/// Returns true for a host whose entries may name a file of variables.
pub(crate) fn has_env_file(host: Host) -> bool {
    matches!(host, Host::Cursor | Host::Vscode)
}

/// Returns the reason why an entry names no server that a gateway could have.
pub(crate) fn left_out(name: &str, entry: &Value) -> String {
    match entry.as_object() {
        Some(entry) if is_off(entry) => format!("`{name}` is turned off, and is left out"),
        _ => format!("`{name}` has neither a command nor a URL, and is left out"),
    }
}

/// Returns true for a value that says what is so without it.
fn is_default(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Returns remarks on what of an entry is not carried over. Values are never in them.
pub(crate) fn remarks(host: Host, name: &str, entry: &Map<String, Value>) -> Vec<String> {
    let has_url = ["url", "httpUrl", "serverUrl"].iter().any(|key| entry.contains_key(*key));
    let is_env_file = |key: &str| key == "envFile" && has_env_file(host) && !has_url;
    let is_carried = |key: &str| CARRIED.contains(&key) || is_env_file(key);
    let mut remarks = Vec::new();
    for (key, value) in entry {
        if !is_carried(key) && !is_default(value) {
            remarks.push(remark(&format!("{name}.{key}"), key));
        } else if is_carried(key) && TABLES.contains(&key.as_str()) {
            remarks.extend(odd_values(&format!("{name}.{key}"), value));
        }
    }
    if let Some(inner) = entry.get("command").and_then(Value::as_object) {
        let others = inner.keys().filter(|key| !OF_COMMAND.contains(&key.as_str()));
        remarks.extend(others.map(|key| remark(&format!("{name}.command.{key}"), key)));
        let odd = |value| odd_values(&format!("{name}.command.env"), value);
        remarks.extend(inner.get("env").map(odd).unwrap_or_default());
    }
    remarks
}

fn remark(place: &str, key: &str) -> String {
    let remedy = REMEDIES.iter().find(|(keys, _)| keys.contains(&key));
    let remedy = remedy.map(|(_, remedy)| format!(": {remedy}")).unwrap_or_default();
    format!("`{place}` is not carried over{remedy}")
}

/// Returns remarks on values of a table that are no texts.
fn odd_values(place: &str, table: &Value) -> Vec<String> {
    let Some(table) = table.as_object() else {
        return vec![format!("`{place}` is no table of texts, and is not carried over")];
    };
    let odd =
        table.iter().filter(|(_, value)| value.is_array() || value.is_object() || value.is_null());
    odd.map(|(key, _)| format!("`{place}.{key}` is no text, and is not carried over")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(host: Host, entry: &Value) -> Vec<String> {
        remarks(host, "a", entry.as_object().expect("an object"))
    }

    #[test]
    fn keys_that_are_not_carried_over_are_told_with_what_does_the_same() {
        let of_gemini = json!({"httpUrl": "https://x", "trust": true, "timeout": 5,
            "includeTools": ["b"], "description": "hush", "headers": {"X": "hush"}});
        let wanted = [
            "`a.description` is not carried over",
            "`a.includeTools` is not carried over: tools = { allow = [\"NAME\"] } in the new entry does the same",
            "`a.timeout` is not carried over: gateway.call_timeout is that of all servers",
            "`a.trust` is not carried over: trust = \"trusted\" in the new entry believes what its tools say of themselves",
        ];
        let mut of_gemini = told(Host::GeminiCli, &of_gemini);
        of_gemini.sort();
        assert_eq!(of_gemini, wanted);
        let of_zed = json!({"source": "custom", "settings": {"a": 1}, "other": [], "off": false,
            "command": {"path": "x", "args": [], "timeout": 1, "env": {"B": {}}}});
        let wanted = [
            "`a.settings` is not carried over",
            "`a.command.timeout` is not carried over: gateway.call_timeout is that of all servers",
            "`a.command.env.B` is no text, and is not carried over",
        ];
        assert_eq!(told(Host::Zed, &of_zed), wanted);
        let of_codex = json!({"url": "https://x", "bearer_token_env_var": "T", "http_headers": {},
            "env_http_headers": {"X": "Y"}, "env_vars": ["Z"], "enabled": true, "cwd": "/"});
        assert!(told(Host::Codex, &of_codex).is_empty());
    }

    #[test]
    fn a_file_of_variables_is_carried_over_where_the_host_reads_it() {
        let program = json!({"command": "x", "envFile": ".env"});
        let page = json!({"url": "https://x", "envFile": ".env"});
        assert!(told(Host::Vscode, &program).is_empty() && told(Host::Cursor, &program).is_empty());
        let wanted = ["`a.envFile` is not carried over"];
        assert_eq!(told(Host::ClaudeCode, &program), wanted);
        assert_eq!(told(Host::Vscode, &page), wanted);
    }

    #[test]
    fn entries_that_name_no_server_are_told() {
        let told = left_out("a", &json!({"command": "x", "disabled": true}));
        assert_eq!(told, "`a` is turned off, and is left out");
        for entry in [json!({"settings": {}}), json!(7)] {
            let told = left_out("a", &entry);
            assert_eq!(told, "`a` has neither a command nor a URL, and is left out");
        }
    }
}
