//! JSON Schemas of tools. They are compiled once, resolve nothing outside the document, and take bounded work for any
//! schema and any input. Violations say where arguments are wrong without repeating their values.

mod cost;
mod current;
mod dialect;
mod pattern;
mod places;
mod weigh;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use cost::{Count, TooMuch};
pub use current::current_form;
use pattern::BACKTRACK_MAX;
use places::Places;
use weigh::{COMPILED_MAX, Size};

/// Maximum number of violations that are reported for one call.
const VIOLATIONS_MAX: usize = 16;

/// Maximum number of checks that a call's arguments may take. A check applies a schema to a value and takes some tens
/// of nanoseconds.
const CHECKS_MAX: usize = 1_000_000;

/// Number of checks above which violations are not listed. The validator makes every error of a value, each of some
/// hundred bytes, before it gives the first.
const LISTED_MAX: usize = 50_000;

/// Maximum size of one compiled pattern in bytes, by the engine's own count. It is a second bound behind the weights.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// Maximum size in bytes of the matching caches of all patterns of a schema together, for each thread that matches
/// them.
const MATCHING_MAX: usize = 4 << 20;
const MATCHING_OF_ONE: std::ops::RangeInclusive<usize> = (16 << 10)..=(256 << 10);

/// Maximum cost of compiling a schema, in units of some 100 ns.
const COMPILE_UNITS_MAX: usize = 500_000;

/// Maximum length in characters of a problem that is reported.
const PROBLEM_MAX: usize = 512;

/// Compiled input schema.
#[derive(Debug)]
pub struct ArgumentSchema {
    validator: Validator,
    places: Places,
    memory_bytes: usize,
    compile_units: usize,
}

/// Mistake in a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Place of the mistake, as a JSON Pointer (RFC 6901) into the arguments; empty for the whole.
    pub pointer: String,
    /// Description of the problem, without values of the arguments.
    pub problem: String,
}

/// Mistake in a schema, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mistake {
    /// Place of the mistake, as a JSON Pointer (RFC 6901) into the schema; empty for the whole.
    pointer: String,
    problem: String,
}

/// Schema that was weighed. It may be compiled, and the cost of that is known.
#[derive(Debug)]
pub struct WeighedSchema {
    schema: Value,
    older: Option<Draft>,
    places: Places,
    looks_around: bool,
    /// Maximum size in bytes of the matching cache of each pattern, for each thread that matches it.
    matching: usize,
    memory_bytes: usize,
    compile_units: usize,
}

impl WeighedSchema {
    /// Weighs a schema. Refuses one whose compilation would take more than 50 ms or 32 MiB.
    ///
    /// # Errors
    /// Returns the mistake in the schema and its place, for the schema's author.
    pub fn of(text: &str) -> Result<Self, String> {
        let schema: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let weighed = Self::of_value(schema, text.len());
        weighed.map_err(|mistake| mistake.message())
    }

    fn of_value(mut schema: Value, text_bytes: usize) -> Result<Self, Mistake> {
        let size = Size::of(&schema)?;
        let older = dialect::settle(&mut schema);
        let patterns = &size.patterns;
        let places = Places::of(&schema, patterns)?;
        let matching = (MATCHING_MAX / patterns.len().max(1))
            .clamp(*MATCHING_OF_ONE.start(), *MATCHING_OF_ONE.end());
        let again = &places.unevaluated;
        let memory_bytes = size.bytes() + text_bytes + patterns.len() * matching + again.bytes();
        let compile_units = size.units() + again.units();
        let looks_around = patterns.sum.looks_around;
        let weighed =
            Self { schema, older, places, looks_around, matching, memory_bytes, compile_units };
        weighed.must_be_light()?;
        Ok(weighed)
    }

    fn must_be_light(&self) -> Result<(), Mistake> {
        let refused = |takes: String| {
            let problem = format!("{takes}: use fewer parts, patterns and unevaluated keywords");
            Err(Mistake::at_root(problem))
        };
        let bytes = self.memory_bytes;
        let units = self.compile_units;
        if bytes > COMPILED_MAX {
            return refused(format!(
                "takes {bytes} bytes once it is compiled; at most {COMPILED_MAX}"
            ));
        }
        if units > COMPILE_UNITS_MAX {
            return refused(format!(
                "takes {units} units of some 100 ns to compile; at most {COMPILE_UNITS_MAX}"
            ));
        }
        Ok(())
    }

