//! Additions as text: for models that call tools through the envelope, and of what can be found.

use serde_json::{Value, json};

use super::plan::Defined;
use super::{Api, anthropic};

/// First line of an addition.
const FIRST_LINE: &str = "[Toolgate] More tools. Call them only through toolgate_call_tool:";

/// Returns the text that describes tools.
pub(super) fn describing(tools: &[Defined]) -> String {
    let lines = tools.iter().map(|tool| tool.definition.to_string());
    std::iter::once(FIRST_LINE.to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}

/// Adds a text at the end of the last message, or as a message of its own if that takes no text.
pub(super) fn add(api: Api, sent: &mut Vec<Value>, text: &str) {
    if !sent.last_mut().is_some_and(|last| append(api, last, text)) {
        sent.push(match api {
            Api::Gemini => json!({ "role": "user", "parts": [{ "text": text }] }),
            Api::Anthropic | Api::OpenAiChat | Api::OpenAiResponses => {
                json!({ "role": "user", "content": text })
            }
        });
    }
}

/// Appends a text to a message. Returns false if it takes none.
fn append(api: Api, message: &mut Value, text: &str) -> bool {
    let is_output = message.get("output").is_some();
    let key = match api {
        Api::Gemini => "parts",
        Api::OpenAiResponses if is_output => "output",
        Api::Anthropic | Api::OpenAiChat | Api::OpenAiResponses => "content",
    };
    match message.get_mut(key) {
        Some(Value::String(content)) => {
            if !content.is_empty() {
                content.push_str("\n\n");
            }
            content.push_str(text);
        }
        Some(Value::Array(content)) => content.push(match api {
            Api::Gemini => json!({ "text": text }),
            Api::OpenAiResponses => json!({ "type": "input_text", "text": text }),
            Api::Anthropic | Api::OpenAiChat => json!({ "type": "text", "text": text }),
        }),
        _ => return false,
    }
    if api == Api::Anthropic {
        anthropic::settle_texts(message);
    }
    true
}
