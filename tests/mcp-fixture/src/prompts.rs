//! Prompts: plain, with arguments, with a resource, with a picture, and one that asks the user first.

use rmcp::ErrorData;
use rmcp::model::{GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult};
use serde_json::{Value, json};

use crate::contents::{PNG, complete};
use crate::questions::{accepted_field, asked, form};

pub(crate) fn list() -> Result<ListPromptsResult, ErrorData> {
    complete(json!({"prompts": [
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]}))
}

pub(crate) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let argument = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
        argument.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    match request.name.as_str() {
        "test_simple_prompt" => messages(&[text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => messages(&[text(&format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1"),
            argument("arg2")
        ))]),
        "test_prompt_with_embedded_resource" => messages(&[
            json!({"type": "resource", "resource": {
                "uri": argument("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            }}),
            text("Please process the embedded resource above."),
        ]),
        "test_prompt_with_image" => messages(&[
            json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
            text("Please analyze the image above."),
        ]),
        "test_input_required_result_prompt" => {
            match accepted_field(request.input_responses.as_ref(), "user_context", "context") {
                Some(context) => messages(&[text(&format!("Context: {context}"))]),
                None => Ok(asked(
                    json!({"user_context": form("What context should the prompt use?", "context", "string")}),
                    None,
                )?
                .into()),
            }
        }
        other => Err(ErrorData::invalid_params(format!("no prompt {other}"), None)),
    }
}

fn messages(contents: &[Value]) -> Result<GetPromptResponse, ErrorData> {
    let messages: Vec<Value> =
        contents.iter().map(|content| json!({"role": "user", "content": content})).collect();
    complete::<GetPromptResult>(json!({"messages": messages})).map(GetPromptResponse::from)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn prompt(name: &str, arguments: &[&str]) -> Value {
    let arguments: Vec<Value> = arguments
        .iter()
        .map(|argument| json!({"name": argument, "description": format!("The argument {argument}"), "required": true}))
        .collect();
    json!({"name": name, "description": format!("The prompt {name} of the fixture"), "arguments": arguments})
}
