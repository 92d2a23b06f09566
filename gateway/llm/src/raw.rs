//! JSON that is edited in its text, so that unknown fields, their order, numbers and escapes survive.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Range;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Field of an object, in its text.
pub(crate) struct Field<'a> {
    pub(crate) name: String,
    pub(crate) text: &'a str,
}

/// Reads the fields of an object. `None` if the text is no object, or names a field twice.
pub(crate) fn fields(text: &str) -> Option<Vec<Field<'_>>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let fields = reader.deserialize_map(Fields).ok()?;
    reader.end().ok()?;
    let mut names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    names.sort_unstable();
    let is_clear = names.windows(2).all(|pair| pair[0] != pair[1]);
    is_clear.then_some(fields)
}

/// Reads the items of a list. `None` if the text is no list.
pub(crate) fn items(text: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// Returns the text of a field.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    fields(text)?.into_iter().find(|field| field.name == name).map(|field| field.text)
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<Field<'de>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let text: &RawValue = map.next_value()?;
            fields.push(Field { name, text: text.get() });
        }
        Ok(fields)
    }
}

/// Returns the text of an object with these fields, by their names and texts.
pub(crate) fn object<'a>(fields: impl Iterator<Item = (&'a str, String)>) -> String {
    let written = fields.map(|(name, text)| format!("{}:{text}", Value::from(name)));
    format!("{{{}}}", written.collect::<Vec<_>>().join(","))
}

/// Returns a text with other texts in some of its places, which are in order.
pub(crate) fn edited(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut edited = String::with_capacity(text.len());
    let mut end = 0;
    for (place, new) in edits {
        edited.push_str(&text[end..place.start]);
        edited.push_str(new);
        end = place.end;
    }
    edited.push_str(&text[end..]);
    edited
}

/// Returns the text of a value that was made from `before`: what did not change keeps its bytes.
pub(crate) fn graft(value: &Value, before: &str) -> String {
    let mut text = String::with_capacity(before.len() + 64);
    write(value, before, &mut text);
    text
}

fn write(value: &Value, before: &str, text: &mut String) {
    let Ok(old) = serde_json::from_str::<Value>(before) else {
        text.push_str(&value.to_string());
        return;
    };
    if *value == old {
        text.push_str(before);
        return;
    }
    match (value, &old) {
        (Value::String(new), Value::String(old)) if new.starts_with(old.as_str()) => {
            let added = Value::from(&new[old.len()..]).to_string();
            text.push_str(before.trim_end().strip_suffix('"').unwrap_or(before));
            text.push_str(&added[1..]);
        }
        (Value::Object(new), _) if new.values().any(|inner| *inner == old) => {
            // The old value was put into an object.
            write_object(new, text, |_, inner, text| {
                if *inner == old {
                    text.push_str(before);
                } else {
                    text.push_str(&inner.to_string());
                }
            });
        }
        (Value::Object(new), Value::Object(_)) => {
            let fields = fields(before).unwrap_or_default();
            let fields: HashMap<&str, &str> =
                fields.iter().map(|field| (field.name.as_str(), field.text)).collect();
            write_object(new, text, |name, inner, text| match fields.get(name) {
                Some(before) => write(inner, before, text),
                None => text.push_str(&inner.to_string()),
            });
        }
        (Value::Array(new), Value::Array(old)) => write_array(new, old, before, text),
        _ => text.push_str(&value.to_string()),
    }
}

/// Writes a list. An item that is there already keeps its bytes, wherever it stands now. One that is not is taken for what
/// became of the next of its name, or else of the next.
fn write_array(new: &[Value], old: &[Value], before: &str, text: &mut String) {
    let items = items(before).unwrap_or_default();
    // A host may send hundreds of thousands of items, so that none is searched for from one end to the other.
    let mut by_value: HashMap<&Value, VecDeque<usize>> = HashMap::new();
    let mut by_name: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (place, item) in old.iter().enumerate() {
        by_value.entry(item).or_default().push_back(place);
        if let Some(name) = item["name"].as_str() {
            by_name.entry(name).or_default().push_back(place);
        }
    }
    let mut next = 0;
    text.push('[');
    for (at, inner) in new.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        let same = first_from(next, by_value.get_mut(inner));
        let namesake = || first_from(next, by_name.get_mut(inner["name"].as_str()?));
        next = same.or_else(namesake).unwrap_or(next);
        match items.get(next) {
            Some(item) => write(inner, item, text),
            None => text.push_str(&inner.to_string()),
        }
        next += 1;
    }
    text.push(']');
}

