//! Cost of hostile policies and tools. The policies are documents of 64 KiB that repeat one heavy condition, over 1,000
//! tools (or as many as the argument says) and a large state. Prints the time to read the document, to apply it to the
//! catalog and to evaluate the conditions of one call, and the growth of peak memory. The tools have schemas of 64 KiB:
//! the heaviest that are accepted, and some that are refused.
#![allow(clippy::print_stdout, reason = "a table is what it is for")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use toolgate_config::LimitsConfig;
use toolgate_core::identity::ServerName;
use toolgate_core::policy::Policy;
use toolgate_core::schema::ArgumentSchema;
use toolgate_core::state::{AgentState, CallStatus, PriorCall};
use toolgate_routing::catalog::check::{ToolCheck, ToolSettings, Work};
use toolgate_routing::gate::visibility::Visibilities;
use toolgate_routing::shard::ruled::RuledCatalog;
use toolgate_store::{ServerRecord, StoredServer, StoredTool};

const DOCUMENT: usize = 64 << 10;

/// Each entry is one condition. `#` differs in each copy, so that no result is reused for another.
const BOMBS: [(&str, &str); 10] = [
    ("pairs", "state.calls.all(a, state.calls.all(b, a.tool != b.tool || a.turn == #))"),
    ("growing texts", "state.scopes.map(a, a + a).map(a, a + a).map(a, a + a).size() < #"),
    ("joins", "state.scopes.filter(a, state.scopes.exists(b, a == b + 'x#')).size() > 0"),
    (
        "equal lists",
        "state.attributes.list.all(a, state.attributes.list == state.attributes.list || a == #)",
    ),
    ("regex", "state.attributes.list.all(a, !state.attributes.text.matches('[ab]*a[ab]{2}c#'))"),
    ("lists of lists", "state.calls.map(c, [c, c, c, c]).map(l, [l, l, l]).size() < #"),
    ("large constants", "state.attributes.list.map(a, [1, 2, 3, 4, 5, 6, 7, 8, #]).size() < 0"),
    ("one per tool", "tool.name + '#' in state.scopes"),
    (
        "long, one per tool",
        "tool.name + '#' in state.scopes || state.scopes.exists(s, s == tool.name + 'x')",
    ),
    ("short", "# in state.attributes.list"),
];

fn main() {
    // `cargo test --all-targets` runs benches too, and `cargo bench` gives them `--bench`.
    let tools = std::env::args().filter_map(|argument| argument.parse().ok()).next();
    let tools = tools.unwrap_or(if cfg!(debug_assertions) { 10 } else { 1_000 });
    let state = large_state();
    println!(
        "{:20} {:>6} {:>12} {:>12} {:>12} {:>10}",
        "", "rules", "read", "put under", "settle", "memory"
    );
    for (name, condition) in BOMBS {
        let (rules, document) = document(condition);
        let (policy, read) = timed(|| Policy::parse(&document));
        let Ok(policy) = policy.map(Arc::new) else {
            println!("{name:20} {rules:6} refused after {read:?}");
            continue;
        };
        let before = peak_after_reset();
        let (ruled, put) = timed(|| RuledCatalog::new(vec![server()], catalog(tools), &policy));
        let (visibilities, settle) = timed(|| Visibilities::under(&ruled.requirements, &state));
        let grown = peak_memory().saturating_sub(before) >> 20;
        let refused = if ruled.unjudged > 0 { "refused" } else { "" };
        println!(
            "{name:20} {rules:6} {read:12.1?} {put:12.1?} {settle:12.1?} {grown:6} MiB {refused}"
        );
        drop(visibilities);
    }
    schemas();
}

fn schemas() {
    println!("\n{:28} {:>7} {:>12} {:>10}", "schema", "bytes", "compile", "memory");
    for (name, schema) in heavy_schemas() {
        let text = schema.to_string();
        let before = peak_after_reset();
        let (compiled, taken) = timed(|| ArgumentSchema::compile(&text));
        let grown = peak_memory().saturating_sub(before) >> 10;
        let refused = if compiled.is_err() { "refused" } else { "" };
        println!("{name:28} {:7} {taken:12.1?} {grown:6} KiB {refused}", text.len());
    }
}

