//! Tests with the cases of `client-sdk/conformance`, which every client runs.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolgate_client::history::{Reason, compacted, scan, strip};
use toolgate_client::render::{
    AnthropicOptions, RenderError, Rendered, SearchTool, anthropic, gemini, mcp, openai_chat,
    openai_responses,
};
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

fn seen(messages: &[Value], snapshot: Option<&Value>) -> Value {
    let mut snapshot = scan(messages, snapshot).snapshot();
    let fields = snapshot.as_object_mut().expect("a snapshot is an object");
    assert_eq!(fields.remove("type"), Some(json!("toolgate_snapshot")));
    assert_eq!(fields.remove("version"), Some(json!(1)));
    snapshot
}

#[test]
fn scan_reads_what_every_client_reads() {
    for (name, case) in cases("history", "scan-") {
        assert_eq!(seen(list(&case["messages"]), case.get("snapshot")), case["expect"], "{name}");
    }
}

#[test]
fn scanning_again_after_a_compaction_changes_nothing() {
    let mut covered = 0;
    for (name, case) in cases("history", "scan-") {
        let calls = list(&case["expect"]["calls"]);
        let ids: HashSet<&Value> = calls.iter().map(|call| &call["id"]).collect();
        if ids.len() < calls.len() || ids.contains(&json!("")) {
            continue;
        }
        let messages = list(&case["messages"]);
        let kept = compacted(messages, messages.to_vec(), case.get("snapshot"));
        let again = seen(&kept, None);
        assert_eq!(again["calls"], case["expect"]["calls"], "{name}");
        assert_eq!(again["discovered"], case["expect"]["discovered"], "{name}");
        covered += 1;
    }
    assert!(covered > 20, "{covered} cases");
}

#[test]
fn strip_takes_out_what_every_client_takes_out() {
    for (name, case) in cases("history", "strip") {
        let available: Vec<&str> =
            list(&case["available"]).iter().filter_map(Value::as_str).collect();
        let references = case["references"] == true;
        let stripped = strip(list(&case["messages"]), &available, references);
        assert_eq!(json!(stripped.messages), case["expect"]["messages"], "{name}");
        let removed: Vec<Value> = stripped
            .removed
            .iter()
            .map(|removed| {
                let reason = match removed.reason {
                    Reason::Vanished => "vanished",
                    Reason::Unsupported => "unsupported",
                };
                json!({
                    "message": removed.message, "kind": removed.kind,
                    "name": removed.name, "reason": reason,
                })
            })
            .collect();
        assert_eq!(json!(removed), case["expect"]["removed"], "{name}");
        let again = strip(&stripped.messages, &available, references);
        assert_eq!((again.messages, again.removed), (stripped.messages, Vec::new()), "{name}");
    }
}

fn active_tools(tools: &Value) -> Vec<ActiveTool> {
    let as_text = |tool: &Value, key: &str| tool.get(key).map(Value::to_string).unwrap_or_default();
    let active = |tool: &Value| ActiveTool {
        model_name: tool["model_name"].as_str().expect("a name").into(),
        description: tool["description"].as_str().expect("a description").into(),
        input_schema_json: as_text(tool, "input_schema"),
        output_schema_json: as_text(tool, "output_schema"),
        annotations_json: as_text(tool, "annotations"),
        ..Default::default()
    };
    tools.as_array().into_iter().flatten().map(active).collect()
}

fn render(provider: &str, case: &Value) -> Result<Rendered, RenderError> {
    let tools = active_tools(&case["tools"]);
    match provider {
        "gemini" => gemini(&tools),
        "mcp" => mcp(&tools),
        "openai_chat" => openai_chat(&tools),
        "openai_responses" => openai_responses(&tools),
        "anthropic" => {
            let options = &case["options"];
            let deferred = active_tools(&options["deferred"]);
            let listed = options["unsupported"].as_array().into_iter().flatten();
            let unsupported: Vec<&str> = listed.filter_map(Value::as_str).collect();
            let default = AnthropicOptions::default();
            anthropic(
                &tools,
                &AnthropicOptions {
                    deferred: &deferred,
                    model: options["model"].as_str().unwrap_or_default(),
                    search_tool: match options.get("search_tool") {
                        None => default.search_tool,
                        Some(Value::Null) => None,
                        Some(named) if named == "regex" => Some(SearchTool::Regex),
                        Some(other) => panic!("no search tool {other}"),
                    },
                    unsupported: if unsupported.is_empty() {
                        default.unsupported
                    } else {
                        &unsupported
                    },
                    cache_breakpoint: options["cache_breakpoint"] == true,
                },
            )
        }
        other => panic!("no renderer for {other}"),
    }
}

