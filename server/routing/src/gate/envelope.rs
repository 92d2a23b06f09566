//! Arguments as models send them: an object, nothing, `null`, or any of these as a JSON string. Only the envelope is
//! tolerated; values are never changed.

use serde_json::{Map, Value};

/// Maximum layers of JSON strings that are unwrapped.
const LAYERS_MAX: usize = 2;

/// Arguments of a call without their envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// Arguments as a JSON object.
    pub value: Value,
    /// Text of the object if it differs from the text that was sent.
    pub text: Option<String>,
}

impl Arguments {
    /// Removes the envelope and parses the arguments.
    ///
    /// # Errors
    /// Description of the mistake, without any of the values.
    pub fn read(sent: &str) -> Result<Self, String> {
        let mut text: Option<String> = None;
        for _ in 0..=LAYERS_MAX {
            let present = text.as_deref().unwrap_or(sent).trim();
            if present.is_empty() {
                return Ok(Self::nothing());
            }
            let value = serde_json::from_str(present).map_err(|error| match &text {
                None => format!("not JSON: {error}"),
                Some(_) => format!("a JSON string that holds no JSON: {error}"),
            })?;
            match value {
                Value::Object(_) => return Ok(Self { value, text }),
                Value::Null => return Ok(Self::nothing()),
                Value::String(inner) => text = Some(inner),
                _ => break,
            }
        }
        Err("arguments must be a JSON object".to_owned())
    }

    fn nothing() -> Self {
        Self { value: Value::Object(Map::new()), text: Some("{}".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn envelopes_are_forgiven() {
        for (sent, value, text) in [
            (r#"{"a": 1}"#, json!({"a": 1}), None),
            ("", json!({}), Some("{}")),
            (" \n", json!({}), Some("{}")),
            ("null", json!({}), Some("{}")),
            (r#""""#, json!({}), Some("{}")),
            (r#""null""#, json!({}), Some("{}")),
            (r#""{\"a\": 1.50}""#, json!({"a": 1.5}), Some(r#"{"a": 1.50}"#)),
            (r#""\"{\\\"a\\\": 1}\"""#, json!({"a": 1}), Some(r#"{"a": 1}"#)),
        ] {
            let expected = Arguments { value, text: text.map(str::to_owned) };
            assert_eq!(Arguments::read(sent), Ok(expected), "{sent}");
        }
    }

    #[test]
    fn values_are_not() {
        for sent in ["[]", "[{}]", "1", "true", "{", "\"text\"", "\"[]\"", "{\"a\": }"] {
            assert!(Arguments::read(sent).is_err(), "{sent}");
        }
        let mut wrapped = "{}".to_owned();
        for _ in 0..3 {
            wrapped = Value::from(wrapped).to_string();
        }
        assert!(Arguments::read(&wrapped).is_err(), "{wrapped}");
        let secret = Arguments::read("\"s3cret\"").expect_err("no JSON");
        assert!(!secret.contains("s3cret"), "{secret}");
    }

    proptest! {
        #[test]
        fn an_object_stays_what_it_is(key in ".{0,8}", number in any::<i64>(), layers in 0..3_usize) {
            let object = json!({key: number});
            let mut sent = object.to_string();
            for _ in 0..layers {
                sent = Value::from(sent).to_string();
            }
            let read = Arguments::read(&sent).expect("an object");
            prop_assert_eq!(&read.value, &object);
            prop_assert_eq!(read.text, (layers > 0).then(|| object.to_string()));
        }
    }
}
