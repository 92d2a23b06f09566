//! JSON Schemas of tools: compiled once, nothing outside the document resolved, and bounded work for any
//! schema and any input. Says where arguments are wrong without repeating their values.

mod cost;
mod places;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use cost::{Count, TooMuch};
use places::Places;

/// The most violations that are reported for one call.
const VIOLATIONS_MAX: usize = 16;

/// The most checks that a call's arguments may take: schemas applied to values, some tens of nanoseconds each.
const CHECKS_MAX: usize = 1_000_000;

/// With more checks than this, it is only told that arguments are wrong: the validator makes every error of
/// a value, each of some hundred bytes, before it gives the first.
const LISTED_MAX: usize = 50_000;

/// The most schemas that may apply to one value.
const FAN_OUT_MAX: usize = 10_000;

/// The longest chain of schemas within one value: following it takes stack.
const CHAIN_MAX: usize = 256;

/// Patterns of one schema, which take some ten KiB each, and up to [`PATTERN_SIZE_MAX`].
const PATTERNS_MAX: usize = 256;

/// Backtracking steps allowed to a pattern that needs look-around; linear patterns never get here.
const BACKTRACK_MAX: usize = 20_000;

/// Bytes that one compiled pattern may take.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// Bytes of a compiled schema for each of its text, and for each pattern, about.
const BYTES_A_BYTE: usize = 32;
const PATTERN_BYTES: usize = 32 << 10;

/// A compiled input schema.
#[derive(Debug)]
pub struct ArgumentSchema {
    validator: Validator,
    places: Places,
    memory_bytes: usize,
}

/// One mistake in a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where, as a JSON Pointer (RFC 6901) into the arguments; empty for the whole.
    pub pointer: String,
    /// What is wrong, without values of the arguments.
    pub problem: String,
}

impl ArgumentSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// What is wrong with the schema, for its author.
    pub fn compile(text: &str) -> Result<Self, String> {
        let schema: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let places = Places::of(&schema)?;
        let Some(fan_out) = places.fan_out() else {
            return Err("a reference leads back to itself".to_owned());
        };
        if fan_out.checks > FAN_OUT_MAX || fan_out.depth > CHAIN_MAX {
            return Err(format!(
                "applies {} schemas to one value, in chains of {}, references counted; at most {FAN_OUT_MAX} and {CHAIN_MAX}",
                fan_out.checks, fan_out.depth
            ));
        }
        let patterns = patterns(&schema);
        if patterns > PATTERNS_MAX {
            return Err(format!("has {patterns} patterns; at most {PATTERNS_MAX}"));
        }
        // The linear engine first; patterns with look-around need the other one, with a bound on its steps.
        let linear = PatternOptions::regex().size_limit(PATTERN_SIZE_MAX);
        let bounded = || PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_MAX);
        let options = jsonschema::options().offline();
        let validator = options
            .clone()
            .with_pattern_options(linear)
            .build(&schema)
            .or_else(|_| options.with_pattern_options(bounded()).build(&schema))
            .map_err(|e| problem_with_place(&e))?;
        let memory_bytes = BYTES_A_BYTE * text.len() + PATTERN_BYTES * patterns;
        Ok(Self { validator, places, memory_bytes })
    }

    /// Bytes that this holds, about.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Checks a call's arguments.
    ///
    /// # Errors
    /// At most 16 violations.
    pub fn check(&self, arguments: &Value) -> Result<(), Vec<Violation>> {
        let whole = |problem: String| vec![Violation { pointer: String::new(), problem }];
        let checks = Count::of(&self.places, arguments, CHECKS_MAX).map_err(|TooMuch| {
            whole(format!(
                "takes more than {CHECKS_MAX} checks, or is nested too deep: send less at a time"
            ))
        })?;
        if self.validator.is_valid(arguments) {
            return Ok(());
        }
        if checks > LISTED_MAX {
            return Err(whole("does not fit the schema; it is too large to say where".to_owned()));
        }
        let errors = self.validator.iter_errors(arguments).take(VIOLATIONS_MAX);
        let violation = |e: jsonschema::ValidationError<'_>| Violation {
            pointer: e.instance_path().to_string(),
            problem: e.masked().to_string(),
        };
        Err(errors.map(violation).collect())
    }
}

