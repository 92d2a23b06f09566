//! The tools: their definitions, and the answers of those that ask nothing.
#![expect(deprecated, reason = "both eras: logging and sampling are deprecated in the newer")]

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::contents::{PNG, WAV, complete, text, typed};
use crate::questions::{ask, asked, question_at, sampling};
use crate::subscribed::Subscribed;
use crate::tasks;

/// The suite wants to see that notifications come one by one.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn list() -> Result<ListToolsResult, ErrorData> {
    let mut tools = vec![
        tool("echo", "Gives back the message", &["message"], true),
        tool("test_elicitation", "Asks the user", &["message"], true),
        mirrored_argument_tool(),
        json_schema_tool(),
        tool("test_sampling", "Asks the client's model", &["prompt"], true),
        tool("test_elicitation_at_url", "Asks the user at a URL", &["url"], true),
        tool("test_trigger_resource_update", "Tells that a resource changed", &["uri"], false),
    ];
    tools.extend(READING.iter().map(|name| tool(name, &described(name), &[], true)));
    tools.extend(CHANGING.iter().map(|name| tool(name, &described(name), &[], false)));
    tools.extend(
        tasks::TOOLS.iter().map(|(name, arguments)| tool(name, &described(name), arguments, true)),
    );
    complete(json!({"tools": tools}))
}

/// The definition that a call names; none if there is no such tool.
pub(crate) fn find(name: &str) -> Option<Tool> {
    list().ok()?.tools.into_iter().find(|tool| tool.name == name)
}

/// Tools without arguments that change nothing.
const READING: [&str; 26] = [
    "test_simple_text",
    "test_reconnection",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_missing_capability",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_subscriptions",
    "test_open_questions",
    "test_question_flood",
    "test_late_question",
];

/// Tools without arguments that change a list.
const CHANGING: [&str; 2] = ["test_trigger_tool_change", "test_trigger_prompt_change"];

fn described(name: &str) -> String {
    format!("Shows {} to a test", name.trim_start_matches("test_").replace('_', " "))
}

fn tool(name: &str, description: &str, arguments: &[&str], reads: bool) -> Value {
    let properties: serde_json::Map<String, Value> = arguments
        .iter()
        .map(|argument| ((*argument).to_owned(), json!({"type": "string"})))
        .collect();
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": arguments},
        "annotations": {"readOnlyHint": reads, "destructiveHint": !reads, "openWorldHint": false},
    })
}

/// A tool one of whose arguments is in a header as well.
fn mirrored_argument_tool() -> Value {
    let mut tool = tool("test_mirrored_argument", "Gives back the region", &["region"], true);
    tool["inputSchema"]["properties"]["region"]["x-mcp-header"] = "Region".into();
    tool
}

/// A tool whose schema has what a lossy relay would drop.
fn json_schema_tool() -> Value {
    let mut tool =
        tool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", &[], true);
    tool["inputSchema"] = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    });
    tool
}

