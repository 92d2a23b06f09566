//! Digests of messages and definitions. They compare what was sent with what will be; they protect nothing, so that a
//! short hash without keys is enough.

use std::borrow::Cow;

use serde_json::Value;

/// Marks of cached prefixes, which agents move from message to message. They are no part of what the model reads.
const MARK: &str = "cache_control";

/// FNV-1a with 64 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digest(u64);

impl Digest {
    /// Returns the digest of nothing.
    pub(super) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a JSON value. The order of an object's fields doesn't matter.
    pub(super) fn add(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let mut names: Vec<&String> = fields.keys().filter(|name| *name != MARK).collect();
                names.sort_unstable();
                self.bytes(b"{");
                for name in names {
                    self.text(name);
                    self.add(&fields[name]);
                }
                self.bytes(b"}");
            }
            Value::Array(items) => {
                self.bytes(b"[");
                items.iter().for_each(|item| self.add(item));
                self.bytes(b"]");
            }
            Value::String(text) => self.text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.bytes(value.to_string().as_bytes());
                self.bytes(b",");
            }
        }
    }

    /// Returns the digest of all that was added.
    pub(super) fn value(self) -> u64 {
        self.0
    }

    /// Adds a text.
    pub(super) fn text(&mut self, text: &str) {
        self.bytes(b"\"");
        self.bytes(&text.len().to_le_bytes());
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Returns the digest of one value.
pub(super) fn of(value: &Value) -> u64 {
    let mut digest = Digest::new();
    digest.add(value);
    digest.value()
}

/// Returns the digest of each prefix of a conversation: that of no message first, that of all last.
pub(super) fn of_prefixes(messages: &[Value]) -> Vec<u64> {
    let mut digest = Digest::new();
    let mut prefixes = vec![digest.value()];
    for message in messages {
        digest.add(&as_compared(message));
        prefixes.push(digest.value());
    }
    prefixes
}

/// Returns a message as it is compared with later ones: content of one text block alone is that text. Agents write a message
/// in either form, and in another one once it has no mark of a cached prefix any more.
#[must_use]
pub fn as_compared(message: &Value) -> Cow<'_, Value> {
    let Some([block]) = message.get("content").and_then(Value::as_array).map(Vec::as_slice) else {
        return Cow::Borrowed(message);
    };
    let is_plain = block.as_object().is_some_and(|fields| {
        block["type"] == "text"
            && fields.keys().all(|name| matches!(name.as_str(), "type" | "text" | MARK))
    });
    match block["text"].as_str() {
        Some(text) if is_plain => {
            let mut message = message.clone();
            message["content"] = text.into();
            Cow::Owned(message)
        }
        _ => Cow::Borrowed(message),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_are_hashed_as_published() {
        let hash = |text: &str| {
            let mut digest = Digest::new();
            digest.bytes(text.as_bytes());
            digest.value()
        };
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_text_and_its_only_block_are_one_message() {
        let of =
            |content: Value| of_prefixes(&[json!({ "role": "system", "content": content })])[1];
        let mark = json!({ "type": "ephemeral" });
        let text = of(json!("hi"));
        assert_eq!(of(json!([{ "type": "text", "text": "hi" }])), text);
        assert_eq!(of(json!([{ "type": "text", "text": "hi", "cache_control": mark }])), text);
        for other in [
            json!([]),
            json!([{ "type": "text", "text": "ho" }]),
            json!([{ "type": "text", "text": "hi", "citations": [] }]),
            json!([{ "type": "text", "text": "hi" }, { "type": "text", "text": "" }]),
            json!([{ "type": "tool_result", "text": "hi" }]),
        ] {
            assert_ne!(of(other.clone()), text, "{other}");
        }
    }

    #[test]
    fn order_and_cache_marks_do_not_matter_and_all_else_does() {
        let block = json!({ "type": "text", "text": "hi" });
        let marked =
            json!({ "text": "hi", "cache_control": { "type": "ephemeral" }, "type": "text" });
        assert_eq!(of(&block), of(&marked));
        for other in [
            json!({ "type": "text", "text": "hi " }),
            json!({ "type": "text", "text": ["hi"] }),
            json!({ "type": "text", "text": "hi", "more": null }),
        ] {
            assert_ne!(of(&block), of(&other), "{other}");
        }
        assert_ne!(of(&json!([1, 12])), of(&json!([11, 2])));
        assert_ne!(of(&json!(["a", "b"])), of(&json!(["ab"])));
    }
}
