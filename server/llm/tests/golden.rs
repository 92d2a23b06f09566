//! Tests with cases: of what is read from histories, which every client reads alike, and of what is rendered.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolgate_llm::SEARCH_TOOL_NAME;
use toolgate_llm::history::{Reason, compacted, scan, strip};
use toolgate_llm::render::{
    AnthropicOptions, RenderError, Rendered, SearchTool, Tool, anthropic, gemini, mcp, openai_chat,
    openai_responses,
};

/// Folder of the cases that every client runs.
const SHARED: &str = "../../client-sdk/conformance";

/// Folder of the cases of this crate alone.
const OWN: &str = "tests/cases";

fn cases(root: &str, folder: &str, prefix: &str) -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(root).join(folder);
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
    for (name, case) in cases(SHARED, "history", "scan-") {
        assert_eq!(seen(list(&case["messages"]), case.get("snapshot")), case["expect"], "{name}");
    }
}

#[test]
fn scanning_again_after_a_compaction_changes_nothing() {
    let mut covered = 0;
    for (name, case) in cases(SHARED, "history", "scan-") {
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
    for (name, case) in cases(SHARED, "history", "strip") {
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

/// Tool of a case, with its schemas as texts.
struct Texts {
    name: String,
    description: String,
    input_schema: String,
    output_schema: String,
    annotations: String,
}

impl Texts {
    fn all(tools: &Value) -> Vec<Self> {
        let json =
            |tool: &Value, key: &str| tool.get(key).map(Value::to_string).unwrap_or_default();
        let texts = |tool: &Value| Self {
            name: tool["model_name"].as_str().expect("a name").into(),
            description: tool["description"].as_str().expect("a description").into(),
            input_schema: json(tool, "input_schema"),
            output_schema: json(tool, "output_schema"),
            annotations: json(tool, "annotations"),
        };
        tools.as_array().into_iter().flatten().map(texts).collect()
    }

    fn tool(&self) -> Tool<'_> {
        Tool {
            name: &self.name,
            description: &self.description,
            input_schema_json: &self.input_schema,
            output_schema_json: &self.output_schema,
            annotations_json: &self.annotations,
            signature: "",
        }
    }
}

fn render(provider: &str, case: &Value) -> Result<Rendered, RenderError> {
    let texts = Texts::all(&case["tools"]);
    let tools: Vec<Tool<'_>> = texts.iter().map(Texts::tool).collect();
    match provider {
        "gemini" => gemini(&tools),
        "mcp" => mcp(&tools),
        "openai_chat" => openai_chat(&tools),
        "openai_responses" => openai_responses(&tools),
        "anthropic" => {
            let options = &case["options"];
            let texts = Texts::all(&options["deferred"]);
            let deferred: Vec<Tool<'_>> = texts.iter().map(Texts::tool).collect();
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
    for (name, case) in cases(OWN, "render", "") {
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
    let schema = schema.to_string();
    let bomb = Tool { name: "bomb", input_schema_json: &schema, ..Tool::default() };
    let rendered = gemini(&[bomb]).expect("it has a schema");
    assert!(json!(rendered.tools).to_string().len() < 1_000_000);
    assert!(rendered.losses.iter().any(|loss| loss.note.starts_with("too large")));
}

#[test]
fn a_long_answer_to_a_search_is_read_within_a_bound() {
    let searched = |answer: String| {
        let call = json!({ "type": "function_call", "call_id": "s1", "name": SEARCH_TOOL_NAME });
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
fn a_tool_without_its_schema_is_an_error_that_says_what_to_do() {
    let nameless = Tool { name: "a", ..Default::default() };
    let broken = Tool { input_schema_json: "{", ..nameless };
    for render in [openai_chat, openai_responses, gemini, mcp] {
        let error = render(&[nameless]).expect_err("no schema");
        assert_eq!(error.to_string(), "a came without its schema: route with DETAIL_SCHEMAS");
        let error = render(&[broken]).expect_err("no JSON");
        assert_eq!(error.to_string(), "the inputSchema of a is not JSON");
    }
}

#[test]
fn a_tool_that_came_as_a_signature_has_it_for_a_description() {
    let signature = "mcp__git__log(count?: integer) - Shows commits.";
    let brief = Tool { name: "mcp__git__log", signature, ..Default::default() };
    let rendered = mcp(&[brief]).expect("it is rendered");
    assert_eq!(rendered.tools[0]["description"], signature);
    assert_eq!(rendered.tools[0]["inputSchema"], json!({ "type": "object" }));
    for render in [openai_chat, openai_responses, gemini] {
        let rendered = render(&[brief]).expect("it is rendered");
        assert!(rendered.tools[0].to_string().contains("Shows commits"), "{:?}", rendered.tools);
    }
}
