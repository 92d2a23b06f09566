//! Regular expressions of conditions: literals only, small, and compiled together with the condition.

use std::hash::{Hash, Hasher};

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

/// Maximum size of a pattern's text in bytes.
const LENGTH_MAX: usize = 256;
/// Maximum number of states of a pattern, with repetitions written out.
const STATES_MAX: usize = 256;
/// Maximum size in bytes of the compiled pattern, and of the cache for matching.
const COMPILED_MAX: usize = 64 << 10;
/// Maximum number of states that one character class counts as.
const CLASS_STATES: usize = 4;

/// Compiled pattern. Matching is linear in the text, whatever the pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    regex: Regex,
    /// Number of states. Each byte of the text costs at most a sixteenth of a step per state.
    states: usize,
}

impl Pattern {
    /// Compiles a pattern. The error describes the problem.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > LENGTH_MAX {
            return Err(format!("the pattern has {} bytes; at most {LENGTH_MAX}", text.len()));
        }
        let parsed = regex_syntax::ParserBuilder::new().nest_limit(16).build().parse(text);
        let parsed = parsed.map_err(|e| format!("the pattern is wrong: {}", first_line(&e)))?;
        let states = states(&parsed);
        if states > STATES_MAX {
            let problem = format!(
                "the pattern has {states} states with repetitions written out; at most {STATES_MAX}"
            );
            return Err(problem);
        }
        let mut builder = RegexBuilder::new(text);
        builder.nest_limit(16).size_limit(COMPILED_MAX).dfa_size_limit(COMPILED_MAX);
        let regex =
            builder.build().map_err(|e| format!("the pattern is wrong: {}", first_line(&e)))?;
        Ok(Self { regex, states })
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns the maximum number of steps for matching this text.
    pub(super) fn cost(&self, text: &str) -> usize {
        16 + text.len() * self.states.div_ceil(16)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.regex.as_str().hash(state);
    }
}

/// Returns the last line of a syntax error, which describes the problem. The other lines quote the pattern.
fn first_line(error: &impl ToString) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Estimates the number of states of a pattern, with every repetition written out.
fn states(pattern: &Hir) -> usize {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Unicode(class)) => class.ranges().len().min(CLASS_STATES),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len().min(CLASS_STATES),
        HirKind::Capture(inner) => states(&inner.sub),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            states(&repetition.sub).saturating_mul(times as usize)
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(0_usize, |sum, part| sum.saturating_add(states(part)))
        }
    }
}
