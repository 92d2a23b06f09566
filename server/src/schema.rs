//! JSON Schemas of tools: compiled once, nothing outside the document resolved, and bounded work for any
//! input. Says where arguments are wrong without repeating their values.

use std::collections::{HashMap, HashSet};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// The most violations that are reported for one call.
const VIOLATIONS_MAX: usize = 16;

/// The most schemas that may apply to one value; each costs about a microsecond.
const WORK_MAX: u64 = 10_000;

/// The longest chain of references within one value: following it takes stack.
const CHAIN_MAX: usize = 256;

/// Backtracking steps allowed to a pattern that needs look-around; linear patterns never get here.
const BACKTRACK_MAX: usize = 20_000;

/// Bytes that one compiled pattern may take.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// Keywords whose schemas apply to the same value as the schema they stand in (JSON Schema 2020-12,
/// core, section 10.2): a cycle through these alone never ends.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];

/// A compiled input schema.
#[derive(Debug)]
pub struct ArgumentSchema {
    validator: Validator,
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
        if let Some(place) = endless_reference(&schema) {
            return Err(format!("the reference at {place:?} leads back to itself"));
        }
        if work(&schema, "", 0, &mut HashMap::new()) > WORK_MAX {
            return Err(format!(
                "applies more than {WORK_MAX} schemas to one value, references counted"
            ));
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
        Ok(Self { validator })
    }

    /// Checks a call's arguments.
    ///
    /// # Errors
    /// At most 16 violations.
    pub fn check(&self, arguments: &Value) -> Result<(), Vec<Violation>> {
        let errors = self.validator.iter_errors(arguments).take(VIOLATIONS_MAX);
        let violations: Vec<_> = errors
            .map(|e| Violation {
                pointer: e.instance_path().to_string(),
                problem: e.masked().to_string(),
            })
            .collect();
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }
}

fn problem_with_place(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    if place.is_empty() { error.to_string() } else { format!("at {place:?}: {error}") }
}

/// Schemas that apply to one value at the place of `pointer`: a few references that fan out twice each make
/// millions. Endless references must have been refused before.
fn work(root: &Value, pointer: &str, depth: usize, known: &mut HashMap<String, u64>) -> u64 {
    if depth > CHAIN_MAX {
        return u64::MAX;
    }
    if let Some(work) = known.get(pointer) {
        return *work;
    }
    let targets = in_place_targets(root, pointer);
    let inner = targets.iter().map(|target| work(root, target, depth + 1, known));
    let total = inner.fold(1_u64, u64::saturating_add);
    known.insert(pointer.to_owned(), total);
    total
}

/// The pointer of a `$ref` that begins a cycle of references that consume nothing of the value.
fn endless_reference(root: &Value) -> Option<String> {
    let mut done = HashSet::new();
    let mut starts = Vec::new();
    collect_references(root, String::new(), &mut starts);
    starts.into_iter().find(|start| reaches_itself(root, start, &mut done))
}

/// The pointers of all schemas that hold a `$ref`.
fn collect_references(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let step = key.replace('~', "~0").replace('/', "~1");
                collect_references(inner, format!("{pointer}/{step}"), found);
            }
            if map.get("$ref").is_some_and(Value::is_string) {
                found.push(pointer);
            }
        }
        Value::Array(items) => {
            for (i, inner) in items.iter().enumerate() {
                collect_references(inner, format!("{pointer}/{i}"), found);
            }
        }
        _ => {}
    }
}

/// Whether in-place applicators lead from `start` back to it. `done` holds pointers known to be sound.
fn reaches_itself(root: &Value, start: &str, done: &mut HashSet<String>) -> bool {
    let mut path = vec![(start.to_owned(), in_place_targets(root, start))];
    let mut on_path: HashSet<String> = [start.to_owned()].into();
    while let Some((here, targets)) = path.last_mut() {
        let Some(next) = targets.pop() else {
            on_path.remove(here.as_str());
            done.insert(here.clone());
            path.pop();
            continue;
        };
        if on_path.contains(&next) {
            return true;
        }
        if !done.contains(&next) {
            on_path.insert(next.clone());
            let targets = in_place_targets(root, &next);
            path.push((next, targets));
        }
    }
    false
}

/// Pointers of the schemas that apply to the same value as the one at `pointer`.
fn in_place_targets(root: &Value, pointer: &str) -> Vec<String> {
    let Some(Value::Object(map)) = root.pointer(pointer) else { return Vec::new() };
    let mut targets = Vec::new();
    for key in ["$ref", "$dynamicRef"] {
        if let Some(target) = map.get(key).and_then(Value::as_str).and_then(|r| r.strip_prefix('#'))
        {
            targets.push(target.to_owned());
        }
    }
    for key in IN_PLACE.iter().filter(|key| map.contains_key(**key)) {
        targets.push(format!("{pointer}/{key}"));
    }
    for key in IN_PLACE_LISTS {
        let branches = map.get(key).and_then(Value::as_array).map_or(0, Vec::len);
        targets.extend((0..branches).map(|i| format!("{pointer}/{key}/{i}")));
    }
    targets
}

#[cfg(test)]
mod tests {
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
        assert!(refused(&schema).contains("applies more than"), "{}", refused(&schema));
        let chain: Vec<_> =
            (0..9_000).map(|i| format!(r##""d{i}":{{"$ref":"#/$defs/d{}"}}"##, i + 1)).collect();
        let schema = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{}}}}}"##, chain.join(","));
        assert!(refused(&schema).contains("applies more than"));
    }

    #[test]
    fn nothing_outside_is_resolved() {
        for target in ["https://example.com/s.json", "file:///etc/passwd", "other.json"] {
            refused(&format!(r#"{{"$ref":"{target}"}}"#));
        }
        assert!(refused(r#"{"type": 3}"#).contains("/type"));
    }

    #[test]
    fn anchors_that_lead_back_are_survived() {
        check(r##"{"$defs":{"a":{"$anchor":"x","$ref":"#x"}},"$ref":"#x"}"##, "{}", &[]);
    }

    #[test]
    fn look_around_patterns_work_and_are_bounded() {
        let schema = r#"{"properties":{"a":{"pattern":"^(?!x)(a+)+$"}}}"#;
        check(schema, r#"{"a": "aaa"}"#, &[]);
        let long = format!("{{\"a\": \"{}b\"}}", "a".repeat(40));
        check(schema, &long, &["/a"]);
    }
}
