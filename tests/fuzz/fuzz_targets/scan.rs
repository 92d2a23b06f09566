//! Fuzz target for texts of tools and files of safety rules. Any input gives findings that name their place, or
//! mistakes.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use toolgate_core::safety::survey::{Surveyed, survey};
use toolgate_core::safety::{Beside, Rules, Scanner};

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| Scanner::new(Rules::shipped()));

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    if let Err(mistakes) = Rules::with(&text) {
        assert!(!mistakes.is_empty());
    }
    let definition = serde_json::from_str::<Value>(&text)
        .unwrap_or_else(|_| json!({"name": "t", "title": text, "description": text}));
    let beside = Beside { summary: &text, hint: &text };
    for finding in SCANNER.tool("tools[0]", &definition, beside) {
        assert!(finding.field.starts_with("tools[0]"), "{finding}");
        let shown = finding.to_string();
        assert!(shown.chars().all(|c| !c.is_control()), "{shown:?}");
    }
    let server = |name: &str| Surveyed {
        name: name.to_owned(),
        description: text.clone().into_owned(),
        tools: vec![definition.clone()],
    };
    assert_eq!(survey(&SCANNER, &[server("a"), server("b")]).len(), 2);
});
