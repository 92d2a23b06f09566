//! Results of servers that are not trusted, looked at for texts that would quarantine a tool. They are handed on as they are, and
//! people are told: a page or a mail may say anything, and its reader decides.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use serde_json::Value;

use crate::caller::Caller;
use crate::config::Trust;
use crate::gateway::Gateway;
use crate::raw::RawObject;

/// Most bytes of a result's texts that are looked at.
const TEXTS_MAX: usize = 256 << 10;

/// Most findings of a server that are told. One that names ever new tools tells no more.
const TOLD_MAX: usize = 128;

/// Findings that people were told of, once each, by server.
#[derive(Default)]
pub(crate) struct ToldSuspects(Mutex<HashMap<String, HashSet<Suspect>>>);

/// Tool whose results look like instructions by a rule.
#[derive(PartialEq, Eq, Hash)]
struct Suspect {
    /// Empty for the result of a task.
    tool: String,
    rule: Arc<str>,
}

impl ToldSuspects {
    /// Returns whether people are to be told of a finding: they were not yet.
    fn is_new(&self, server: &str, suspect: Suspect) -> bool {
        let mut told = self.0.lock();
        let told = told.entry(server.to_owned()).or_default();
        told.len() < TOLD_MAX && told.insert(suspect)
    }
}

impl Gateway {
    /// Looks at a result of a server, if that is not trusted. What would quarantine a tool is counted and told.
    pub(crate) async fn look_at(
        &self,
        caller: &Caller,
        server: &str,
        tool: &str,
        result: &RawObject,
    ) {
        let is_untrusted = |trust| trust == Trust::Untrusted;
        if !self.server(server).is_none_or(|server| is_untrusted(server.trust)) {
            return;
        }
        let texts = texts(result);
        let vetting = self.vetting().clone();
        // A long text keeps a core busy for a while.
        let looked = tokio::task::spawn_blocking(move || vetting.suspect(&texts)).await;
        let Ok(Some(finding)) = looked else { return };
        self.counts(caller).suspect.fetch_add(1, Ordering::Relaxed);
        let rule = finding.rule;
        let suspect = Suspect { tool: tool.to_owned(), rule: Arc::clone(&rule) };
        if self.told_suspects().is_new(server, suspect) {
            tracing::warn!(
                server,
                tool,
                rule = &*rule,
                "a result of a server that is not trusted looks like an instruction to models"
            );
        }
    }
}

/// Returns what models read of a result, as far as it is looked at.
fn texts(result: &RawObject) -> String {
    let mut texts = String::new();
    for item in result.items("content") {
        if texts.len() >= TEXTS_MAX {
            break;
        }
        let item: Value = serde_json::from_str(item.get()).unwrap_or_default();
        for text in [&item["text"], &item["resource"]["text"]] {
            add(text, &mut texts);
        }
    }
    if texts.len() < TEXTS_MAX {
        add(&result.value("structuredContent"), &mut texts);
    }
    texts
}

/// Adds the texts of a value, a line each.
fn add(value: &Value, texts: &mut String) {
    match value {
        Value::String(text) => {
            let left = TEXTS_MAX.saturating_sub(texts.len());
            texts.push_str(&text[..text.floor_char_boundary(left)]);
            texts.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| add(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| add(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_models_read_of_a_result_is_looked_at() {
        let of = |result: Value| texts(&RawObject::parse(result.to_string()).expect("an object"));
        let result = serde_json::json!({
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image", "data": "aW1hZ2U="},
                {"type": "resource", "resource": {"uri": "x:y", "text": "b"}},
            ],
            "structuredContent": {"rows": [{"name": "c"}, 1]},
        });
        assert_eq!(of(result), "a\nb\nc\n");
        assert_eq!(of(serde_json::json!({"content": []})), "");
        let long = serde_json::json!({"content": [{"text": "ä".repeat(TEXTS_MAX)}, {"text": "b"}]});
        assert_eq!(of(long).len(), TEXTS_MAX + 1);
    }

    #[test]
    fn a_finding_is_told_once_and_a_servers_findings_are_bounded() {
        let told = ToldSuspects::default();
        let suspect = |tool: &str| Suspect { tool: tool.to_owned(), rule: Arc::from("r") };
        assert!(told.is_new("s", suspect("a")));
        assert!(!told.is_new("s", suspect("a")));
        let numbers = 0..2 * TOLD_MAX;
        let is_told = |number: &usize| told.is_new("s", suspect(&number.to_string()));
        assert_eq!(numbers.filter(is_told).count(), TOLD_MAX - 1);
        assert!(told.is_new("other", suspect("a")), "other servers' are told");
    }
}
