//! Layout of phase 1 and phase 2 in the prompt, which keeps the provider's prompt cache valid. Phase 1 has one line per
//! tool and ends the stable prefix, at a cache breakpoint. Its bytes change only with the catalog. Phase 2 holds the
//! definitions of the active set and stands directly before the user's message. Earlier parts of the history are never
//! rewritten.

use serde_json::{Value, json};
use toolgate_proto::v1::{ActiveTool, SummaryEntry};

const PHASE_1: &str = "Tools that can be made available when they are needed, one on each line:";
const PHASE_2: &str = "Tools that are available for the following message:";

/// Formats the summary pool as text. The same summaries in the same order give the same bytes.
#[must_use]
pub fn phase_1(summaries: &[SummaryEntry]) -> String {
    let line = |entry: &SummaryEntry| format!("{}: {}", entry.model_name, one_line(&entry.summary));
    let lines: Vec<String> = summaries.iter().map(line).collect();
    [&[PHASE_1.to_owned()][..], &lines].concat().join("\n")
}

/// Formats definitions as text, one JSON object per line. A tool without a schema is given as its signature. Pass the
/// `newly_promoted` tools only, because the history already has the others.
#[must_use]
pub fn phase_2(tools: &[ActiveTool]) -> String {
    let lines: Vec<String> = tools.iter().map(definition).collect();
    [&[PHASE_2.to_owned()][..], &lines].concat().join("\n")
}

/// Returns the `system` of the Messages API: your own text, if any, then phase 1 with a cache breakpoint.
#[must_use]
pub fn anthropic_system(system: &str, summaries: &[SummaryEntry]) -> Value {
    let pool = json!({
        "type": "text",
        "text": phase_1(summaries),
        "cache_control": { "type": "ephemeral" },
    });
    if system.is_empty() { json!([pool]) } else { json!([text_block(system), pool]) }
}

/// Returns the system message of OpenAI's APIs: your own text, if any, then phase 1. OpenAI caches the longest known
/// prefix and has no breakpoints.
#[must_use]
pub fn openai_system(system: &str, summaries: &[SummaryEntry]) -> Value {
    let pool = phase_1(summaries);
    let content = if system.is_empty() { pool } else { format!("{system}\n\n{pool}") };
    json!({ "role": "system", "content": content })
}

/// Returns the user's message with phase 2 directly before it, for Anthropic and Chat Completions. Keep it unchanged in
/// the history. `content` is a text or the provider's blocks. Without tools the message has `content` only.
#[must_use]
pub fn user_message(content: &Value, tools: &[ActiveTool]) -> Value {
    if tools.is_empty() {
        return json!({ "role": "user", "content": content });
    }
    let mut blocks = vec![text_block(&phase_2(tools))];
    match content {
        Value::Array(said) => blocks.extend(said.iter().cloned()),
        Value::String(said) => blocks.push(text_block(said)),
        said => blocks.push(said.clone()),
    }
    json!({ "role": "user", "content": blocks })
}

/// Returns the items of a turn for the Responses API: phase 2, if there is any, then the user's message.
#[must_use]
pub fn responses_input(content: &Value, tools: &[ActiveTool]) -> Vec<Value> {
    let said = json!({ "role": "user", "content": content });
    if tools.is_empty() {
        return vec![said];
    }
    vec![json!({ "role": "developer", "content": phase_2(tools) }), said]
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Joins a text into one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn definition(tool: &ActiveTool) -> String {
    if tool.input_schema_json.is_empty() {
        let named = if tool.signature.is_empty() { &tool.model_name } else { &tool.signature };
        return named.clone();
    }
    let name = Value::from(tool.model_name.as_str());
    let description = Value::from(tool.description.as_str());
    let schema = minified(&tool.input_schema_json);
    format!(r#"{{"name":{name},"description":{description},"input_schema":{schema}}}"#)
}

/// Removes white space between JSON tokens and leaves all other bytes unchanged.
fn minified(json: &str) -> String {
    let mut in_text = false;
    let mut is_escaped = false;
    let stays = |c: &char| {
        if in_text {
            in_text = is_escaped || *c != '"';
            is_escaped = !is_escaped && *c == '\\';
            return true;
        }
        in_text = *c == '"';
        !matches!(c, ' ' | '\t' | '\r' | '\n')
    };
    json.chars().filter(stays).collect()
}
