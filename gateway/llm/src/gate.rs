//! Calls that a model makes, checked by the routing plane's Gate: is there such a tool, and do the arguments satisfy its
//! schema? It is no access control: what can't be checked in time goes to the host, which has its own say.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_client::{Client, tool_error, v1};
use toolgate_llm::envelope::CALL_TOOL_NAME;
use toolgate_llm::strategy::Api;

use crate::toolset::Toolset;
use crate::{gemini, responses};

/// Time for the check of an answer's calls.
const CHECK_MAX: Duration = Duration::from_secs(1);

/// Most calls of an answer that are checked: as many as Gate takes.
const CALLS_MAX: usize = 128;

/// Longest name that is repeated to the model, in characters.
const NAME_MAX: usize = 128;

/// Text about a call that was not run because of another one.
const NOT_RUN: &str = "Not run, because another call of the same answer was refused. Repeat it if it is still needed.";

/// Call that a host is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The provider's ID.
    pub(crate) id: String,
    pub(crate) name: String,
    /// Arguments as the model wrote them.
    pub(crate) arguments: String,
}

/// Call with Gate's verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    /// Name in the accounts, such as `allowed` or `arguments_invalid`.
    pub(crate) outcome: String,
    /// Text for the model; `None` if the call goes to the host.
    pub(crate) refusal: Option<String>,
    /// True if that text has the schema of the tool.
    pub(crate) has_schema: bool,
}

/// Circumstances of a check.
pub(crate) struct Check<'a> {
    pub(crate) plane: &'a Client,
    pub(crate) toolset: &'a Toolset,
    /// Names of the host's own tools, whose calls are not checked.
    pub(crate) own: HashSet<String>,
    /// Names of the tools that the conversation describes.
    pub(crate) shown: HashSet<String>,
    /// Name of the search as the model has it.
    pub(crate) search: &'static str,
}

impl Judged {
    fn named(outcome: &str) -> Self {
        Self { outcome: outcome.to_owned(), refusal: None, has_schema: false }
    }

    fn refused(outcome: &str, message: &str) -> Self {
        let text = json!({ "error": outcome, "message": message }).to_string();
        Self { outcome: outcome.to_owned(), refusal: Some(text), has_schema: false }
    }
}

impl Check<'_> {
    /// Judges calls. Those of the host's own tools have the outcome [`OWN`].
    pub(crate) async fn judge(&self, calls: &[Call]) -> Vec<Judged> {
        let mut judged: Vec<Judged> = calls.iter().map(|call| self.at_first(call)).collect();
        let of_plane = |call: &Call| self.toolset.of_plane(&call.name).map(str::to_owned);
        let asked: Vec<usize> = (0..calls.len().min(CALLS_MAX))
            .filter(|at| judged[*at].outcome == UNCHECKED)
            .filter(|at| of_plane(&calls[*at]).is_some())
            .collect();
        if asked.is_empty() {
            return judged;
        }
        let requested = |at: &usize| v1::RequestedCall {
            call_id: calls[*at].id.clone(),
            tool: of_plane(&calls[*at]).unwrap_or_default(),
            arguments_json: calls[*at].arguments.clone(),
            ..Default::default()
        };
        let request = v1::GateRequest {
            tenant: self.toolset.tenant.clone(),
            min_revision: self.toolset.revision,
            calls: asked.iter().map(requested).collect(),
            // What the conversation describes is known here, also of earlier turns.
            evidence: v1::Evidence::Catalog.into(),
            ..Default::default()
        };
        match self.plane.with_deadline(CHECK_MAX).gate(request).await {
            Ok(answer) => {
                for (at, verdict) in asked.into_iter().zip(&answer.verdicts) {
                    judged[at] = self.said(&calls[at], verdict);
                }
            }
            Err(error) => tracing::warn!(%error, "calls of a model were not checked"),
        }
        judged
    }

    /// Judges a call as far as the plane need not be asked.
    fn at_first(&self, call: &Call) -> Judged {
        let name: String = call.name.chars().take(NAME_MAX).collect();
        if self.own.contains(&call.name) {
            Judged::named(OWN)
        } else if self.toolset.has(&call.name) {
            Judged::named(UNCHECKED)
        } else if call.name == CALL_TOOL_NAME {
            let message =
                "The arguments hold no call. Write {\"name\": TOOL, \"arguments\": OBJECT}.";
            Judged::refused("no_call", message)
        } else {
            let message = format!("There is no tool {name:?}. Find tools with {}.", self.search);
            Judged::refused("unknown_tool", &message)
        }
    }

    fn said(&self, call: &Call, verdict: &v1::GateVerdict) -> Judged {
        if verdict.allowed {
            let is_shown = self.shown.contains(&call.name);
            return Judged::named(if is_shown { "allowed" } else { "not_shown" });
        }
        let mut told = tool_error(verdict).unwrap_or_default();
        let outcome = told["error"].as_str().unwrap_or_default().to_owned();
        // The plane's names are its own.
        let of_plane = self.toolset.of_plane(&call.name).unwrap_or_default();
        if let Some(fields) = told.as_object_mut() {
            fields.shift_remove("available");
            let message = verdict.message.replace(of_plane, &call.name);
            fields.insert("message".to_owned(), message.into());
        }
        let has_schema = told["input_schema"].is_object();
        Judged { outcome, refusal: Some(told.to_string()), has_schema }
    }
}

