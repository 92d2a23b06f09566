//! Fuzz target for registrations. The input is the body of a `tools/list`, a NUL byte, and the arguments of a call. No
//! input may panic or take endless work. An accepted tool can be hashed, shown, parsed back from the store and called.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use toolgate_config::LimitsConfig;
use toolgate_core::identity::{MODEL_NAME_MAX, ServerName};
use toolgate_core::schema::ArgumentSchema;
use toolgate_core::tokens;
use toolgate_routing::catalog::check::{ToolCheck, Work};
use toolgate_routing::catalog::definition::Definition;
use toolgate_routing::catalog::summary::SUMMARY_TOKENS_MAX;
use toolgate_routing::catalog::tools_list::ToolsList;
use toolgate_routing::gate::envelope::Arguments;
use toolgate_routing::shard::ruled::Ruled;
use toolgate_routing::shard::tool::Tool;
use toolgate_store::{StoredTool, ToolRecord};

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(2, |byte| *byte == 0);
    let body = parts.next().unwrap_or_default();
    let arguments = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let Ok(list) = ToolsList::parse(body) else { return };
    let server = ServerName::parse("s").expect("a name");
    let settings = HashMap::new();
    let limits = LimitsConfig::default();
    let check = ToolCheck {
        server: &server,
        settings: &settings,
        limits: &limits,
        is_trusted: false,
        work: Work::default(),
    };
    for (i, text) in list.tools.iter().enumerate() {
        match check.check(i, text) {
            Ok(record) => accepted(text, record, &arguments),
            Err(rejection) => {
                assert!(rejection.field.starts_with(&format!("tools[{i}]")));
                assert!(!rejection.problem.is_empty());
            }
        }
    }
});

fn accepted(text: &str, record: ToolRecord, arguments: &str) {
    assert_eq!(record.definition, *text, "not kept byte for byte");
    assert!(tokens::count(&record.summary) <= SUMMARY_TOKENS_MAX);
    assert!(record.model_name.len() <= MODEL_NAME_MAX);
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    assert!(record.model_name.chars().all(legal), "{}", record.model_name);
    let hash = record.hash;
    let model_name = record.model_name.clone();
    let definition = Definition::parse(&record.definition).expect("it was checked");
    let stored = StoredTool { record, summary_revision: 1 };
    let tool = Tool::new(stored, definition, false, Ruled::default());
    assert!(tool.signature().text.starts_with(&model_name));
    let prompt = tool.definition.prompt_form(&model_name);
    serde_json::from_str::<serde_json::Value>(&prompt).expect("what a model is sent is JSON");
    let spelt: serde_json::Value = serde_json::from_str(text).expect("it was checked");
    let respelt = Definition::parse(&spelt.to_string()).expect("the same definition");
    assert_eq!(respelt.hash().expect("it was hashed"), hash, "the spelling changed the hash");
    let schema = ArgumentSchema::compile(tool.definition.input_schema()).expect("it was compiled");
    let Ok(arguments) = Arguments::read(arguments) else { return };
    assert!(arguments.value.is_object());
    if let Err(violations) = schema.check(&arguments.value) {
        assert!((1..=16).contains(&violations.len()));
    }
}
