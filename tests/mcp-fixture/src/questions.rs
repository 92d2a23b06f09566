//! Questions to the client: as answers that ask for input (2026-07-28) and as requests of the server (before).

use futures_util::future::join_all;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, InputRequiredResult,
    InputResponses, ProgressNotificationParam, ServerRequest,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::contents::{text, typed};
use crate::sealed;
use crate::subscribed::Subscribed;

/// Questions of a flood.
const FLOOD: usize = 200;

/// An answer that asks for input, with sealed state if there is any.
pub(crate) fn asked(
    requests: Value,
    state: Option<&str>,
) -> Result<InputRequiredResult, ErrorData> {
    Ok(InputRequiredResult::new(Some(typed(requests)?), state.map(sealed::seal)))
}

/// A form with one field.
pub(crate) fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "mode": "form",
        "message": message,
        "requestedSchema": {"type": "object", "properties": {field: {"type": kind}}, "required": [field]},
    }})
}

/// A question that the user answers at a URL, with an ID as before 2026-07-28.
pub(crate) fn question_at(url: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "mode": "url", "message": "Please look here", "url": url, "elicitationId": "the-id",
    }})
}

/// A question to the client's model.
pub(crate) fn sampling(prompt: &str, max_tokens: u32) -> Value {
    json!({"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
        "maxTokens": max_tokens,
    }})
}

/// A field of a form that the user accepted.
pub(crate) fn accepted_field(
    responses: Option<&InputResponses>,
    key: &str,
    field: &str,
) -> Option<Value> {
    let response = responses?.get(key)?;
    let accepted = response.get("action").and_then(Value::as_str) == Some("accept");
    response.get("content")?.get(field).filter(|_| accepted).cloned()
}