    /// Returns the cost of compiling the schema, in units of some 100 ns.
    #[must_use]
    pub fn compile_units(&self) -> usize {
        self.compile_units
    }

    /// Compiles the schema.
    ///
    /// # Errors
    /// Returns the mistake in the schema and its place, for the schema's author.
    pub fn compile(self) -> Result<ArgumentSchema, String> {
        let options = jsonschema::options().offline();
        // Formats are only annotations in the current dialect. This stays so if an older dialect is known by its
        // keywords only.
        let options = match self.older {
            Some(draft) => options.with_draft(draft).should_validate_formats(false),
            None => options,
        };
        let matching = self.matching;
        let options = if self.looks_around {
            let bounded = PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_MAX);
            options
                .with_pattern_options(bounded.size_limit(PATTERN_SIZE_MAX).dfa_size_limit(matching))
        } else {
            let linear = PatternOptions::regex();
            options
                .with_pattern_options(linear.size_limit(PATTERN_SIZE_MAX).dfa_size_limit(matching))
        };
        let validator =
            options.build(&self.schema).map_err(|e| Mistake::of_validator(&e).message())?;
        let Self { places, memory_bytes, compile_units, .. } = self;
        Ok(ArgumentSchema { validator, places, memory_bytes, compile_units })
    }
}

impl ArgumentSchema {
    /// Compiles a schema within some 50 ms and 32 MiB. One that would take more is refused before it is compiled.
    ///
    /// # Errors
    /// Returns the mistake in the schema and its place, for the schema's author.
    pub fn compile(text: &str) -> Result<Self, String> {
        WeighedSchema::of(text)?.compile()
    }

    /// Returns the approximate memory of the compiled schema in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Returns the cost of compiling the schema, in units of some 100 ns.
    #[must_use]
    pub fn compile_units(&self) -> usize {
        self.compile_units
    }

    /// Checks a call's arguments.
    ///
    /// # Errors
    /// Returns at most 16 violations.
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
            problem: shortened(&e.masked().to_string()),
        };
        Err(errors.map(violation).collect())
    }
}

impl Mistake {
    fn at_root(problem: impl Into<String>) -> Self {
        Self { pointer: String::new(), problem: problem.into() }
    }

    /// Returns the mistake as seen from the value that has the part as `key`.
    fn below(mut self, key: &str) -> Self {
        let escaped = key.replace('~', "~0").replace('/', "~1");
        self.pointer.insert_str(0, &escaped);
        self.pointer.insert(0, '/');
        self
    }

    /// Returns a mistake with the place of `part` within `root`.
    fn of(root: &Value, part: &Value, problem: String) -> Self {
        fn find(value: &Value, part: &Value, mistake: Mistake) -> Result<Mistake, Mistake> {
            if std::ptr::eq(value, part) {
                return Ok(mistake);
            }
            let mut mistake = mistake;
            let children: Vec<(String, &Value)> = match value {
                Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
                Value::Array(items) => {
                    items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect()
                }
                _ => Vec::new(),
            };
            for (key, child) in children {
                match find(child, part, mistake) {
                    Ok(found) => return Ok(found.below(&key)),
                    Err(not_found) => mistake = not_found,
                }
            }
            Err(mistake)
        }
        find(root, part, Self::at_root(problem)).unwrap_or_else(|mistake| mistake)
    }

    fn of_validator(error: &jsonschema::ValidationError<'_>) -> Self {
        Self { pointer: error.instance_path().to_string(), problem: error.to_string() }
    }

    fn message(&self) -> String {
        let pointer = shortened(&self.pointer);
        let problem = shortened(&self.problem);
        if pointer.is_empty() { problem } else { format!("at {pointer:?}: {problem}") }
    }
}

/// Cuts a long text to its beginning, because schemas repeat what they hold.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(PROBLEM_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

#[cfg(test)]
mod tests;