#[test]
fn tools_are_rendered_as_every_client_renders_them() {
    for (name, case) in cases("render", "") {
        let (provider, _) = name.split_once(':').expect("a file's name");
        let mut rendered = render(provider, &case).expect("cases have schemas");
        assert_eq!(json!(rendered.tools), case["expect"]["tools"], "{name}");
        let loss = |loss: &Value| {
            ["tool", "pointer", "keyword", "note"].map(|key| loss[key].as_str().map(str::to_owned))
        };
        let mut expected: Vec<_> = list(&case["expect"]["losses"]).iter().map(loss).collect();
        expected.sort();
        rendered.losses.sort();
        let losses = rendered.losses.into_iter();
        let losses: Vec<_> =
            losses.map(|l| [l.tool, l.pointer, l.keyword, l.note].map(Some)).collect();
        assert_eq!(losses, expected, "{name}");
    }
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
fn a_tool_without_its_schema_is_an_error_that_says_what_to_do() {
    let nameless = ActiveTool { model_name: "a".into(), ..Default::default() };
    let broken = ActiveTool { input_schema_json: "{".into(), ..nameless.clone() };
    for render in [openai_chat, openai_responses, gemini, mcp] {
        let error = render(std::slice::from_ref(&nameless)).expect_err("no schema");
        assert_eq!(error.to_string(), "a came without its schema: route with DETAIL_SCHEMAS");
        let error = render(std::slice::from_ref(&broken)).expect_err("no JSON");
        assert_eq!(error.to_string(), "the inputSchema of a is not JSON");
    }
}

#[test]
fn a_tool_that_came_as_a_signature_has_it_for_a_description() {
    let signature = "mcp__git__log(count?: integer) - Shows commits.";
    let brief = ActiveTool {
        model_name: "mcp__git__log".into(),
        signature: signature.into(),
        ..Default::default()
    };
    let rendered = mcp(std::slice::from_ref(&brief)).expect("it is rendered");
    assert_eq!(rendered.tools[0]["description"], signature);
    assert_eq!(rendered.tools[0]["inputSchema"], json!({ "type": "object" }));
    for render in [openai_chat, openai_responses, gemini] {
        let rendered = render(std::slice::from_ref(&brief)).expect("it is rendered");
        assert!(rendered.tools[0].to_string().contains("Shows commits"), "{:?}", rendered.tools);
    }
}

#[test]
fn a_schema_that_grows_when_it_is_written_out_stays_bounded() {
    // Each level refers to the next one twice, which would give 2^40 schemas when expanded.
    let definition = |level: usize| {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        (format!("d{level}"), json!({ "type": "object", "properties": { "a": next, "b": next } }))
    };
    let definitions: serde_json::Map<String, Value> = (0..40).map(definition).collect();
    let schema = json!({
        "type": "object",
        "properties": { "x": { "$ref": "#/$defs/d0" } },
        "$defs": definitions,
    });
    let bomb = ActiveTool {
        model_name: "bomb".into(),
        input_schema_json: schema.to_string(),
        ..Default::default()
    };
    let rendered = gemini(&[bomb]).expect("it has a schema");
    assert!(json!(rendered.tools).to_string().len() < 1_000_000);
    assert!(rendered.losses.iter().any(|loss| loss.note.starts_with("too large")));
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
    let state = history.state();
    let size: usize = state.calls.iter().map(|call| call.tool.len() + 12).sum::<usize>()
        + state.discovered_tools.iter().map(|name| name.len() + 2).sum::<usize>();
    assert!((30 * 1024..56 * 1024).contains(&size), "{size} bytes");
}

#[test]
fn a_long_answer_to_a_search_is_read_within_a_bound() {
    let searched = |answer: String| {
        let call =
            json!({ "type": "function_call", "call_id": "s1", "name": SEARCH_TOOL.model_name });
        let output = json!({ "type": "function_call_output", "call_id": "s1", "output": answer });
        scan(&[call, output], None).discovered.len()
    };
    let tool = |n: usize| json!({ "name": format!("tool_{n}"), "input_schema": { "title": "x".repeat(5_000) } });
    let answer = |tools: usize| json!({ "tools": (0..tools).map(tool).collect::<Vec<_>>() });
    assert_eq!(searched(answer(100).to_string()), 100);
    assert_eq!(searched(answer(220).to_string()), 0);
    assert_eq!(searched(format!("{{\"tools\": {}", "[".repeat(100_000))), 0);
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
