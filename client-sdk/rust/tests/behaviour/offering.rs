//! The search as a tool of the model: the searches that its calls become, and mistakes of the model and of the caller.

use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use toolgate_client::{SearchAnswer, v1};

use crate::fake::Script;
use crate::{connect, options};

fn request() -> v1::SearchToolsRequest {
    let state = v1::AgentState { scopes: vec!["s".into()], ..Default::default() };
    v1::SearchToolsRequest {
        active_set_handle: "h1".into(),
        state: Some(state),
        ..Default::default()
    }
}

fn names(answer: &SearchAnswer) -> Vec<&str> {
    answer.tools().iter().map(|tool| tool.model_name.as_str()).collect()
}

#[tokio::test]
async fn a_call_becomes_a_search() {
    let script = Script::default();
    let client = connect(&script, options()).await;
    let written = json!(r#"{"query": "git log", "max_results": 3}"#);
    for arguments in [json!({ "query": "git log", "max_results": 3 }), written] {
        let answer = client.answer_search(&arguments, request()).await.expect("an answer");
        assert_eq!((answer.failed, answer.handle.as_str()), (false, "h2"));
        assert_eq!(names(&answer), ["mcp__git__log"]);
        assert_eq!(answer.text, r#"{"tools":[{"name":"mcp__git__log"}]}"#);
    }
    let asked = v1::SearchToolsRequest {
        tenant: "acme".into(),
        query: "git log".into(),
        max_results: Some(3),
        detail: v1::Detail::References.into(),
        ..request()
    };
    assert_eq!(script.searches(), [asked.clone(), asked]);
}

#[tokio::test]
async fn what_the_call_does_not_say_is_absent() {
    let script = Script::default();
    let client = connect(&script, options()).await;
    let schemas = v1::SearchToolsRequest { detail: v1::Detail::Schemas.into(), ..request() };
    let arguments = json!({ "query": "git", "max_results": null });
    client.answer_search(&arguments, schemas.clone()).await.expect("an answer");
    let asked = &script.searches()[0];
    assert_eq!((asked.max_results, asked.detail), (None, schemas.detail));
}

fn refusal(field: Option<&str>, limit: &str) -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info("INVALID_FIELD", "toolgate", [("limit".into(), limit.into())]);
    if let Some(field) = field {
        details.add_bad_request_violation(field, "is blank");
    }
    Status::with_error_details(Code::InvalidArgument, "the query is blank", details)
}

#[tokio::test]
async fn what_the_service_refuses_of_the_models_is_told_to_the_model() {
    let refused = [refusal(Some("query"), ""), refusal(None, "limits.max_intent_size")];
    let client = connect(&Script::failing(refused), options()).await;
    for _ in 0..2 {
        let answer =
            client.answer_search(&json!({ "query": " " }), request()).await.expect("an answer");
        let said: Value = serde_json::from_str(&answer.text).expect("JSON");
        let expected = json!({ "error": "arguments_invalid", "message": "the query is blank" });
        assert_eq!((said, answer.failed, answer.handle.as_str()), (expected, true, "h1"));
        assert_eq!((names(&answer), &answer.found), (vec![], &None));
    }
}

#[tokio::test]
async fn what_it_refuses_of_the_callers_is_an_error() {
    let refused =
        [refusal(Some("state"), ""), refusal(None, "limits.max_state_size"), refusal(None, "")];
    let client = connect(&Script::failing(refused), options()).await;
    for _ in 0..3 {
        let error = client.answer_search(&json!({ "query": "x" }), request()).await;
        assert!(error.expect_err("refused").answer().is_some());
    }
}
