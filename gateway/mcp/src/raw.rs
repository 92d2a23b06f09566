//! JSON objects as somebody wrote them: fields are read, set and removed, and what nobody touched keeps its bytes, such as
//! numbers that no type of this program holds.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use axum::body::Bytes;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Longest part that is copied when an object is written. Longer ones are shared.
const COPIED_MAX: usize = 4 << 10;

/// JSON object.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawObject {
    /// Text as it came.
    text: Bytes,
    /// Fields in their order. Of two with one name the last counts.
    fields: Vec<Field>,
    /// True if the fields say what the text does not.
    is_changed: bool,
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    value: FieldValue,
}

#[derive(Debug, Clone)]
enum FieldValue {
    /// Part of the text.
    Written(Range<usize>),
    /// JSON that was set.
    Set(Bytes),
}

/// Fields of a text, by their names.
struct Fields<'t>(Vec<(String, &'t RawValue)>);

impl RawObject {
    /// Reads an object.
    ///
    /// # Errors
    /// A text that is no JSON object.
    pub(crate) fn parse(text: impl Into<Bytes>) -> serde_json::Result<Self> {
        let text = text.into();
        let Fields(read) = serde_json::from_slice(&text)?;
        let place = |value: &RawValue| {
            let start = value.get().as_ptr().addr() - text.as_ptr().addr();
            start..start + value.get().len()
        };
        let field = |(name, value)| Field { name, value: FieldValue::Written(place(value)) };
        let fields = read.into_iter().map(field).collect();
        Ok(Self { text, fields, is_changed: false })
    }

    /// Reads an object that a server wrote.
    ///
    /// # Errors
    /// JSON that is no object.
    pub(crate) fn of(written: Box<RawValue>) -> serde_json::Result<Self> {
        Self::parse(String::from(Box::<str>::from(written)))
    }

    /// Returns the JSON of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().rfind(|field| field.name == name)?;
        std::str::from_utf8(self.bytes_of(field)).ok()
    }

    /// Returns a field as a value; `null` if there is none, or if it has a number that no value holds.
    pub(crate) fn value(&self, name: &str) -> Value {
        let read = self.get(name).map(serde_json::from_str);
        read.and_then(Result::ok).unwrap_or_default()
    }

    /// Returns a field that is a text.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        let json = self.get(name)?;
        if !json.starts_with('"') {
            return None;
        }
        let read: Result<Text<'_>, _> = serde_json::from_str(json);
        read.ok().map(|Text(text)| text)
    }

    /// Returns the texts of all fields of a name.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let fields = self.fields.iter().filter(|field| field.name == name);
        let texts = fields.filter_map(|field| {
            let read: Result<Text<'_>, _> = serde_json::from_slice(self.bytes_of(field));
            read.ok().map(|Text(text)| text.into_owned())
        });
        texts.collect()
    }

    /// Removes all fields of a name but the last, which is the one that counts.
    pub(crate) fn keep_last(&mut self, name: &str) {
        let Some(last) = self.fields.iter().rposition(|field| field.name == name) else { return };
        let before = self.fields.len();
        let mut place = 0;
        self.fields.retain(|field| {
            place += 1;
            field.name != name || place > last
        });
        self.is_changed |= self.fields.len() != before;
    }

    /// Returns true if a field is this text.
    pub(crate) fn is(&self, name: &str, text: &str) -> bool {
        self.text(name).is_some_and(|read| read == text)
    }

    /// Returns true if a field is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Returns the items of a field that is a list, each as it was written; none of any other field.
    pub(crate) fn items(&self, name: &str) -> Vec<&RawValue> {
        let json = self.get(name).unwrap_or_default();
        serde_json::from_str(json).unwrap_or_default()
    }

    /// Sets a field, in its place or behind the others.
    pub(crate) fn set(&mut self, name: &str, value: &Value) {
        self.set_json(name, value.to_string());
    }

    /// Sets a field to a JSON text.
    pub(crate) fn set_json(&mut self, name: &str, json: impl Into<Bytes>) {
        let value = FieldValue::Set(json.into());
        match self.fields.iter_mut().rfind(|field| field.name == name) {
            Some(field) => field.value = value,
            None => self.fields.push(Field { name: name.to_owned(), value }),
        }
        self.is_changed = true;
    }

    /// Sets a field to a list of JSON texts.
    pub(crate) fn set_items(&mut self, name: &str, items: &[impl AsRef<str>]) {
        self.set_json(name, list_of(items));
    }

    /// Removes a field.
    pub(crate) fn remove(&mut self, name: &str) {
        let before = self.fields.len();
        self.fields.retain(|field| field.name != name);
        self.is_changed |= self.fields.len() != before;
    }

    /// Returns the names of the fields, with the bytes of each.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.fields.iter().map(|field| (field.name.as_str(), self.bytes_of(field).len()))
    }

    /// Returns the number of bytes of the text, as [`Self::into_chunks`] writes it but for names of fields.
    pub(crate) fn size(&self) -> usize {
        if self.is_changed { self.sizes().map(|(_, bytes)| bytes).sum() } else { self.text.len() }
    }

    /// Returns the whole as a value; `None` if it has a number that no value holds.
    pub(crate) fn to_value(&self) -> Option<Value> {
        let text: Vec<u8> = self.clone().into_chunks().concat();
        serde_json::from_slice(&text).ok()
    }

    /// Writes the object: the text as it came if nothing was changed. Long parts are not copied.
    pub(crate) fn into_chunks(self) -> Vec<Bytes> {
        if !self.is_changed && !self.text.is_empty() {
            return vec![self.text];
        }
        let mut chunks = Vec::new();
        let mut last = Vec::from(*b"{");
        for (place, field) in self.fields.iter().enumerate() {
            if place > 0 {
                last.push(b',');
            }
            last.extend(Value::from(field.name.as_str()).to_string().bytes());
            last.push(b':');
            let value = match &field.value {
                FieldValue::Written(range) => self.text.slice(range.clone()),
                FieldValue::Set(json) => json.clone(),
            };
            if value.len() > COPIED_MAX {
                chunks.push(Bytes::from(std::mem::take(&mut last)));
                chunks.push(value);
            } else {
                last.extend(value);
            }
        }
        last.push(b'}');
        chunks.push(Bytes::from(last));
        chunks
    }

    /// Writes the object into one text.
    pub(crate) fn into_text(self) -> String {
        String::from_utf8_lossy(&self.into_chunks().concat()).into_owned()
    }

    fn bytes_of<'o>(&'o self, field: &'o Field) -> &'o [u8] {
        match &field.value {
            FieldValue::Written(range) => &self.text[range.clone()],
            FieldValue::Set(json) => json,
        }
    }
}

