//! Tests of strategies: whole requests, turn by turn, and what holds for any conversation.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolgate_llm::render::Tool;
use toolgate_llm::strategy::{
    Api, Endpoint, Ledger, Listing, Offer, Prepared, Strategy, Turn, prepare,
};

const CASES: &str = "tests/cases/strategy";

/// Tool of a case, with its schema as text.
#[derive(Debug, Clone)]
struct Texts {
    name: String,
    description: String,
    schema: String,
}

impl Texts {
    fn all(tools: &Value) -> Vec<Self> {
        let texts = |tool: &Value| Self {
            name: text(&tool["model_name"]).to_owned(),
            description: text(&tool["description"]).to_owned(),
            schema: tool["input_schema"].to_string(),
        };
        list(tools).iter().map(texts).collect()
    }

    fn tool(&self) -> Tool<'_> {
        Tool {
            name: &self.name,
            description: &self.description,
            input_schema_json: &self.schema,
            ..Tool::default()
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<&str> {
    list(value).iter().map(text).collect()
}

/// Counts four bytes as a token.
fn count(text: &str) -> u32 {
    u32::try_from(text.len() / 4).expect("a short text")
}

/// Returns what a turn, its case or its file says.
fn said<'a>(levels: [&'a Value; 3], key: &str) -> &'a Value {
    levels.iter().find_map(|level| level.get(key)).unwrap_or(&Value::Null)
}

fn run_turn(api: Api, levels: [&Value; 3], ledger: &Ledger) -> Prepared {
    let said = |key| said(levels, key);
    let catalog = Texts::all(said("tools"));
    let find = |name: &str| catalog.iter().find(|tool| tool.name == name).map(Texts::tool);
    let named = |names: &Value| -> Vec<Tool<'_>> {
        texts(names).into_iter().map(|name| find(name).expect("in the catalog")).collect()
    };
    let always_on = named(said("always_on"));
    let active = named(said("active"));
    let names = texts(said("deferred_names"));
    let lines: Vec<String> = texts(said("listing_lines")).into_iter().map(str::to_owned).collect();
    let tokens = said("listing_tokens").as_u64();
    let asked = said("strategy").as_str();
    prepare(&Turn {
        api,
        strategy: asked.map(|name| Strategy::named(name).expect("a strategy")),
        endpoint: Endpoint {
            model: text(&said("endpoint")["model"]),
            base_url: text(&said("endpoint")["base_url"]),
            ..Endpoint::default()
        },
        offer: Offer {
            own: list(said("own")),
            always_on: &always_on,
            active: &active,
            deferred: usize::try_from(said("deferred").as_u64().expect("a number")).expect("few"),
            catalog_tokens: said("catalog_tokens").as_u64().map(|n| u32::try_from(n).expect("few")),
            search: said("search") == true,
            deferred_names: &names,
            listing: Listing {
                tokens: tokens.map_or(Listing::TOKENS, |n| u32::try_from(n).expect("few")),
                lines: &lines,
            },
            budget: None,
            find: &find,
        },
        system_tokens: 0,
        messages: list(said("messages")),
        ledger,
        count: &count,
    })
    .expect("tools have schemas")
}

/// Writes a request as cases have it: definitions in `tools` that the file knows are told by their names.
fn written(prepared: &Prepared, definitions: &Value) -> Value {
    let brief = |tool: &Value| {
        let name = tool["function"]["name"].as_str().or(tool["name"].as_str()).unwrap_or("search");
        // Texts are compared, because values are equal whatever the order of their fields.
        let texts = [&definitions[name], tool].map(Value::to_string);
        let is_known = texts[0] == texts[1];
        if is_known { json!(name) } else { tool.clone() }
    };
    json!({
        "strategy": prepared.strategy.name(),
        "reason": format!("{:?}", prepared.reason),
        "betas": prepared.betas,
        "missing": prepared.missing,
        "tools": prepared.tools.iter().map(brief).collect::<Vec<_>>(),
        "messages": prepared.messages,
    })
}

#[test]
fn requests_are_what_the_cases_say_byte_for_byte() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(CASES);
    for name in ["anthropic", "openai_chat", "openai_responses", "gemini"] {
        let api = Api::named(name).expect("an API");
        let path = folder.join(format!("{name}.json"));
        let file = fs::read_to_string(&path).expect("the cases are there");
        let file: Value = serde_json::from_str(&file).expect("cases are JSON");
        assert!(list(&file["cases"]).len() > 10, "{name}");
        for case in list(&file["cases"]) {
            let mut ledger = Ledger::default();
            for (index, turn) in list(&case["turns"]).iter().enumerate() {
                let prepared = run_turn(api, [turn, case, &file["defaults"]], &ledger);
                let written = written(&prepared, &file["definitions"]).to_string();
                assert_eq!(
                    written,
                    turn["expect"].to_string(),
                    "{name}, {}, turn {index}",
                    case["name"]
                );
                ledger = Ledger::from_json(&prepared.ledger.to_json());
            }
        }
    }
}
