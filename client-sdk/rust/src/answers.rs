//! Answers of the service, in the form that a model reads or a client stores.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};
use toolgate_proto::v1::{self, RefusalCode, SummaryEntry};

/// Returns the tool result for the model if the call was refused: a JSON object. Returns `None` for an allowed call.
///
/// `error` is the refusal code in lower case, and `message` says what to do. The other keys are left out if they are
/// empty.
#[must_use]
pub fn tool_error(verdict: &v1::GateVerdict) -> Option<Value> {
    if verdict.allowed {
        return None;
    }
    let code = verdict.code();
    let name = code.as_str_name().trim_start_matches("REFUSAL_CODE_").to_lowercase();
    let mut result = Map::new();
    result.insert("error".into(), name.into());
    result.insert("message".into(), verdict.message.as_str().into());
    let names_others = matches!(code, RefusalCode::ToolNotAvailable | RefusalCode::UnknownTool);
    if names_others || !verdict.available_tools.is_empty() {
        result.insert("available".into(), json!(verdict.available_tools));
    }
    if !verdict.search_query.is_empty() {
        result.insert("search".into(), verdict.search_query.as_str().into());
    }
    if !verdict.violations.is_empty() {
        let said =
            |v: &v1::ArgumentViolation| json!({ "pointer": v.pointer, "message": v.message });
        result.insert("violations".into(), verdict.violations.iter().map(said).collect());
    }
    if let Ok(schema) = serde_json::from_str(&verdict.input_schema_json) {
        result.insert("input_schema".into(), schema);
    }
    if !verdict.unlock.is_empty() {
        result.insert("unlock".into(), json!(verdict.unlock));
    }
    Some(Value::Object(result))
}

/// Returns the result of a search as a JSON object, for a model whose provider expands no references. `tools` holds
/// each tool in the requested detail. `deferred_tools`, `message` and `pending_servers` are left out if they are empty or 0.
#[must_use]
pub fn tool_result(found: &v1::SearchToolsResponse) -> Value {
    let mut result = Map::new();
    result.insert("tools".into(), found.tools.iter().map(shown).collect());
    if found.deferred_tools > 0 {
        result.insert("deferred_tools".into(), found.deferred_tools.into());
    }
    if !found.message.is_empty() {
        result.insert("message".into(), json!(found.message));
    }
    if !found.pending_servers.is_empty() {
        result.insert("pending_servers".into(), json!(found.pending_servers));
    }
    Value::Object(result)
}

/// Returns the result of a search as the content of a tool result for Anthropic's Messages API. The API expands these
/// references to the definitions that were sent with `defer_loading: true`.
#[must_use]
pub fn tool_references(found: &v1::SearchToolsResponse) -> Vec<Value> {
    let reference =
        |tool: &v1::ActiveTool| json!({ "type": "tool_reference", "tool_name": tool.model_name });
    found.tools.iter().map(reference).collect()
}

/// Applies a change to the summaries in `held` and returns the new list, for [`layout`](crate::layout). A changed
/// summary moves to the end, so that a cached prefix before it remains valid.
#[must_use]
pub fn apply_pool(change: &v1::SummaryPoolDelta, held: &[SummaryEntry]) -> Vec<SummaryEntry> {
    let held = if change.full { &[] } else { held };
    let added = change.added.iter().map(|entry| entry.model_name.as_str());
    let gone: HashSet<&str> =
        change.removed.iter().map(String::as_str).chain(added.clone()).collect();
    let kept = held.iter().filter(|entry| !gone.contains(entry.model_name.as_str()));
    // If a name is added twice, the last entry counts.
    let last: HashMap<&str, usize> = added.enumerate().map(|(place, name)| (name, place)).collect();
    let is_last =
        |(place, entry): &(usize, &SummaryEntry)| last[entry.model_name.as_str()] == *place;
    let new = change.added.iter().enumerate().filter(is_last).map(|(_, entry)| entry);
    kept.chain(new).cloned().collect()
}

/// Returns the tool as the model sees it, in the detail that the search asked for.
fn shown(tool: &v1::ActiveTool) -> Value {
    let name = &tool.model_name;
    match serde_json::from_str::<Value>(&tool.input_schema_json) {
        Ok(schema) => {
            json!({ "name": name, "description": tool.description, "input_schema": schema })
        }
        Err(_) if !tool.signature.is_empty() => {
            json!({ "name": name, "signature": tool.signature })
        }
        Err(_) => json!({ "name": name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(&str, &str)]) -> Vec<SummaryEntry> {
        let entry = |(name, summary): &(&str, &str)| SummaryEntry {
            model_name: (*name).into(),
            summary: (*summary).into(),
        };
        pairs.iter().map(entry).collect()
    }

    #[test]
    fn a_refusal_says_what_it_has_to_say() {
        let refused = v1::GateVerdict {
            code: RefusalCode::ArgumentsInvalid.into(),
            message: "mend it".into(),
            violations: vec![v1::ArgumentViolation { pointer: "/a".into(), message: "b".into() }],
            input_schema_json: r#"{"type":"object"}"#.into(),
            ..Default::default()
        };
        let expected = json!({
            "error": "arguments_invalid",
            "message": "mend it",
            "violations": [{ "pointer": "/a", "message": "b" }],
            "input_schema": { "type": "object" },
        });
        assert_eq!(tool_error(&refused), Some(expected));
        let unknown =
            v1::GateVerdict { code: RefusalCode::UnknownTool.into(), ..Default::default() };
        let expected = json!({ "error": "unknown_tool", "message": "", "available": [] });
        assert_eq!(tool_error(&unknown), Some(expected));
        assert_eq!(tool_error(&v1::GateVerdict { allowed: true, ..unknown }), None);
    }

    #[test]
    fn references_name_what_was_found() {
        let tool = v1::ActiveTool { model_name: "a".into(), ..Default::default() };
        let found = v1::SearchToolsResponse { tools: vec![tool], ..Default::default() };
        let expected = json!({ "type": "tool_reference", "tool_name": "a" });
        assert_eq!(tool_references(&found), [expected]);
    }

    #[test]
    fn a_change_of_the_pool_goes_to_its_end() {
        let held = entries(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let change = v1::SummaryPoolDelta {
            removed: vec!["c".into(), "x".into()],
            added: entries(&[("d", "1"), ("a", "2"), ("d", "2")]),
            ..Default::default()
        };
        let after = apply_pool(&change, &held);
        assert_eq!(after, entries(&[("b", "1"), ("a", "2"), ("d", "2")]));
        let whole = v1::SummaryPoolDelta { full: true, ..change };
        assert_eq!(apply_pool(&whole, &held), entries(&[("a", "2"), ("d", "2")]));
    }
}