/// Asks an older client while its call runs, and gives back what it says as JSON.
///
/// # Errors
/// When the client can't be asked, or has left.
pub(crate) async fn ask(
    context: &RequestContext<RoleServer>,
    subscribed: &Subscribed,
    request: Value,
) -> Result<Value, ErrorData> {
    let request: ServerRequest = typed(request)?;
    let _open = subscribed.open_question();
    let answer = tokio::select! {
        answer = context.peer.send_request(request) => answer,
        () = context.ct.cancelled() => {
            return Err(ErrorData::internal_error("the call was cancelled", None));
        }
    };
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Asks an older client all that a response of the newer era wants to know, at once.
///
/// # Errors
/// As [`ask`].
pub(crate) async fn ask_all(
    context: &RequestContext<RoleServer>,
    subscribed: &Subscribed,
    wanted: &InputRequiredResult,
) -> Result<InputResponses, ErrorData> {
    let questions = wanted.input_requests.iter().flatten().map(|(key, question)| async move {
        let answer = ask(context, subscribed, json!(question)).await?;
        Ok((key.clone(), answer))
    });
    join_all(questions).await.into_iter().collect()
}

/// Asks far more than anybody would, at once, and tells what became of it.
pub(crate) async fn flood(
    context: &RequestContext<RoleServer>,
    subscribed: &Subscribed,
) -> CallToolResponse {
    let questions = (0..FLOOD).map(|number| {
        let question = form(&format!("Question {number}?"), "name", "string");
        ask(context, subscribed, question)
    });
    let answers = join_all(questions).await;
    let answered = answers.iter().filter(|answer| answer.is_ok()).count();
    text(format!("{answered} answered, {} refused", answers.len() - answered))
}

/// Asks once its call was cancelled: a question that belongs to nobody.
pub(crate) async fn late(
    context: &RequestContext<RoleServer>,
    subscribed: &Subscribed,
) -> Result<CallToolResponse, ErrorData> {
    let _open = subscribed.open_question();
    if let Some(token) = context.meta.get_progress_token() {
        // Tells the test that the call has begun.
        let begun = ProgressNotificationParam::new(token, 0.0);
        let _ = context.peer.notify_progress(begun).await;
    }
    context.ct.cancelled().await;
    let request: ServerRequest = typed(form("Late?", "name", "string"))?;
    // Nobody waits for the answer either.
    let _ = context.peer.send_request(request).await;
    Ok(text("Asked too late."))
}

/// The tools that answer with questions; none if the name is not one of theirs.
pub(crate) fn call(
    request: &CallToolRequestParams,
    capabilities: &ClientCapabilities,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let suffix = match request.name.as_ref() {
        "test_streaming_elicitation" => "elicitation",
        name => name.strip_prefix("test_input_required_result_")?,
    };
    Some(match suffix {
        "elicitation" => elicitation(request),
        "sampling" => {
            one(request, "capital_question", &sampling("What is the capital of France?", 100))
        }
        "list_roots" => {
            one(request, "client_roots", &json!({"method": "roots/list", "params": {}}))
        }
        "request_state" => with_state(request, "state-ok"),
        "tampered_state" => with_state(request, "untampered"),
        "multiple_inputs" => multiple_inputs(request),
        "multi_round" => multi_round(request),
        "capabilities" => only_declared(request, capabilities),
        _ => return None,
    })
}

fn elicitation(request: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    match accepted_field(request.input_responses.as_ref(), "user_name", "name")
        .as_ref()
        .and_then(Value::as_str)
    {
        Some(name) => Ok(text(format!("Hello, {name}!"))),
        None => {
            Ok(asked(json!({"user_name": form("What is your name?", "name", "string")}), None)?
                .into())
        }
    }
}

/// One question whose answer becomes the tool's.
fn one(
    request: &CallToolRequestParams,
    key: &str,
    question: &Value,
) -> Result<CallToolResponse, ErrorData> {
    match response(request, key) {
        Some(answer) => Ok(text(format!("{key}: {answer}"))),
        None => Ok(asked(json!({key: question}), None)?.into()),
    }
}

fn with_state(request: &CallToolRequestParams, done: &str) -> Result<CallToolResponse, ErrorData> {
    let state = opened_state(request)?;
    if state.as_deref() == Some("confirm") && response(request, "confirm").is_some() {
        return Ok(text(done));
    }
    Ok(asked(json!({"confirm": form("Please confirm", "ok", "boolean")}), Some("confirm"))?.into())
}

fn multiple_inputs(request: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    let state = opened_state(request)?;
    let answered = ["user_name", "greeting", "client_roots"]
        .iter()
        .all(|key| response(request, key).is_some());
    if state.as_deref() == Some("multiple") && answered {
        return Ok(text("all answered"));
    }
    let questions = json!({
        "user_name": form("What is your name?", "name", "string"),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": {"method": "roots/list", "params": {}},
    });
    Ok(asked(questions, Some("multiple"))?.into())
}

fn multi_round(request: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    let state = opened_state(request)?;
    let responses = request.input_responses.as_ref();
    let color = accepted_field(responses, "step2", "color");
    if let (Some(name), Some(color)) =
        (state.as_deref().and_then(|state| state.strip_prefix("step2:")), color)
    {
        return Ok(text(format!("{name} likes {color}")));
    }
    let name = accepted_field(responses, "step1", "name");
    if let (Some("step1"), Some(name)) = (state.as_deref(), name) {
        let question =
            json!({"step2": form("Step 2: What is your favorite color?", "color", "string")});
        return Ok(asked(question, Some(&format!("step2:{name}")))?.into());
    }
    let question = json!({"step1": form("Step 1: What is your name?", "name", "string")});
    Ok(asked(question, Some("step1"))?.into())
}

fn only_declared(
    request: &CallToolRequestParams,
    capabilities: &ClientCapabilities,
) -> Result<CallToolResponse, ErrorData> {
    if request.input_responses.is_some() {
        return Ok(text("answered"));
    }
    let mut questions = serde_json::Map::new();
    if capabilities.elicitation.is_some() {
        questions.insert("form".into(), form("What is your name?", "name", "string"));
    }
    if capabilities.sampling.is_some() {
        questions.insert("model".into(), sampling("Say hello", 50));
    }
    if questions.is_empty() {
        return Ok(text("this client can't be asked anything"));
    }
    Ok(asked(Value::Object(questions), None)?.into())
}

/// Returns the answer of the client to a question, if it is an object.
fn response<'a>(request: &'a CallToolRequestParams, key: &str) -> Option<&'a Value> {
    request.input_responses.as_ref()?.get(key).filter(|answer| answer.is_object())
}

/// The state that came back; an error if somebody changed it.
fn opened_state(request: &CallToolRequestParams) -> Result<Option<String>, ErrorData> {
    let Some(state) = &request.request_state else { return Ok(None) };
    match sealed::open(state) {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(ErrorData::invalid_params("requestState was changed", None)),
    }
}
