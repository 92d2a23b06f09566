//! Requests while the operator has deferral switched off: tools that a host defers by itself are loaded, and nothing that
//! speaks of deferral is sent. All else keeps its bytes.

use http::HeaderMap;
use serde_json::Value;
use toolgate_llm::strategy::{Api, Endpoint, Ledger, Listing, Offer, Turn, prepare_undeferred};

use crate::chat::messages_field;
use crate::definitions::place;
use crate::{headers, raw};

/// Texts of which a request has one if tools are deferred in it, or were loaded by a search.
const TRACES: [&str; 6] = [
    "defer_loading",
    "tool_search",
    "tool_reference",
    "tool_addition",
    "tool_removal",
    "additional_tools",
];

/// Beginnings of the betas that deferral needs: tools amid a conversation, and searches for tools.
const BETAS: [&str; 3] = ["mid-conversation-tool-changes-", "inline-tools-", "tool-search-tool-"];

/// Beginning of a beta of searches for tools and of more.
const ADVANCED: &str = "advanced-tool-use-";

/// Fields that need the rest of that beta.
const ADVANCED_FIELDS: [&str; 2] = ["\"allowed_callers\"", "\"input_examples\""];

/// Returns true if a request may say something of deferral.
pub(crate) fn has_traces(headers: &HeaderMap, text: &str) -> bool {
    let needs = |beta: &str| BETAS.iter().chain([&ADVANCED]).any(|known| beta.starts_with(known));
    TRACES.iter().any(|trace| text.contains(trace)) || headers::has_beta(headers, needs)
}

/// Returns the text of a request without deferral. `None` if it can't be read.
pub(crate) fn loaded(api: Api, text: &str) -> Option<String> {
    let fields = raw::fields(text)?;
    let list = |name: &str| {
        let field = fields.iter().find(|field| field.name == name);
        let text = field.map(|field| field.text).filter(|text| text.trim_start().starts_with('['));
        text.unwrap_or("[]")
    };
    let texts = [list("tools"), list(messages_field(api))];
    let [tools, messages] = texts.map(|text| serde_json::from_str::<Vec<Value>>(text).ok());
    let tools = tools?;
    let messages = messages?;
    let offer = Offer {
        own: &tools,
        always_on: &[],
        active: &[],
        deferred: 0,
        catalog_tokens: None,
        search: false,
        deferred_names: &[],
        listing: Listing::default(),
        budget: None,
        find: &|_| None,
    };
    let turn = Turn {
        api,
        strategy: None,
        endpoint: Endpoint::default(),
        offer,
        system_tokens: 0,
        messages: &messages,
        ledger: &Ledger::default(),
        count: &|_| 0,
    };
    let prepared = prepare_undeferred(&turn).ok()?;
    let lists = [(texts[0], &tools, prepared.tools), (texts[1], &messages, prepared.messages)];
    let mut edits = Vec::new();
    for (list, before, after) in lists {
        if *before != after {
            edits.push((place(text, list), raw::graft(&Value::Array(after), list)));
        }
    }
    edits.sort_by_key(|(at, _)| at.start);
    Some(raw::edited(text, &edits))
}

/// Takes the betas that deferral needs out of the headers of a request with this text.
pub(crate) fn remove_betas(headers: &mut HeaderMap, text: &str) {
    let is_advanced = ADVANCED_FIELDS.iter().any(|field| text.contains(field));
    headers::remove_betas(headers, |beta| {
        let goes = BETAS.iter().any(|known| beta.starts_with(known));
        goes || (!is_advanced && beta.starts_with(ADVANCED))
    });
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_what_defers_is_taken_out_of_a_request() {
        let text = r#"{ "n":1.50e3, "tools" : [{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"},{ "name" : "a","defer_loading":true,"input_schema":{ "x":1.0 }} , { "name":"h\u00e9" }], "messages":[{ "role":"user","content":"h\u00e9" },{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"tool_reference","tool_name":"a"},{ "type":"text","text":"\u00e9" }]},{ "type":"text","text":"h\u00e9" }]}] }"#;
        let expected = r#"{ "n":1.50e3, "tools" : [{"name":"a","input_schema":{ "x":1.0 }},{ "name":"h\u00e9" }], "messages":[{ "role":"user","content":"h\u00e9" },{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{ "type":"text","text":"\u00e9" }]},{ "type":"text","text":"h\u00e9" }]}] }"#;
        assert_eq!(loaded(Api::Anthropic, text).as_deref(), Some(expected));
        assert_eq!(loaded(Api::Anthropic, expected).as_deref(), Some(expected));
        for unreadable in ["", "[]", r#"{"tools":[],"tools":[]}"#, r#"{"tools":[}"#] {
            assert_eq!(loaded(Api::Anthropic, unreadable), None, "{unreadable}");
        }
    }

    #[test]
    fn searches_of_openai_leave_no_trace() {
        let text = r#"{"input":[{"role":"user","content":"x"},{"type":"reasoning","id":"r"},{"type":"tool_search_call","call_id":"c"},{"type":"tool_search_output","call_id":"c","tools":[]},{"type":"function_call","call_id":"d","name":"a","arguments":"{ }"}],"tools":[{"type":"tool_search"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"a","defer_loading":true}]}]}"#;
        let expected = r#"{"input":[{"role":"user","content":"x"},{"type":"reasoning","id":"r"},{"type":"function_call","call_id":"d","name":"a","arguments":"{ }"}],"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"a"}]}]}"#;
        assert_eq!(loaded(Api::OpenAiResponses, text).as_deref(), Some(expected));
        let said = r#"{"input":"tool_search","tools":[{"type":"tool_search"}]}"#;
        let expected = r#"{"input":"tool_search","tools":[]}"#;
        assert_eq!(loaded(Api::OpenAiResponses, said).as_deref(), Some(expected));
    }

    #[test]
    fn a_beta_that_more_needs_than_deferral_stays_where_that_is_used() {
        let named = "own-2026-01-01, advanced-tool-use-2025-11-20,tool-search-tool-2025-10-19";
        let left = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("anthropic-beta", HeaderValue::from_static(named));
            assert!(has_traces(&headers, text));
            remove_betas(&mut headers, text);
            headers["anthropic-beta"].to_str().expect("ASCII").to_owned()
        };
        assert_eq!(left("{}"), "own-2026-01-01");
        let used = r#"{"tools":[{"name":"a","allowed_callers":["direct"]}]}"#;
        assert_eq!(left(used), "own-2026-01-01, advanced-tool-use-2025-11-20");
        assert!(!has_traces(&HeaderMap::new(), used));
    }
}
