//! Check for parameters without a description.

use serde_json::{Value, json};

use super::finding::{Code, Finding, Severity};
use super::tool::Tool;

/// Maximum number of parameters that a problem names; the evidence has all.
const NAMED: usize = 5;

/// Maximum depth to which references and `allOf`, `anyOf` and `oneOf` are followed.
const DEPTH_MAX: usize = 8;

/// Returns a warning if at least half of a tool's parameters have no description, and a note if fewer.
#[must_use]
pub fn check(tool: &Tool<'_>) -> Option<Finding> {
    let schema: Value = serde_json::from_str(tool.definition.input_schema()).ok()?;
    let properties = schema.get("properties")?.as_object()?;
    let is_missing = |property: &Value| !is_described(&schema, property, DEPTH_MAX);
    let missing: Vec<&str> =
        properties.iter().filter(|(_, p)| is_missing(p)).map(|(name, _)| name.as_str()).collect();
    if missing.is_empty() {
        return None;
    }
    let count = missing.len();
    let all = properties.len();
    let named = missing.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if count > NAMED { ", …" } else { "" };
    let problem = format!("{count} of {all} parameters have no description: {named}{more}");
    let severity = if count * 2 >= all { Severity::Warning } else { Severity::Note };
    let finding = Finding::warning(Code::MissingParameterDescription, tool, problem).at(severity);
    let remedy = "say of each what it is for, and in which form it is expected";
    Some(finding.remedy(remedy).evidence(json!({ "missing": missing, "parameters": all })))
}

/// Returns true if a schema or one that it refers to has a description.
fn is_described(root: &Value, schema: &Value, depth: usize) -> bool {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    if !text.trim().is_empty() || depth == 0 {
        return !text.trim().is_empty();
    }
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
    let referred = target.and_then(|place| root.pointer(place));
    let parts = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)?.as_array());
    referred.into_iter().chain(parts.flatten()).any(|part| is_described(root, part, depth - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::stock::Stock;
    use crate::lint::tool::samples::server;
    use toolgate_config::LimitsConfig;

    fn found(schema: &Value) -> Option<Finding> {
        let stock =
            Stock::check(&[server("s", &[("t", "d", schema.clone())])], &LimitsConfig::default());
        check(&Tool::all(&stock)[0])
    }

    #[test]
    fn descriptions_are_found_wherever_they_stand() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "description": "An a."},
                "b": {"$ref": "#/$defs/B"},
                "c": {"anyOf": [{"type": "null"}, {"type": "string", "description": "A c."}]},
            },
            "$defs": {"B": {"type": "string", "description": "A b."}},
        });
        assert_eq!(found(&schema), None);
        assert_eq!(found(&json!({"type": "object"})), None);
        assert_eq!(found(&json!({"type": "object", "properties": {}})), None);
    }

    #[test]
    fn the_share_decides_how_bad_it_is() {
        let one = json!({"type": "string", "description": "One."});
        let none = json!({"type": "string", "description": " "});
        let half = found(&json!({"type": "object", "properties": {"a": one, "b": none}}));
        let half = half.expect("a finding");
        assert_eq!(half.severity, Severity::Warning);
        assert!(half.problem.starts_with("1 of 2 parameters") && half.problem.ends_with(": b"));
        assert_eq!(half.evidence["missing"], json!(["b"]));
        let third =
            found(&json!({"type": "object", "properties": {"a": one, "b": none, "c": one}}));
        assert_eq!(third.expect("a finding").severity, Severity::Note);
    }
}
