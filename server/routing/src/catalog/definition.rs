//! MCP definition of one tool: its parts as text, byte for byte as registered, its hash, and the form sent to a model.

use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::json_text::minify;
use toolgate_core::schema::current_form;
use toolgate_store::ContentHash;

/// Keys of `_meta` that decide on deferral.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";
const DEFER: &str = "toolgate/defer";

/// Checked definition with the positions of its parts.
#[derive(Debug, Clone)]
pub struct Definition {
    text: Box<str>,
    description: Box<str>,
    input_schema: Range<usize>,
    /// Schema sent to models. `None` if it equals the registered one.
    sent_schema: Option<Box<str>>,
    output_schema: Option<Range<usize>>,
    annotations: Option<Range<usize>>,
    always_load: bool,
    asks_to_be_deferred: bool,
    tags: Box<[Box<str>]>,
}

/// Maximum tags kept of a tool, and maximum bytes of a tag. Tags beyond these limits are ignored.
const TAGS_KEPT: usize = 32;
const TAG_MAX: usize = 128;

/// Fields of an MCP `Tool` as raw JSON text (MCP 2025-11-25, "Tools", data types).
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    description: Option<&'a RawValue>,
    #[serde(borrow, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, rename = "outputSchema")]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// Error in one part of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartError {
    /// Part at fault, such as `inputSchema`. Empty for the whole definition.
    pub part: &'static str,
    /// Explanation of the mistake and of the expected input.
    pub problem: String,
}

impl Definition {
    /// Parses a definition. The text must be one JSON object.
    ///
    /// # Errors
    /// The part at fault, if the definition is invalid.
    pub fn parse(text: &str) -> Result<Self, PartError> {
        let fields: Fields<'_> =
            serde_json::from_str(text).map_err(|e| wrong("", format!("must be an object: {e}")))?;
        let place = |raw: &RawValue| place_of(text, raw.get());
        let input = fields.input_schema.ok_or_else(|| {
            wrong("inputSchema", "is missing; a tool without parameters says {\"type\":\"object\"}")
        })?;
        must_be_object("inputSchema", input)?;
        fields.output_schema.map_or(Ok(()), |raw| must_be_object("outputSchema", raw))?;
        fields.annotations.map_or(Ok(()), |raw| must_be_object("annotations", raw))?;
        let meta = fields.meta.map_or_else(Value::default, read_meta);
        Ok(Self {
            description: description_of(fields.description)?.into(),
            input_schema: place(input),
            sent_schema: current_form(input.get()).map(Into::into),
            output_schema: fields.output_schema.map(place),
            annotations: fields.annotations.map(place),
            always_load: says(&meta, ALWAYS_LOAD),
            asks_to_be_deferred: says(&meta, DEFER),
            tags: tags_of(&meta),
            text: text.into(),
        })
    }

    /// Returns the whole definition as registered.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the MCP description, or an empty string if there is none.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the `inputSchema` as registered.
    #[must_use]
    pub fn input_schema(&self) -> &str {
        &self.text[self.input_schema.clone()]
    }

    /// Returns the `inputSchema` that models are sent. A schema in an older dialect of JSON Schema is converted to the
    /// current one; any other is sent as registered.
    #[must_use]
    pub fn sent_schema(&self) -> &str {
        self.sent_schema.as_deref().unwrap_or_else(|| self.input_schema())
    }

    /// Returns the `outputSchema` as registered, or an empty string if there is none.
    #[must_use]
    pub fn output_schema(&self) -> &str {
        self.output_schema.clone().map_or("", |place| &self.text[place])
    }

    /// Returns the `annotations` as registered, or an empty string if there are none.
    #[must_use]
    pub fn annotations(&self) -> &str {
        self.annotations.clone().map_or("", |place| &self.text[place])
    }

    /// Returns true if `_meta["anthropic/alwaysLoad"]` is true.
    #[must_use]
    pub fn always_load(&self) -> bool {
        self.always_load
    }

