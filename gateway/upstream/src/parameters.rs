//! Parameters of tools that are repeated in headers, `Mcp-Param-NAME` (`x-mcp-header` in the schema of a tool, MCP 2026-07-28),
//! so that proxies can route by them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Map, Value};

/// Keyword of a schema that names the header of a property.
const KEYWORD: &str = "x-mcp-header";

/// Marks of a header's value in base64.
const BASE64_START: &str = "=?base64?";
const BASE64_END: &str = "?=";

/// Depth to which a schema is looked through.
const DEPTH_MAX: usize = 64;

/// Parameters of one tool that are repeated in headers.
#[derive(Debug, Default)]
pub struct HeaderParameters(Vec<Parameter>);

#[derive(Debug)]
struct Parameter {
    /// Names of properties, from the root.
    path: Vec<String>,
    /// Name of the header behind `Mcp-Param-`.
    header: String,
}

impl HeaderParameters {
    /// Reads the schema of a tool's input.
    ///
    /// # Errors
    /// The problem, if the schema breaks the rule: a header's name is a token of HTTP and is there once, and its property is a
    /// string, an integer or a boolean that is reached through `properties` alone.
    pub fn of(schema: &Value) -> Result<Self, String> {
        let mut parameters = Self::default();
        let Value::Object(schema) = schema else { return Ok(parameters) };
        if schema.contains_key(KEYWORD) {
            return Err(format!("{KEYWORD} is at the root of its schema"));
        }
        parameters.add(schema, &mut Vec::new())?;
        Ok(parameters)
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares a call's arguments with the headers of its request.
    ///
    /// # Errors
    /// The problem, if a header is missing, says something else, or is there without its argument.
    pub fn check(&self, arguments: &Value, headers: &HeaderMap) -> Result<(), String> {
        for Parameter { path, header } in &self.0 {
            let name = format!("Mcp-Param-{header}");
            let mut values = headers.get_all(&name).into_iter();
            let sent = values.next();
            if values.next().is_some() {
                return Err(format!("{name} is there twice"));
            }
            let argument = path.iter().try_fold(arguments, |value, key| value.get(key));
            let argument = argument.filter(|argument| !argument.is_null());
            match (sent, argument) {
                (None, None) => {}
                (None, Some(_)) => return Err(format!("{name} is missing")),
                (Some(_), None) => {
                    return Err(format!("{name} is there, but its argument is not"));
                }
                (Some(sent), Some(argument)) => {
                    let sent = sent.to_str().ok().and_then(decoded);
                    if !sent.is_some_and(|sent| says(&sent, argument)) {
                        return Err(format!("{name} says something else than its argument"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the parameters of a schema that is reached through `properties` alone.
    fn add(&mut self, schema: &Map<String, Value>, path: &mut Vec<String>) -> Result<(), String> {
        for (key, value) in schema {
            if key != "properties" {
                refuse_elsewhere(key, value, path.len())?;
                continue;
            }
            let Value::Object(properties) = value else { continue };
            for (name, property) in properties {
                let Value::Object(property) = property else { continue };
                path.push(name.clone());
                if let Some(header) = property.get(KEYWORD) {
                    self.add_parameter(header, property.get("type"), path)?;
                }
                self.add(property, path)?;
                path.pop();
            }
        }
        Ok(())
    }

    fn add_parameter(
        &mut self,
        header: &Value,
        kind: Option<&Value>,
        path: &[String],
    ) -> Result<(), String> {
        let wrong = |problem: &str| Err(format!("{KEYWORD} of {} {problem}", path.join(".")));
        let Some(header) = header.as_str().filter(|header| is_token(header)) else {
            return wrong("is no name of a header");
        };
        if self.0.iter().any(|known| known.header.eq_ignore_ascii_case(header)) {
            return wrong("names a header that another property has");
        }
        if !matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return wrong("is at no string, integer or boolean");
        }
        self.0.push(Parameter { path: path.to_vec(), header: header.to_owned() });
        Ok(())
    }
}

/// Refuses the keyword in parts of a schema that no path of properties reaches.
fn refuse_elsewhere(key: &str, value: &Value, depth: usize) -> Result<(), String> {
    // These hold data or names of properties, not schemas; the keyword itself is read with its property.
    if ["default", "const", "enum", "examples", "dependentRequired", "required", KEYWORD]
        .contains(&key)
    {
        return Ok(());
    }
    let names_schemas = [
        "$defs",
        "definitions",
        "dependencies",
        "dependentSchemas",
        "patternProperties",
        "properties",
    ];
    refuse_within(value, names_schemas.contains(&key), depth)
}

fn refuse_within(value: &Value, names_schemas: bool, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err("its schema is too deep".to_owned());
    }
    match value {
        Value::Object(schemas) if names_schemas => {
            schemas.values().try_for_each(|schema| refuse_within(schema, false, depth + 1))
        }
        Value::Object(schema) if schema.contains_key(KEYWORD) => {
            Err(format!("{KEYWORD} is at a place that no path of properties reaches"))
        }
        Value::Object(schema) => {
            schema.iter().try_for_each(|(key, value)| refuse_elsewhere(key, value, depth + 1))
        }
        Value::Array(schemas) => {
            schemas.iter().try_for_each(|schema| refuse_within(schema, false, depth + 1))
        }
        _ => Ok(()),
    }
}

fn is_token(name: &str) -> bool {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_right)
}

fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix(BASE64_START).and_then(|rest| rest.strip_suffix(BASE64_END)) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

fn says(sent: &str, argument: &Value) -> bool {
    match argument {
        Value::String(text) => sent == text,
        Value::Bool(is_true) => sent == if *is_true { "true" } else { "false" },
        Value::Number(number) => {
            // 42 and 42.0 are one integer.
            let is_same_text = sent == number.to_string();
            is_same_text
                || sent.parse::<f64>().ok().is_some_and(|sent| number.as_f64() == Some(sent))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(properties: &Value) -> Result<HeaderParameters, String> {
        HeaderParameters::of(&json!({"type": "object", "properties": properties}))
    }

    #[test]
    fn properties_at_any_depth_may_have_headers() {
        let parameters = with(&json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "x-mcp-header": {"type": "number"},
            "inner": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "other": {"type": "string", "default": {"x-mcp-header": 1}},
        }));
        let found = parameters.expect("parameters").0;
        let paths: Vec<String> = found.iter().map(|parameter| parameter.path.join(".")).collect();
        assert_eq!(paths, ["region", "inner.n"]);
        assert!(HeaderParameters::of(&json!(true)).expect("none").0.is_empty());
    }

    #[test]
    fn schemas_that_break_the_rule_are_told() {
        let of = |kind: &str, header: Value| json!({"a": {"type": kind, "x-mcp-header": header}});
        for properties in [
            of("string", json!("")),
            of("string", json!(1)),
            of("string", json!("My Region")),
            of("string", json!("Region:A")),
            of("string", json!("Région")),
            of("string", json!("Region\t1")),
            of("number", json!("A")),
            of("object", json!("A")),
            of("null", json!("A")),
            json!({"a": {"type": ["string", "null"], "x-mcp-header": "A"}}),
            json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}),
            json!({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}),
            json!({"a": {"oneOf": [{"type": "string", "x-mcp-header": "A"}]}}),
            json!({"a": {"patternProperties": {"default": {"type": "string", "x-mcp-header": "A"}}}}),
        ] {
            assert!(with(&properties).is_err(), "{properties}");
        }
        assert!(HeaderParameters::of(&json!({"x-mcp-header": "A"})).is_err());
        let mut deep = json!({});
        for _ in 0..DEPTH_MAX + 2 {
            deep = json!({"not": deep});
        }
        assert!(HeaderParameters::of(&deep).is_err());
    }

    #[test]
    fn headers_say_what_arguments_say() {
        let parameters = with(&json!({
            "text": {"type": "string", "x-mcp-header": "Text"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "flag": {"type": "boolean", "x-mcp-header": "Flag"},
        }))
        .expect("parameters");
        let check = |arguments: Value, pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, http::HeaderValue::from_static(value));
            }
            parameters.check(&arguments, &headers).is_ok()
        };
        assert!(check(json!({}), &[]));
        assert!(check(json!({"text": null}), &[("mcp-param-other", "x")]));
        assert!(check(json!({"text": " é"}), &[("mcp-param-text", "=?base64?IMOp?=")]));
        assert!(check(
            json!({"count": 42, "flag": false}),
            &[("mcp-param-count", "42"), ("mcp-param-flag", "false")]
        ));
        assert!(check(json!({"count": 42.0}), &[("mcp-param-count", "42")]));
        assert!(!check(json!({"text": "a"}), &[]));
        assert!(!check(json!({}), &[("mcp-param-text", "a")]));
        assert!(!check(json!({"text": "a"}), &[("mcp-param-text", "b")]));
        assert!(!check(json!({"text": "a"}), &[("mcp-param-text", "a"), ("mcp-param-text", "a")]));
        assert!(!check(json!({"text": "a"}), &[("mcp-param-text", "=?base64?!?=")]));
        assert!(!check(json!({"text": ["a"]}), &[("mcp-param-text", "a")]));
    }
}