/// Returns a JSON list of JSON texts.
pub(crate) fn list_of(items: &[impl AsRef<str>]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    format!("[{}]", items.join(","))
}

impl From<Map<String, Value>> for RawObject {
    fn from(map: Map<String, Value>) -> Self {
        let mut object = Self { is_changed: true, ..Self::default() };
        for (name, value) in map {
            object.set(&name, &value);
        }
        object
    }
}

/// Text that is borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Fields<'de>;

            fn expecting(&self, told: &mut fmt::Formatter<'_>) -> fmt::Result {
                told.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const WRITTEN: &str = "{ \"a\\u0062\":1e400 , \"n\":123456789012345678901234567890, \"t\":\"\\u00e4\",\"l\":[ 1.10,{}]}";

    fn read(text: &str) -> RawObject {
        RawObject::parse(text.to_owned()).expect("an object")
    }

    #[test]
    fn what_nobody_changed_keeps_its_bytes() {
        let object = read(WRITTEN);
        assert_eq!(object.get("ab"), Some("1e400"));
        assert!(object.is("t", "ä") && !object.is("n", "1"));
        assert_eq!(object.value("ab"), Value::Null, "no value holds it");
        assert_eq!(
            object.items("l").iter().map(|item| item.get()).collect::<Vec<_>>(),
            ["1.10", "{}"]
        );
        assert_eq!(object.into_text(), WRITTEN);
    }

    #[test]
    fn a_change_leaves_the_other_fields_as_they_were() {
        let mut object = read(WRITTEN);
        object.set("t", &json!("x"));
        object.set("new", &json!([1]));
        object.remove("l");
        let text = "{\"ab\":1e400,\"n\":123456789012345678901234567890,\"t\":\"x\",\"new\":[1]}";
        assert_eq!(object.into_text(), text);
        let mut same = read("{}");
        same.remove("absent");
        assert_eq!(same.into_text(), "{}");
    }

    #[test]
    fn long_parts_are_shared() {
        let long = Bytes::from(Value::from("x".repeat(COPIED_MAX)).to_string());
        let mut object = read("{\"a\":1}");
        object.set_json("b", long.clone());
        let chunks = object.into_chunks();
        assert_eq!(chunks.len(), 3);
        assert_eq!(chunks[1].as_ptr(), long.as_ptr());
        assert_eq!(chunks[0], "{\"a\":1,\"b\":");
    }

    #[test]
    fn of_two_fields_with_a_name_the_last_counts() {
        let object = read("{\"a\":1,\"a\":2}");
        assert_eq!(object.get("a"), Some("2"));
        let mut named = read("{\"a\":\"x\",\"b\":1,\"\\u0061\":\"y\"}");
        assert_eq!(named.texts("a"), ["x", "y"]);
        named.keep_last("b");
        named.keep_last("a");
        assert_eq!(named.into_text(), "{\"b\":1,\"a\":\"y\"}");
        assert_eq!(RawObject::from(Map::new()).into_text(), "{}");
        for wrong in ["[]", "1", "", "{\"a\":}"] {
            assert!(RawObject::parse(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
