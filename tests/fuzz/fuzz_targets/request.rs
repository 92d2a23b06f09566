//! Fuzz target for the LLM proxy's reading and writing of requests. What is not changed keeps its bytes, and what is written
//! reads as the value that it was made of. The first byte selects the API, or a part.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_gateway_llm::fuzzing::{Api, fields, graft, items, read_request};

fuzz_target!(|input: &[u8]| {
    let Some((kind, text)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    match kind % 6 {
        0 => request(Api::Anthropic, &text),
        1 => request(Api::OpenAiChat, &text),
        2 => request(Api::OpenAiResponses, &text),
        3 => request(Api::Gemini, &text),
        4 => parts(&text),
        _ => grafts(&text),
    }
});

fn request(api: Api, text: &str) {
    let Some(read) = read_request(api, text) else { return };
    let before = fields(text).expect("it was read");
    let after = fields(&read.thinned).expect("a request was written");
    assert_eq!(before.len(), after.len());
    for ((name, before), (same, after)) in before.iter().zip(&after) {
        assert_eq!(name, same);
        if name == read.messages_field {
            messages(api, before, after, &read.messages);
        } else if name != "tools" {
            assert_eq!(before, after, "{name}");
        } else if api != Api::Gemini {
            assert_eq!(parsed(after), Some(Value::from(read.own.clone())));
        }
    }
    let restored = parsed(&read.restored);
    assert_eq!(restored, parsed(text), "{}", read.restored);
}

/// Messages keep their bytes. Responses have their thoughts that lead to nothing left out, and a text made a list.
fn messages(api: Api, before: &str, after: &str, read: &[Value]) {
    assert_eq!(parsed(after), Some(Value::from(read)));
    let known = items(before).unwrap_or_default();
    let written = items(after).expect("a list was written");
    if api != Api::OpenAiResponses {
        assert_eq!(known, written);
    } else if before.trim_start().starts_with('[') {
        let mut known = known.iter();
        assert!(written.iter().all(|item| known.any(|one| one == item)), "{after}");
    }
}

/// Fields and items are those of the value, and stand in the text.
fn parts(text: &str) {
    let fields = fields(text);
    let items = items(text);
    let texts = fields.iter().flatten().map(|(_, text)| *text);
    for part in texts.chain(items.iter().flatten().copied()) {
        assert!(text.contains(part) && part.trim() == part);
    }
    match parsed(text) {
        Some(Value::Object(object)) => {
            assert!(items.is_none());
            for (name, part) in fields.into_iter().flatten() {
                assert_eq!(parsed(part).as_ref(), object.get(&name), "{name}");
            }
        }
        Some(Value::Array(list)) => {
            assert!(fields.is_none());
            let items = items.expect("the text is a list");
            assert_eq!(items.iter().filter_map(|item| parsed(item)).collect::<Vec<_>>(), list);
        }
        Some(_) => assert!(fields.is_none() && items.is_none()),
        // What is too large a number or too deep for a value may be a text of one.
        None => {}
    }
}

/// Makes a value of another's text. Without a change it is that text.
fn grafts(text: &str) {
    let (before, after) = text.split_once('\0').unwrap_or((text, ""));
    if let Some(value) = parsed(before) {
        assert_eq!(graft(&value, before), before);
    }
    if let Some(value) = parsed(after) {
        let written = graft(&value, before);
        let read = parsed(&written).expect("JSON was written");
        assert_eq!(without_fractions(read), without_fractions(value), "{written}");
    }
}

/// Returns a value whose fractions are null: serde_json reads what it writes of one within a last digit.
fn without_fractions(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => Value::Null,
        Value::Array(items) => items.into_iter().map(without_fractions).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, without_fractions(value)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}