/// Outcome of a call of a tool of the host's own, which nobody checks.
pub(crate) const OWN: &str = "own";

/// Outcome of a call that nobody could check.
pub(crate) const UNCHECKED: &str = "unchecked";

/// Returns the results of an answer's calls, of which at least one was refused.
pub(crate) fn told(judged: &[Judged]) -> impl Iterator<Item = String> {
    judged.iter().map(|judged| judged.refusal.clone().unwrap_or_else(|| NOT_RUN.to_owned()))
}

/// Returns the calls of a whole answer's message, whose envelopes are open.
pub(crate) fn calls_of(api: Api, message: &Value) -> Vec<Call> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = |key: &str| message[key].as_array().into_iter().flatten();
    match api {
        Api::Anthropic => {
            let uses = items("content").filter(|block| block["type"] == "tool_use");
            let call = |block: &Value| Call {
                id: text(&block["id"]),
                name: text(&block["name"]),
                arguments: block["input"].to_string(),
            };
            uses.map(call).collect()
        }
        Api::OpenAiChat => {
            let read = |call: &Value, kind: &str, arguments: &str| {
                call[kind].is_object().then(|| Call {
                    id: text(&call["id"]),
                    name: text(&call[kind]["name"]),
                    arguments: text(&call[kind][arguments]),
                })
            };
            let call = |call: &Value| {
                read(call, "function", "arguments").or_else(|| read(call, "custom", "input"))
            };
            items("tool_calls").filter_map(call).collect()
        }
        Api::OpenAiResponses => responses::calls(message),
        Api::Gemini => gemini::calls(message),
    }
}

/// Returns true if a whole answer was cut off for its length, so that its last call may be.
pub(crate) fn is_cut(api: Api, answer: &Value) -> bool {
    match api {
        Api::Anthropic => answer["stop_reason"] == "max_tokens",
        Api::OpenAiChat => answer["choices"][0]["finish_reason"] == "length",
        Api::OpenAiResponses => !responses::is_whole(answer),
        Api::Gemini => !gemini::is_whole(answer),
    }
}

/// Returns true if the model can be told what became of each call of a whole answer's message.
pub(crate) fn is_answerable(api: Api, message: &Value) -> bool {
    api != Api::OpenAiResponses || responses::are_answerable(message)
}

/// Takes the calls out of a whole answer's message.
pub(crate) fn remove_calls(api: Api, message: &mut Value) {
    match api {
        Api::Anthropic => {
            if let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) {
                content.retain(|block| block["type"] != "tool_use");
            }
        }
        Api::OpenAiChat => {
            if let Some(fields) = message.as_object_mut() {
                fields.shift_remove("tool_calls");
            }
        }
        Api::OpenAiResponses => responses::remove_calls(message),
        Api::Gemini => gemini::remove_calls(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_whole_answers_are_read_and_taken_out() {
        let mut answer = json!({ "content": [
            { "type": "text", "text": "x" },
            { "type": "tool_use", "id": "1", "name": "t", "input": { "a": 1 } }] });
        let call = Call { id: "1".into(), name: "t".into(), arguments: "{\"a\":1}".into() };
        assert_eq!(calls_of(Api::Anthropic, &answer), std::slice::from_ref(&call));
        remove_calls(Api::Anthropic, &mut answer);
        assert_eq!(answer, json!({ "content": [{ "type": "text", "text": "x" }] }));
        let mut message = json!({ "content": null, "tool_calls": [
            { "id": "1", "function": { "name": "t", "arguments": "{\"a\":1}" } }] });
        assert_eq!(calls_of(Api::OpenAiChat, &message), [call]);
        remove_calls(Api::OpenAiChat, &mut message);
        assert_eq!(message, json!({ "content": null }));
        for mut odd in [json!(null), json!({ "content": "x", "tool_calls": 7, "output": 7 })] {
            for api in [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini] {
                assert!(calls_of(api, &odd).is_empty());
                remove_calls(api, &mut odd);
            }
        }
    }

    #[test]
    fn each_call_of_a_refused_answer_has_a_result() {
        let judged = [Judged::named("allowed"), Judged::refused("unknown_tool", "no")];
        let texts: Vec<String> = told(&judged).collect();
        assert_eq!(texts, [NOT_RUN, "{\"error\":\"unknown_tool\",\"message\":\"no\"}"]);
        assert!(judged.iter().all(|judged| !judged.has_schema));
    }
}