fn problem_with_place(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    if place.is_empty() { error.to_string() } else { format!("at {place:?}: {error}") }
}

/// Regular expressions in the schema, and what looks like them.
fn patterns(value: &Value) -> usize {
    match value {
        Value::Object(map) => {
            let named = map.get("patternProperties").and_then(Value::as_object);
            let here = usize::from(map.get("pattern").is_some_and(Value::is_string));
            let named = named.map_or(0, serde_json::Map::len);
            here + named + map.values().map(patterns).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(patterns).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &str, arguments: &str, pointers: &[&str]) {
        let schema = ArgumentSchema::compile(schema).expect("a schema");
        let arguments = serde_json::from_str(arguments).expect("JSON");
        let violations = schema.check(&arguments).err().unwrap_or_default();
        let found: Vec<_> = violations.iter().map(|v| v.pointer.as_str()).collect();
        assert_eq!(found, pointers, "{violations:?}");
    }

    fn refused(schema: &str) -> String {
        ArgumentSchema::compile(schema).expect_err("must be refused")
    }

    #[test]
    fn arguments_are_checked_with_pointers() {
        let schema = r#"{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},
            "b":{"items":{"type":"string"}}}}"#;
        check(schema, r#"{"a": 1, "b": ["x"]}"#, &[]);
        check(schema, r#"{"a": "x", "b": ["y", 2]}"#, &["/a", "/b/1"]);
        check(schema, "{}", &[""]);
    }

    #[test]
    fn values_are_not_repeated() {
        let schema = r#"{"type":"object","properties":{"a":{"const":"k"}}}"#;
        let schema = ArgumentSchema::compile(schema).expect("a schema");
        let arguments = serde_json::json!({"a": "s3cret"});
        let violations = schema.check(&arguments).expect_err("wrong");
        assert!(!violations[0].problem.contains("s3cret"), "{violations:?}");
    }

    #[test]
    fn endless_references_are_refused_and_recursive_ones_are_not() {
        assert!(refused(r##"{"$ref":"#"}"##).contains("leads back to itself"));
        let two = r##"{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},
            "b":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/a"}]}}}"##;
        assert!(refused(two).contains("leads back to itself"));
        let tree = r##"{"type":"object","properties":{"children":{"type":"array",
            "items":{"$ref":"#"}}}}"##;
        check(
            tree,
            r#"{"children":[{"children":[]},{"children":[3]}]}"#,
            &["/children/1/children/0"],
        );
    }

    #[test]
    fn references_that_fan_out_are_refused() {
        let level = |i| {
            format!(
                r##""d{i}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##,
                i + 1
            )
        };
        let levels: Vec<_> = (0..40).map(level).collect();
        let schema =
            format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d40":{{}}}}}}"##, levels.join(","));
        assert!(refused(&schema).contains("at most 10000"), "{}", refused(&schema));
        let chain: Vec<_> =
            (0..9_000).map(|i| format!(r##""d{i}":{{"$ref":"#/$defs/d{}"}}"##, i + 1)).collect();
        let schema =
            format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d9000":{{}}}}}}"##, chain.join(","));
        assert!(refused(&schema).contains("in chains of"));
    }

    #[test]
    fn nothing_outside_is_resolved() {
        for target in ["https://example.com/s.json", "file:///etc/passwd", "other.json"] {
            refused(&format!(r#"{{"$ref":"{target}"}}"#));
        }
        assert!(refused(r#"{"type": 3}"#).contains("/type"));
    }

    #[test]
    fn anchors_and_the_own_id_are_followed() {
        let back = r##"{"$defs":{"a":{"$anchor":"x","$ref":"#x"}},"$ref":"#x"}"##;
        assert!(refused(back).contains("leads back to itself"));
        let named = r##"{"$id":"https://e.x/s","properties":{"a":{"$ref":"#n"},
            "b":{"$ref":"https://e.x/s#/$defs/n%20m"}},"$defs":{"n m":{"$anchor":"n","type":"null"}}}"##;
        check(named, r#"{"a": 1, "b": 2}"#, &["/a", "/b"]);
    }

    /// Whether the arguments are refused for what they would take, and not looked at further.
    fn is_too_much(schema: &Value, arguments: &Value) -> bool {
        let schema = ArgumentSchema::compile(&schema.to_string()).expect("a schema");
        let violations = schema.check(arguments).expect_err("wrong");
        violations[0].problem.contains("checks")
    }

    #[test]
    fn schemas_times_values_are_bounded() {
        let branches: Vec<_> = (0..3_000).map(|n| json!({"const": n})).collect();
        let schema = json!({"properties": {"x": {"items": {"anyOf": branches}}}});
        assert!(is_too_much(&schema, &json!({"x": vec![-1; 100_000]})));
        let names: serde_json::Map<_, _> =
            (0..200).map(|n| (format!("^.*{n}$"), json!({"type": "string"}))).collect();
        let members: serde_json::Map<_, _> =
            (0..20_000).map(|n| (format!("k{n}"), json!(1))).collect();
        assert!(is_too_much(&json!({"patternProperties": names}), &json!(members)));
    }

    #[test]
    fn references_that_fan_out_from_one_value_to_the_next_are_bounded() {
        let next = json!({"properties": {"x": {"$ref": "#"}}, "required": ["y"]});
        let schema = json!({"anyOf": [next, next]});
        let deep = |n| (0..n).fold(json!(1), |inner, _| json!({"x": inner}));
        assert!(is_too_much(&schema, &deep(40)));
        let flat = ArgumentSchema::compile(&schema.to_string()).expect("a schema");
        assert!(!flat.check(&deep(3)).expect_err("wrong")[0].problem.contains("checks"));
    }

    #[test]
    fn references_that_fan_out_below_the_root_are_refused() {
        let level = |i: usize| match i {
            0 => json!({"type": "string"}),
            i => json!({"anyOf": vec![json!({"$ref": format!("#/$defs/a{}", i - 1)}); 2]}),
        };
        let levels: serde_json::Map<_, _> = (0..26).map(|i| (format!("a{i}"), level(i))).collect();
        let schema = json!({"properties": {"x": {"$ref": "#/$defs/a25"}}, "$defs": levels});
        assert!(refused(&schema.to_string()).contains("schemas to one value"));
    }

    #[test]
    fn many_wrong_values_are_told_without_a_list() {
        let schema = json!({"properties": {"x": {"items": {"type": ["string", "null"]}}}});
        let schema = ArgumentSchema::compile(&schema.to_string()).expect("a schema");
        let violations = schema.check(&json!({"x": vec![1; 100_000]})).expect_err("wrong");
        assert!(violations.len() == 1 && violations[0].problem.contains("too large to say where"));
        assert_eq!(schema.check(&json!({"x": vec![1; 1_000]})).expect_err("wrong").len(), 16);
    }

    #[test]
    fn deep_chains_do_not_exhaust_the_stack() {
        let chain: serde_json::Map<_, _> = (0..100)
            .map(|i| (format!("d{i}"), json!({"allOf": [{"$ref": format!("#/$defs/d{}", i + 1)}]})))
            .chain([("d100".to_owned(), json!({"properties": {"x": {"$ref": "#/$defs/d0"}}}))])
            .collect();
        let schema = json!({"$ref": "#/$defs/d0", "$defs": chain});
        let deep = (0..100).fold(json!(1), |inner, _| json!({"x": inner}));
        assert!(is_too_much(&schema, &deep));
        let patterns: serde_json::Map<_, _> =
            (0..300).map(|n| (format!("^{n}$"), json!(true))).collect();
        assert!(
            refused(&json!({"patternProperties": patterns}).to_string()).contains("300 patterns")
        );
    }

    #[test]
    fn look_around_patterns_work_and_are_bounded() {
        let schema = r#"{"properties":{"a":{"pattern":"^(?!x)(a+)+$"}}}"#;
        check(schema, r#"{"a": "aaa"}"#, &[]);
        let long = format!("{{\"a\": \"{}b\"}}", "a".repeat(40));
        check(schema, &long, &["/a"]);
    }
}
