//! Where definitions stand in a prompt.

use serde_json::{Value, json};
use toolgate_client::v1::{ActiveTool, SummaryEntry};
use toolgate_client::{SEARCH_TOOL, announce, layout};

use crate::failure::Failure;
use crate::messages::read_all;

/// The op's answer; `None` for an op that is none of these.
pub fn run(op: &str, args: &Value) -> Option<Result<Value, Failure>> {
    Some(match op {
        "layout" => laid_out(args),
        "announce" => Ok(announced(args)),
        "search_tool" => search_tool(),
        _ => return None,
    })
}

fn laid_out(args: &Value) -> Result<Value, Failure> {
    let tools: Vec<ActiveTool> = read_all(&args["tools"])?;
    let pool = summaries(&args["summaries"]);
    let system = args["system"].as_str().unwrap_or_default();
    let content = &args["content"];
    Ok(json!({
        "anthropic_system": layout::anthropic_system(system, &pool),
        "openai_system": layout::openai_system(system, &pool),
        "user_message": layout::user_message(content, &tools),
        "responses_input": layout::responses_input(content, &tools),
    }))
}

fn announced(args: &Value) -> Value {
    let loaded: Vec<&str> =
        args["loaded"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let told = args["announced"]
        .as_array()
        .map(|told| told.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>());
    let said = announce(&summaries(&args["searchable"]), &loaded, told.as_deref());
    json!({
        "full": said.full, "added": pairs(&said.added), "removed": said.removed,
        "announced": said.announced, "text": said.text(),
    })
}

fn search_tool() -> Result<Value, Failure> {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).map_err(Failure::usage);
    Ok(json!({
        "name": SEARCH_TOOL.name,
        "model_name": SEARCH_TOOL.model_name,
        "description": SEARCH_TOOL.description,
        "input_schema": parsed(&SEARCH_TOOL.input_schema_json)?,
        "annotations": parsed(&SEARCH_TOOL.annotations_json)?,
        "signature": SEARCH_TOOL.signature,
        "signature_lossy": SEARCH_TOOL.signature_lossy,
        "schema_tokens": SEARCH_TOOL.schema_tokens,
    }))
}

/// Summaries of `[name, summary]` pairs.
pub fn summaries(listed: &Value) -> Vec<SummaryEntry> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |pair: &Value| SummaryEntry { model_name: text(&pair[0]), summary: text(&pair[1]) };
    listed.as_array().into_iter().flatten().map(entry).collect()
}

/// Summaries as `[name, summary]` pairs.
pub fn pairs(entries: &[SummaryEntry]) -> Vec<Value> {
    entries.iter().map(|entry| json!([entry.model_name, entry.summary])).collect()
}