/// Returns the first of these places that is not before `next`. Those before it are taken out.
fn first_from(next: usize, places: Option<&mut VecDeque<usize>>) -> Option<usize> {
    let places = places?;
    while places.front().is_some_and(|place| *place < next) {
        places.pop_front();
    }
    places.front().copied()
}

fn write_object(
    object: &serde_json::Map<String, Value>,
    text: &mut String,
    write: impl Fn(&str, &Value, &mut String),
) {
    text.push('{');
    for (at, (name, inner)) in object.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(name.as_str()).to_string());
        text.push(':');
        write(name, inner, text);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_keep_their_text() {
        let read = fields(r#"{ "a" : 1.50e3, "\u0062":[ 1 ] }"#).expect("an object");
        let shown: Vec<_> = read.iter().map(|field| (field.name.as_str(), field.text)).collect();
        assert_eq!(shown, [("a", "1.50e3"), ("b", "[ 1 ]")]);
        for other in ["[]", "{", r#"{"a":1,"a":2}"#, r#"{"a":1} x"#, ""] {
            assert!(fields(other).is_none(), "{other}");
        }
    }

    #[test]
    fn what_did_not_change_keeps_its_bytes() {
        let before =
            r#"{ "n":1.50e3, "big":12345678901234567890123, "t":"\u00e9", "l":[1.0, {"x":2.0}] }"#;
        let mut value: Value = serde_json::from_str(before).expect("JSON");
        assert_eq!(graft(&value, before), before);
        value["t"] = json!("é and \"more\"");
        value["l"][1]["y"] = json!(1);
        assert_eq!(
            graft(&value, before),
            r#"{"n":1.50e3,"big":12345678901234567890123,"t":"\u00e9 and \"more\"","l":[1.0,{"x":2.0,"y":1}]}"#
        );
    }

    #[test]
    fn a_value_that_moved_into_an_object_keeps_its_bytes() {
        let before = r#"{"name":"t","input":{"n":1.0,"arguments":7}}"#;
        let inner: Value = serde_json::from_str(before).expect("JSON");
        let value = json!({ "name": "e", "input": { "name": "t", "arguments": inner["input"] } });
        assert_eq!(
            graft(&value, before),
            r#"{"name":"e","input":{"name":"t","arguments":{"n":1.0,"arguments":7}}}"#
        );
    }

    #[test]
    fn what_stands_behind_a_removed_item_keeps_its_bytes() {
        let before = r#"[ {"a":1}, { "b" : 1.0 } , "h\u00e9",{"c":[ 1,2e1 ]}]"#;
        let value = json!([{ "b": 1.0 }, "hé", { "c": [20.0] }]);
        assert_eq!(graft(&value, before), r#"[{ "b" : 1.0 },"h\u00e9",{"c":[2e1]}]"#);
    }

    /// It would take many minutes if each item or field were searched for among all.
    #[test]
    fn very_many_items_and_fields_that_changed_are_written() {
        let names = 0..100_000;
        let calls = |kind: &str| -> Value {
            names.clone().map(|name| json!({ "type": kind, "name": format!("t{name}") })).collect()
        };
        let text = graft(&calls("new"), &calls("old").to_string());
        assert_eq!(text, calls("new").to_string());
        let fields = |value: u32| -> Value {
            let fields = names.clone().map(|name| (format!("f{name}"), json!([value])));
            Value::Object(fields.collect())
        };
        assert_eq!(graft(&fields(2), &fields(1).to_string()), fields(2).to_string());
    }

    #[test]
    fn the_text_is_that_of_the_value_whatever_was_before() {
        let values = [
            json!(null),
            json!(7),
            json!(""),
            json!("a"),
            json!("ab\"\u{e9}"),
            json!([]),
            json!(["a", { "x": 1 }]),
            json!(["ab", { "x": 1, "y": [] }, 7]),
            json!({}),
            json!({ "x": "a" }),
            json!({ "x": "ab", "y": { "x": "a" } }),
            json!({ "y": ["a", { "x": 1 }], "x": null }),
        ];
        for before in &values {
            for value in &values {
                for (value, before) in [
                    (value.clone(), before.clone()),
                    (json!({ "k": value, "l": before }), json!({ "l": value, "k": before })),
                    (json!([value, before]), json!([before])),
                ] {
                    let text = graft(&value, &format!(" {before:#} "));
                    let read: Value = serde_json::from_str(&text).expect("JSON");
                    assert_eq!(read, value, "{before}: {text}");
                }
            }
        }
    }
}
