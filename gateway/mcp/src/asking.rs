//! Questions of servers that a host of a revision before 2026-07-28 is asked on the stream of its request.

use rmcp::model::{ClientCapabilities, ErrorCode, ErrorData, ServerRequest};
use rmcp::service::ServiceError;
use serde_json::{Map, Value, json};
use toolgate_upstream::{NoAnswer, Question};

use crate::connecting::random;
use crate::host::Host;
use crate::raw::RawObject;

/// Most times that a server may ask during one call.
pub(crate) const ROUNDS_MAX: usize = 10;

/// Capabilities of hosts that mean that they can be asked.
pub(crate) const CAPABILITIES: [&str; 3] = ["elicitation", "sampling", "roots"];

/// Kind of a question that a person answers at a URL.
const URL: &str = "url";

/// Most questions of one answer.
const QUESTIONS_MAX: usize = 16;

/// Returns true if a result asks for input.
pub(crate) fn asks(result: &RawObject) -> bool {
    result.is("resultType", "input_required")
}

/// Asks the host what a result asks for, and sets the answers and the server's state in the parameters of the next try.
///
/// # Errors
/// The host's own error, or one that says why it can't be asked.
pub(crate) async fn ask(
    host: &Host<'_>,
    result: &RawObject,
    params: &mut Map<String, Value>,
) -> Result<(), ErrorData> {
    let questions = match result.value("inputRequests") {
        Value::Object(questions) => questions,
        _ => Map::new(),
    };
    if questions.len() > QUESTIONS_MAX {
        return Err(refused(format!("the server asks {} questions at once", questions.len())));
    }
    let mut answers = Map::new();
    for (key, question) in questions {
        answers.insert(key, answer(host, question).await?);
    }
    params.insert("inputResponses".to_owned(), Value::Object(answers));
    match result.value("requestState") {
        Value::Null => params.remove("requestState"),
        state => params.insert("requestState".to_owned(), state),
    };
    Ok(())
}

/// Puts a question of a server of an older revision to the host, and hands the answer to the server.
pub(crate) async fn put(host: &Host<'_>, question: Question) {
    let Question { method, params, answer: place } = question;
    let asked = json!({"method": method, "params": params});
    let answered = answer(host, asked).await;
    let refused =
        |error: ErrorData| NoAnswer { code: error.code.0, message: error.message.into_owned() };
    // The call may have ended.
    let _ended = place.send(answered.map_err(refused));
}

/// Tells the server of a question that nobody is asked.
pub(crate) fn refuse(question: Question, problem: &str) {
    // The call may have ended.
    let _ended = question.answer.send(Err(NoAnswer::refused(problem)));
}

/// Asks the host one question.
pub(crate) async fn answer(host: &Host<'_>, question: Value) -> Result<Value, ErrorData> {
    let request = request(question, &host.capabilities())?;
    let patience = host.gateway.config().gateway.question_timeout;
    let answer = tokio::time::timeout(patience, host.context.peer.send_request(request)).await;
    let answer = answer.map_err(|_elapsed| {
        refused("the host gave no answer to the server's question".to_owned())
    })?;
    let answer = answer.map_err(|error| match error {
        // The host's own words.
        ServiceError::McpError(error) => error,
        error => refused(error.to_string()),
    })?;
    serde_json::to_value(answer).map_err(|error| refused(error.to_string()))
}

/// Returns true if the host declares that it answers such questions.
pub(crate) fn is_declared(method: &str, params: &Value, capabilities: &ClientCapabilities) -> bool {
    match method {
        "elicitation/create" => capabilities.elicitation.as_ref().is_some_and(|takes| {
            // A host that names no kind takes forms.
            let takes_forms = takes.form.is_some() || takes.url.is_none();
            if params["mode"] == URL { takes.url.is_some() } else { takes_forms }
        }),
        "sampling/createMessage" => capabilities.sampling.is_some(),
        "roots/list" => capabilities.roots.is_some(),
        _ => false,
    }
}

/// Returns a question as a request to a host that says it answers such.
fn request(
    mut question: Value,
    capabilities: &ClientCapabilities,
) -> Result<ServerRequest, ErrorData> {
    let method = question["method"].as_str().unwrap_or_default().to_owned();
    if !is_declared(&method, &question["params"], capabilities) {
        return Err(refused(format!("the server asks for {method:?}, which this host can't do")));
    }
    if let Some(params) = question["params"].as_object_mut()
        && params.get("mode").is_some_and(|mode| mode == URL)
    {
        // 2026-07-28 has no such ID, and before it a host wants one.
        let id = || Value::from(random().unwrap_or_default());
        params.entry("elicitationId").or_insert_with(id);
    }
    serde_json::from_value(question)
        .map_err(|error| refused(format!("the server's question can't be read: {error}")))
}

pub(crate) fn refused(problem: String) -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, problem, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(deprecated, reason = "both eras: roots are deprecated in the newer")]
    fn a_host_is_asked_only_what_it_declares() {
        let capabilities = ClientCapabilities::builder().enable_roots().build();
        let roots = request(json!({"method": "roots/list", "params": {}}), &capabilities);
        assert!(matches!(roots, Ok(ServerRequest::ListRootsRequest(_))));
        for method in ["sampling/createMessage", "elicitation/create", "ping", ""] {
            let question = json!({"method": method, "params": {}});
            let refusal = request(question, &capabilities).expect_err("it is not declared");
            assert!(refusal.message.contains(&format!("{method:?}")), "{}", refusal.message);
        }
    }

    #[test]
    fn questions_at_urls_are_for_hosts_that_open_them() {
        let capabilities = |elicitation: Value| {
            serde_json::from_value(json!({"elicitation": elicitation})).expect("capabilities")
        };
        let is_asked = |mode: &str, elicitation: Value| {
            is_declared("elicitation/create", &json!({"mode": mode}), &capabilities(elicitation))
        };
        assert!(is_asked("url", json!({"url": {}})) && !is_asked("form", json!({"url": {}})));
        assert!(is_asked("form", json!({})) && !is_asked("url", json!({})));
        assert!(is_asked("form", json!({"form": {}})) && !is_asked("url", json!({"form": {}})));
        let question = json!({"method": "elicitation/create", "params": {
            "mode": "url", "message": "?", "url": "https://x"}});
        let asked = request(question, &capabilities(json!({"url": {}}))).expect("a question");
        let asked = serde_json::to_value(asked).expect("JSON");
        assert!(asked["params"]["elicitationId"].as_str().is_some_and(|id| !id.is_empty()));
    }

    #[test]
    fn only_results_that_ask_for_input_ask() {
        let asks = |result: &'static str| asks(&RawObject::parse(result).expect("an object"));
        assert!(asks(r#"{"resultType": "input_required"}"#));
        assert!(!asks(r#"{"resultType": "complete"}"#));
        assert!(!asks(r#"{"content": []}"#));
    }
}