fn heavy_schemas() -> Vec<(&'static str, Value)> {
    let all_of = |count: usize, pattern: &dyn Fn(usize) -> String| json!({"allOf": (0..count).map(|i| json!({"pattern": pattern(i)})).collect::<Vec<_>>()});
    let named = |count: usize, name: &dyn Fn(usize) -> String| {
        (0..count).map(|i| (name(i), json!({}))).collect::<serde_json::Map<_, _>>()
    };
    let graph = (0..800).map(|i| {
        let to = |n: usize| json!({"$ref": format!("#/$defs/d{}", n % 800)});
        (format!("d{i}"), json!({"properties": {"a": to(i + 1), "b": to(i + 7)}}))
    });
    let graph: serde_json::Map<_, _> = graph.collect();
    let long = "x".repeat(30_000);
    let warm = json!({"$ref": "#/$defs/a", "$defs": {"a": {"pattern": "^a[b-d]+$"}}});
    vec![
        ("(none)", warm),
        ("256 of \\p{L}{60}", all_of(256, &|i| format!(r"^\p{{L}}{{60}}x{i}y0$"))),
        ("1,000 of \\d", json!({"pattern": r"\d".repeat(1_000)})),
        (
            "parts below a long name",
            json!({"properties": {long: {"anyOf": vec![json!({}); 9_900]}}}),
        ),
        ("21,000 parts", json!({"prefixItems": vec![json!({}); 21_000]})),
        ("15,990 parts", json!({"prefixItems": vec![json!({}); 15_990]})),
        ("250 patterns", all_of(250, &|i| format!("^[a-z]{{3}}x{i}$"))),
        (
            "250 patterns of names",
            json!({"patternProperties": named(250, &|i| format!("^x.*{i}$"))}),
        ),
        ("120 patterns of words", all_of(120, &|i| format!(r"^\w+-\w+\s?{i}$"))),
        ("a class, often", json!({"pattern": r"^\p{L}{35}$"})),
        ("50 with look-ahead", all_of(50, &|i| format!("^(?=.*a)(?!b{i}).*$"))),
        ("60 with look-behind", all_of(60, &|i| format!(r"(?<=\d{{3}})b{i}"))),
        ("5,000 properties", json!({"properties": named(5_000, &|i| i.to_string())})),
        ("a graph of 800 references", json!({"$ref": "#/$defs/d0", "$defs": graph})),
        ("12,000 numbers", json!({"enum": (0..12_000).collect::<Vec<_>>()})),
    ]
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn document(condition: &str) -> (usize, String) {
    let mut text = String::from("rules:\n");
    for n in 0.. {
        let condition = condition.replace('#', &n.to_string());
        let rule = format!("- {{name: r{n}, precondition: {{cel: \"{condition}\"}}}}\n");
        if text.len() + rule.len() > DOCUMENT
            || n == 1_024
            || condition.contains("matches") && n == 64
        {
            return (n, text);
        }
        text.push_str(&rule);
    }
    unreachable!("a document ends")
}

fn large_state() -> AgentState {
    let call = |n| PriorCall { tool: format!("t{n}"), status: CallStatus::Unknown, turn: n };
    let text = format!("{}b", "a".repeat(20_000));
    let attributes = json!({"list": (0..7_000).collect::<Vec<_>>(), "text": text});
    let Value::Object(attributes) = attributes else { unreachable!("it is an object") };
    AgentState {
        scopes: (0..3_000).map(|n| format!("s{n}")).collect(),
        calls: (0..10_000).map(call).collect(),
        attributes,
        ..AgentState::default()
    }
}

fn server() -> StoredServer {
    let record = ServerRecord::new(ServerName::parse("logs").expect("a good name"));
    StoredServer { record, revision: 1, updated_ms: 0, tool_count: 0 }
}

fn catalog(tools: usize) -> Vec<StoredTool> {
    let server = ServerName::parse("logs").expect("a good name");
    let limits = LimitsConfig::default();
    let settings = HashMap::<String, ToolSettings>::new();
    let check = ToolCheck {
        server: &server,
        settings: &settings,
        limits: &limits,
        is_trusted: false,
        work: Work::default(),
    };
    let tool = |n| {
        let definition =
            json!({"name": format!("search_log_{n}"), "inputSchema": {"type": "object"}});
        let record = check.check(n, &definition.to_string()).expect("a good tool");
        StoredTool { record, summary_revision: 1 }
    };
    (0..tools).map(tool).collect()
}

/// Resets the peak to the current memory use and returns it.
fn peak_after_reset() -> usize {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
    peak_memory()
}

/// Returns the peak memory use since the last reset, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
    peak.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}
