//! Tests with the cases of `client-sdk/conformance`, which every client runs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolgate_client::history::{scan, state};
use toolgate_client::v1::{ActiveTool, SearchToolsRequest, SearchToolsResponse, SummaryEntry};
use toolgate_client::{Client, ClientOptions, SEARCH_TOOL, SearchAnswer, announce, layout};

fn cases(folder: &str, prefix: &str) -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance").join(folder);
    let entries = fs::read_dir(&folder).expect("the folder of cases is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let stem = path.file_stem().expect("a file's name").to_string_lossy().into_owned();
        if !stem.starts_with(prefix) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        let file: Value = serde_json::from_str(&text).expect("cases are JSON");
        for case in file["cases"].as_array().expect("cases is a list") {
            found.push((format!("{stem}: {}", case["name"]), case.clone()));
        }
    }
    assert!(!found.is_empty(), "no cases in {}", folder.display());
    found
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn summaries(listed: &Value) -> Vec<SummaryEntry> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let entry = |pair: &Value| SummaryEntry { model_name: text(&pair[0]), summary: text(&pair[1]) };
    list(listed).iter().map(entry).collect()
}

#[test]
fn prompts_are_laid_out_as_every_client_lays_them_out() {
    for (name, case) in cases("prompt", "layout") {
        let text = |tool: &Value, key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        let tool = |tool: &Value| ActiveTool {
            model_name: text(tool, "model_name"),
            description: text(tool, "description"),
            input_schema_json: text(tool, "input_schema_json"),
            signature: text(tool, "signature"),
            ..Default::default()
        };
        let tools: Vec<ActiveTool> = list(&case["tools"]).iter().map(tool).collect();
        let pool = summaries(&case["summaries"]);
        let system = case["system"].as_str().expect("a text");
        let content = &case["content"];
        let laid_out = json!({
            "anthropic_system": layout::anthropic_system(system, &pool),
            "openai_system": layout::openai_system(system, &pool),
            "user_message": layout::user_message(content, &tools),
            "responses_input": layout::responses_input(content, &tools),
        });
        assert_eq!(laid_out, case["expect"], "{name}");
    }
}

#[test]
fn announcements_are_what_every_client_announces() {
    for (name, case) in cases("prompt", "announce") {
        let loaded: Vec<&str> = list(&case["loaded"]).iter().filter_map(Value::as_str).collect();
        let told = case["announced"].as_array().map(|told| {
            told.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        });
        let said = announce(&summaries(&case["searchable"]), &loaded, told.as_deref());
        let added = said.added.iter().map(|entry| json!([entry.model_name, entry.summary]));
        let told = json!({
            "full": said.full, "added": added.collect::<Vec<_>>(), "removed": said.removed,
            "announced": said.announced, "text": said.text(),
        });
        assert_eq!(told, case["expect"], "{name}");
    }
}

#[test]
fn the_search_is_defined_as_every_client_defines_it() {
    for (name, case) in cases("search", "tool") {
        let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let defined = json!({
            "name": SEARCH_TOOL.name,
            "model_name": SEARCH_TOOL.model_name,
            "description": SEARCH_TOOL.description,
            "input_schema": parsed(&SEARCH_TOOL.input_schema_json),
            "annotations": parsed(&SEARCH_TOOL.annotations_json),
            "signature": SEARCH_TOOL.signature,
            "signature_lossy": SEARCH_TOOL.signature_lossy,
            "schema_tokens": SEARCH_TOOL.schema_tokens,
        });
        assert_eq!(defined, case["expect"], "{name}");
    }
}

#[test]
fn searches_are_answered_as_every_client_answers_them() {
    for (name, case) in cases("search", "answer") {
        let found = &case["found"];
        let text = |tool: &Value, key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        let tool = |tool: &Value| ActiveTool {
            name: text(tool, "name"),
            model_name: text(tool, "model_name"),
            description: text(tool, "description"),
            input_schema_json: text(tool, "input_schema_json"),
            signature: text(tool, "signature"),
            ..Default::default()
        };
        let pending = found["pending_servers"].as_array().into_iter().flatten();
        let answer = SearchAnswer::from_found(SearchToolsResponse {
            tools: found["tools"].as_array().into_iter().flatten().map(tool).collect(),
            message: text(found, "message"),
            deferred_tools: u32::try_from(found["deferred_tools"].as_u64().unwrap_or_default())
                .expect("a count"),
            pending_servers: pending.filter_map(Value::as_str).map(str::to_owned).collect(),
            ..Default::default()
        });
        let said: Value = serde_json::from_str(&answer.text).expect("JSON");
        assert_eq!((said, answer.failed), (case["expect"].clone(), false), "{name}");
    }
}

#[tokio::test]
async fn a_mistaken_search_is_told_as_every_client_tells_it() {
    // No request is sent.
    let client = Client::lazy("127.0.0.1:1", ClientOptions::default()).expect("an address");
    for (name, case) in cases("search", "mistake") {
        let request = SearchToolsRequest { active_set_handle: "h".into(), ..Default::default() };
        let answer = client.answer_search(&case["arguments"], request).await.expect("an answer");
        let said: Value = serde_json::from_str(&answer.text).expect("JSON");
        assert_eq!(said, case["expect"], "{name}");
        assert_eq!((answer.failed, answer.handle.as_str(), answer.found), (true, "h", None));
    }
}

#[test]
fn a_long_history_fits_the_state() {
    let turn = |turn: usize| {
        let id = format!("call_{turn}");
        let call =
            json!({ "type": "function_call", "call_id": id, "name": format!("tool_{turn}") });
        [call, json!({ "type": "function_call_output", "call_id": id, "output": "ok" })]
    };
    let messages: Vec<Value> = (0..10_000).flat_map(turn).collect();
    let history = scan(&messages, None);
    assert_eq!(history.turns, 10_000);
    assert_eq!(history.discovered.last().map(String::as_str), Some("tool_9999"));
    let state = state(&history);
    let size: usize = state.calls.iter().map(|call| call.tool.len() + 12).sum::<usize>()
        + state.discovered_tools.iter().map(|name| name.len() + 2).sum::<usize>();
    assert!((30 * 1024..56 * 1024).contains(&size), "{size} bytes");
}

#[test]
fn the_quickstart_is_the_one_of_the_readme() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("it is there");
    let readme = read("README.md");
    let example = read("examples/quickstart.rs");
    let (_, code) = readme.split_once("```rust,no_run\n").expect("a block of code");
    let (code, _) = code.split_once("```").expect("its end");
    let (_, shown) = example.split_once("\n\n").expect("a line of its own first");
    assert!(shown.starts_with(code), "{code}");
}