    /// Returns true if `_meta["toolgate/defer"]` is true. Such a built-in tool may be deferred too.
    #[must_use]
    pub fn asks_to_be_deferred(&self) -> bool {
        self.asks_to_be_deferred
    }

    /// Returns the tags in `_meta`: its own `tags`, and the `tags` of `fastmcp` or `_fastmcp`.
    #[must_use]
    pub fn tags(&self) -> &[Box<str>] {
        &self.tags
    }

    /// Returns the hint `name` of the annotations, or `None` if it is missing or not a boolean.
    #[must_use]
    pub fn hint(&self, name: &str) -> Option<bool> {
        let annotations: Value = serde_json::from_str(self.annotations()).ok()?;
        annotations.get(name)?.as_bool()
    }

    /// Returns the memory in use, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tags: usize = self.tags.iter().map(|tag| tag.len() + size_of::<Box<str>>()).sum();
        let sent = self.sent_schema.as_ref().map_or(0, |schema| schema.len());
        size_of::<Self>() + self.text.len() + sent + self.description.len() + tags
    }

    /// Returns SHA-256 of the canonical form (JCS, RFC 8785). Any two spellings of the same definition have the same
    /// hash.
    ///
    /// # Errors
    /// A number that JCS can't write.
    pub fn hash(&self) -> Result<ContentHash, PartError> {
        let canonical = serde_json_canonicalizer::pipe(&self.text)
            .map_err(|e| wrong("", format!("has no canonical form (RFC 8785): {e}")))?;
        Ok(Sha256::digest(canonical.as_bytes()).into())
    }

    /// Returns the text that a provider is sent for the tool: name, description and input schema as minified JSON.
    #[must_use]
    pub fn prompt_form(&self, model_name: &str) -> String {
        self.form(model_name, self.sent_schema())
    }

    /// Returns the prompt form with the input schema as registered. Earlier releases sent this form.
    #[must_use]
    pub fn prompt_form_as_registered(&self, model_name: &str) -> String {
        self.form(model_name, self.input_schema())
    }

    fn form(&self, model_name: &str, schema: &str) -> String {
        let text = |value: &str| serde_json::Value::from(value).to_string();
        let name = text(model_name);
        let description = text(&self.description);
        let schema = minify(schema);
        format!("{{\"name\":{name},\"description\":{description},\"inputSchema\":{schema}}}")
    }
}

fn description_of(raw: Option<&RawValue>) -> Result<String, PartError> {
    match raw.map(RawValue::get) {
        None | Some("null") => Ok(String::new()),
        Some(text) => serde_json::from_str(text)
            .map_err(|_| wrong("description", "must be a string".to_owned())),
    }
}

fn must_be_object(part: &'static str, raw: &RawValue) -> Result<(), PartError> {
    let problem = "must be a JSON object";
    if raw.get().starts_with('{') { Ok(()) } else { Err(wrong(part, problem)) }
}

fn read_meta(meta: &RawValue) -> Value {
    serde_json::from_str(meta.get()).unwrap_or_default()
}

fn says(meta: &Value, key: &str) -> bool {
    meta.get(key) == Some(&Value::Bool(true))
}

fn tags_of(meta: &Value) -> Box<[Box<str>]> {
    let places = ["/tags", "/fastmcp/tags", "/_fastmcp/tags"];
    let lists = places.iter().filter_map(|place| meta.pointer(place)?.as_array());
    let texts = lists.flatten().filter_map(Value::as_str).filter(|tag| tag.len() <= TAG_MAX);
    let mut tags: Vec<Box<str>> = texts.take(TAGS_KEPT).map(Into::into).collect();
    tags.sort();
    tags.dedup();
    tags.into()
}

