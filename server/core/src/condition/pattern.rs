//! Regular expressions of conditions: literals only, small, and compiled when the condition is.

use std::hash::{Hash, Hasher};

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

/// Bytes of a pattern's text, at most.
const LENGTH_MAX: usize = 256;
/// States of a pattern, repetitions written out, at most.
const STATES_MAX: usize = 256;
/// Bytes of the compiled pattern, and of what matching keeps of it.
const COMPILED_MAX: usize = 64 << 10;
/// States that a class of many characters counts as.
const CLASS_STATES: usize = 4;

/// A compiled pattern. Linear in the text, whatever the pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    regex: Regex,
    /// How much of a step each byte of the text costs, at worst.
    states: usize,
}

impl Pattern {
    /// Compiles a pattern, or says what is wrong with it.
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

    /// Steps that matching this text may cost.
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

/// The last line of a syntax error says what is wrong; the others draw it.
fn first_line(error: &impl ToString) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The states of a pattern, about: every repetition written out.
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