/// Answers of tools that need nothing of the client; none if the name is not one of theirs.
pub(crate) fn call(request: &CallToolRequestParams) -> Option<Result<CallToolResponse, ErrorData>> {
    Some(match request.name.as_ref() {
        "echo" => Ok(text(argument(request, "message"))),
        "test_mirrored_argument" => Ok(text(argument(request, "region"))),
        "json_schema_2020_12_tool" => Ok(text(json!(request.arguments).to_string())),
        "test_reconnection" => Ok(text("Still connected.")),
        "test_simple_text" => Ok(text("This is a simple text response for testing.")),
        "test_image_content" => contents(json!([image()])),
        "test_audio_content" => {
            contents(json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]))
        }
        "test_embedded_resource" => contents(json!([{"type": "resource", "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        }}])),
        "test_multiple_content_types" => contents(json!([
            {"type": "text", "text": "Multiple content types test:"},
            image(),
            {"type": "resource", "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": r#"{"test":"data","value":123}"#,
            }},
        ])),
        "test_error_handling" => {
            let message = "This tool intentionally returns an error for testing";
            Ok(CallToolResult::error(vec![ContentBlock::text(message)]).into())
        }
        _ => return None,
    })
}

/// Answers of tools that send something to the client first; none if the name is not one of theirs.
pub(crate) async fn call_with_client(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    subscribed: &Subscribed,
) -> Option<Result<CallToolResponse, ErrorData>> {
    Some(match request.name.as_ref() {
        "test_tool_with_logging" | "test_logging_tool" => log(context).await,
        "test_tool_with_progress" => report_progress(context).await,
        "test_sampling" => {
            let question = sampling(&argument(request, "prompt"), 100);
            match answer(request, context, subscribed, question).await {
                Ok(Answer::Given(answer)) => {
                    Ok(text(format!("LLM response: {}", text_of(&answer))))
                }
                Ok(Answer::Wanted(question)) => Ok(question),
                Err(error) => Err(error),
            }
        }
        "test_elicitation" => {
            let schema = json!({"type": "object", "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            }, "required": ["username", "email"]});
            let message = argument(request, "message");
            elicit(request, context, subscribed, &message, schema, "User response").await
        }
        "test_elicitation_at_url" => {
            let question = question_at(&argument(request, "url"));
            match answer(request, context, subscribed, question).await {
                Ok(Answer::Given(answer)) => Ok(text(answer.to_string())),
                Ok(Answer::Wanted(question)) => Ok(question),
                Err(error) => Err(error),
            }
        }
        "test_elicitation_sep1034_defaults" => {
            let message = "Please confirm the defaults";
            elicit(request, context, subscribed, message, defaults(), "Elicitation completed").await
        }
        "test_elicitation_sep1330_enums" => {
            elicit(request, context, subscribed, "Please choose", enums(), "Elicitation completed")
                .await
        }
        _ => return None,
    })
}

async fn log(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    // Of the newer era only who names a level wants messages.
    let wanted = context.meta.protocol_version().is_none() || context.meta.log_level().is_some();
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if wanted {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
            let _ = context.peer.notify_logging_message(message).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text("Logged."))
}

async fn report_progress(
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let token = context.meta.get_progress_token();
    for progress in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let report = ProgressNotificationParam::new(token.clone(), progress).with_total(100.0);
            let _ = context.peer.notify_progress(report).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text("Done."))
}

/// Answer of a client to a question.
enum Answer {
    Given(Value),
    /// The client of the newer era says it with the next try.
    Wanted(CallToolResponse),
}

/// Asks the client in the way of its era.
async fn answer(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    subscribed: &Subscribed,
    question: Value,
) -> Result<Answer, ErrorData> {
    const KEY: &str = "answer";
    if context.meta.protocol_version().is_none() {
        return ask(context, subscribed, question).await.map(Answer::Given);
    }
    match request.input_responses.as_ref().and_then(|responses| responses.get(KEY)) {
        Some(given) => Ok(Answer::Given(typed(json!(given))?)),
        None => Ok(Answer::Wanted(asked(json!({KEY: question}), None)?.into())),
    }
}

async fn elicit(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    subscribed: &Subscribed,
    message: &str,
    schema: Value,
    label: &str,
) -> Result<CallToolResponse, ErrorData> {
    let question = json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": message, "requestedSchema": schema,
    }});
    let answer = match answer(request, context, subscribed, question).await? {
        Answer::Given(answer) => answer,
        Answer::Wanted(question) => return Ok(question),
    };
    let action = answer.get("action").and_then(Value::as_str).unwrap_or_default();
    let content = answer.get("content").unwrap_or(&Value::Null);
    Ok(text(format!("{label}: action={action}, content={content}")))
}

fn defaults() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    }, "required": []})
}

fn enums() -> Value {
    let titled = |values: [&str; 3], titles: [&str; 3]| {
        let pairs = values.iter().zip(titles);
        pairs.map(|(value, title)| json!({"const": value, "title": title})).collect::<Vec<_>>()
    };
    let options = ["option1", "option2", "option3"];
    let values = ["value1", "value2", "value3"];
    json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {
            "type": "string", "oneOf": titled(values, ["First Option", "Second Option", "Third Option"]),
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {
            "type": "array", "items": {"anyOf": titled(values, ["First Choice", "Second Choice", "Third Choice"])},
        },
    }, "required": []})
}

fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

fn contents(contents: Value) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(typed(contents)?).into())
}

pub(crate) fn argument(request: &CallToolRequestParams, name: &str) -> String {
    let argument = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
    argument.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The text of a model's message, whose content is one block or a list of them.
fn text_of(answer: &Value) -> &str {
    let content = &answer["content"];
    content["text"].as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default()
}