/// Returns the byte range of `part` in `text`. `part` must be a slice of `text`.
fn place_of(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

fn wrong(part: &'static str, problem: impl Into<String>) -> PartError {
    PartError { part, problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = r#"{"name": "t", "description": "Does\n it",
        "inputSchema": { "type" : "object" }, "annotations": {"readOnlyHint": true},
        "_meta": {"anthropic/alwaysLoad": true}}"#;

    #[test]
    fn parts_are_kept_byte_for_byte() {
        let tool = Definition::parse(TOOL).expect("a definition");
        assert_eq!(tool.input_schema(), "{ \"type\" : \"object\" }");
        assert_eq!(tool.description(), "Does\n it");
        assert_eq!(tool.annotations(), "{\"readOnlyHint\": true}");
        assert_eq!(tool.output_schema(), "");
        assert!(tool.always_load());
        let sent = r#"{"name":"m","description":"Does\n it","inputSchema":{"type":"object"}}"#;
        assert_eq!(tool.prompt_form("m"), sent);
    }

    #[test]
    fn an_older_schema_is_sent_in_its_current_form_and_kept_as_registered() {
        let registered = r#"{"properties": {"n": {"minimum": 0, "exclusiveMinimum": true}}}"#;
        let sent = r#"{"properties":{"n":{"exclusiveMinimum":0}}}"#;
        let text = format!(r#"{{"name": "t", "inputSchema": {registered}}}"#);
        let tool = Definition::parse(&text).expect("a definition");
        assert_eq!((tool.text(), tool.input_schema()), (text.as_str(), registered));
        assert_eq!(tool.sent_schema(), sent);
        assert!(tool.prompt_form("t").ends_with(&format!("\"inputSchema\":{sent}}}")));
        let current = Definition::parse(TOOL).expect("a definition");
        assert_eq!(current.sent_schema(), current.input_schema());
        assert!(tool.memory_bytes() > size_of::<Definition>() + text.len() + sent.len() - 1);
    }

    #[test]
    fn tags_and_hints_are_read_leniently() {
        let parse = |meta: &str, annotations: &str| {
            let text = format!(
                r#"{{"inputSchema": {{}}, "_meta": {meta}, "annotations": {annotations}}}"#
            );
            Definition::parse(&text).expect("a definition")
        };
        let meta = r#"{"tags": ["b", 3, "a"], "fastmcp": {"tags": ["a", "c"]}}"#;
        let tool = parse(meta, r#"{"readOnlyHint": true, "openWorldHint": "no"}"#);
        assert_eq!(tool.tags(), ["a".into(), "b".into(), "c".into()] as [Box<str>; 3]);
        let hints = ["readOnlyHint", "openWorldHint", "destructiveHint"].map(|h| tool.hint(h));
        assert_eq!(hints, [Some(true), None, None]);
        assert!(parse("3", "{}").tags().is_empty());
        let many: Vec<_> = (0..99).map(|n| n.to_string()).collect();
        assert_eq!(parse(&serde_json::json!({"tags": many}).to_string(), "{}").tags().len(), 32);
    }

    #[test]
    fn hash_ignores_spelling_and_sees_content() {
        let hash = |text: &str| Definition::parse(text).expect("a definition").hash();
        let spelt = r#"{"inputSchema":{"type":"object"},"name":"t"}"#;
        let same = r#"{ "name": "\u0074", "inputSchema": {"type": "object"} }"#;
        assert_eq!(hash(spelt), hash(same));
        assert_ne!(hash(spelt), hash(&spelt.replace("\"t\"", "\"u\"")));
    }

    #[test]
    fn wrong_parts_are_named() {
        let part = |text: &str| Definition::parse(text).expect_err("must fail").part;
        assert_eq!(part(r#"{"name": "t"}"#), "inputSchema");
        assert_eq!(part(r#"{"name": "t", "inputSchema": []}"#), "inputSchema");
        assert_eq!(part(r#"{"description": 3, "inputSchema": {}}"#), "description");
        assert_eq!(part(r#"{"inputSchema": {}, "annotations": 1}"#), "annotations");
        assert_eq!(part("[]"), "");
    }
}
