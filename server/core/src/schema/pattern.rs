//! Cost of a schema's patterns, estimated from their syntax before an engine compiles them. Engines have limits for one
//! pattern, not for a schema full of them.

use std::collections::HashMap;

use regex_syntax::hir::{Class, Hir, HirKind};
use regex_syntax::utf8::Utf8Sequences;

/// Maximum size of one pattern's text in bytes.
const LENGTH_MAX: usize = 8 << 10;

/// Maximum cost of compiling all patterns of a schema, in units of some 100 ns.
pub(super) const UNITS_MAX: usize = 200_000;

/// Units that any pattern costs: its forward and reverse programs, and the search for its literals.
const UNITS_A_PATTERN: usize = 700;
/// Units for each byte of a literal, and for each byte range of a class.
const UNITS_A_LITERAL: usize = 4;
const UNITS_A_RANGE: usize = 1;
/// Units for reading a Unicode class out of its tables.
const UNITS_A_UNICODE_CLASS: usize = 400;
/// Bytes that one class such as `\s` becomes when the pattern is translated to the engine's syntax.
const TRANSLATED_CLASS: usize = 130;

/// Bytes of a compiled pattern: of any pattern, for each unit, for each transition of the automaton that finds groups,
/// and the maximum for that automaton.
const BYTES_A_PATTERN: usize = 12 << 10;
const BYTES_A_UNIT: usize = 24;
const BYTES_A_TRANSITION: usize = 8;
const GROUPED_MAX: usize = 1 << 20;

/// Maximum number of backtracking steps of a pattern with look-around.
pub(super) const BACKTRACK_MAX: usize = 20_000;

/// Bytes of text times states of the pattern that are matched in about the time of one check.
const STATE_BYTES_A_CHECK: usize = 32;
/// Approximate bytes of text per extra reading of the text by a pattern that backtracks.
const REREAD_BYTES: usize = 64;

/// Cost of one pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    /// Cost of compiling the pattern, in units of some 100 ns.
    pub(super) units: usize,
    /// Size of the compiled pattern in bytes.
    pub(super) bytes: usize,
    /// Number of states of its automaton, with repetitions written out.
    states: usize,
    /// True if it has look-around or back-references, which the linear engine does not know.
    pub(super) looks_around: bool,
    /// True if it may read a text more than a fixed number of times.
    rereads: bool,
}

/// Weights by pattern. Each distinct pattern is counted once, as the validator compiles it once.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    by_text: HashMap<String, Weight>,
    /// Sum of all weights.
    pub(super) sum: Weight,
}

impl Patterns {
    /// Adds a pattern of the schema. A text that is no regular expression is left to the validator. The validator
    /// refuses it if it really is a pattern and not a part of an example.
    ///
    /// # Errors
    /// Returns an error if the schema's patterns cost too much together, or if the pattern can't be weighed.
    pub(super) fn add(&mut self, text: &str) -> Result<(), String> {
        if self.by_text.contains_key(text) {
            return Ok(());
        }
        let most = UNITS_MAX.saturating_sub(self.sum.units);
        let Some(weight) = Weight::of(text, most)? else { return Ok(()) };
        self.sum.units += weight.units;
        self.sum.bytes += weight.bytes;
        self.sum.looks_around |= weight.looks_around;
        self.by_text.insert(text.to_owned(), weight);
        Ok(())
    }

    pub(super) fn weight(&self, text: &str) -> Weight {
        self.by_text.get(text).copied().unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.by_text.len()
    }
}

impl Weight {
    /// Weighs a pattern that may cost `most` units; `None` if it is no regular expression.
    fn of(text: &str, most: usize) -> Result<Option<Self>, String> {
        if text.len() > LENGTH_MAX {
            return Err(format!("the pattern has {} bytes; at most {LENGTH_MAX}", text.len()));
        }
        let mut weight = Self { units: units_to_read(text), ..Self::default() };
        weight.must_be_within(most)?;
        let Ok(translated) = jsonschema_regex::to_rust_regex(text) else { return Ok(None) };
        let mut automata = 1;
        let parsed = match regex_syntax::parse(&translated) {
            Ok(parsed) => parsed,
            Err(_) => {
                let plain = Plain::of(&translated);
                weight.looks_around = true;
                weight.rereads = plain.rereads;
                automata += 2 * plain.dropped;
                regex_syntax::parse(&plain.text).map_err(|error| not_ecmascript(&error))?
            }
        };
        let mut alphabet = Alphabet([false; 257]);
        let program = Program::of(&parsed, &mut alphabet);
        weight.states = program.states.saturating_mul(automata);
        weight.units = program.units.saturating_add(weight.units + automata * UNITS_A_PATTERN);
        weight.must_be_within(most)?;
        let has_groups = parsed.properties().explicit_captures_len() > 0;
        let transitions = if has_groups { alphabet.classes() } else { 0 };
        let grouped = program.states.saturating_mul(transitions * BYTES_A_TRANSITION);
        weight.bytes =
            automata * (BYTES_A_PATTERN + grouped.min(GROUPED_MAX)) + weight.units * BYTES_A_UNIT;
        Ok(Some(weight))
    }

    fn must_be_within(&self, most: usize) -> Result<(), String> {
        if self.units <= most {
            return Ok(());
        }
        Err(format!(
            "compiling the pattern costs {} units, with repetitions written out and classes of characters as \
             ranges; of the {UNITS_MAX} that the patterns of one schema may cost, {most} are left",
            self.units
        ))
    }

    /// Returns the number of checks that matching a text of that many bytes takes.
    pub(super) fn checks(&self, bytes: usize) -> usize {
        let once = bytes.saturating_mul(self.states) / STATE_BYTES_A_CHECK;
        let times = if self.rereads { 1 + bytes.min(BACKTRACK_MAX) / REREAD_BYTES } else { 1 };
        once.saturating_mul(times)
    }

    /// Returns the weight of matching a text against both patterns.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            states: self.states.saturating_add(other.states),
            rereads: self.rereads | other.rereads,
            ..self
        }
    }
}

/// Returns the units for translating and parsing a pattern. The translation begins anew with each class such as `\d`.
fn units_to_read(text: &str) -> usize {
    let mut classes = 0;
    let mut unicode = 0;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' {
            match bytes.next() {
                Some(b'd' | b'D' | b'w' | b'W' | b's' | b'S' | b'c') => classes += 1,
                Some(b'p' | b'P') => unicode += 1,
                _ => {}
            }
        }
    }
    let grown = text.len() + classes * TRANSLATED_CLASS / 2;
    text.len() + classes * grown + unicode * UNITS_A_UNICODE_CLASS
}

/// Returns the message for a syntax error. The last line of the error describes the problem; the others quote the
/// pattern.
fn not_ecmascript(error: &regex_syntax::Error) -> String {
    let text = error.to_string();
    let problem = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    format!("the pattern is no regular expression of ECMA-262: {problem}")
}

/// Size of a pattern's program, with repetitions written out.
#[derive(Debug, Clone, Copy)]
struct Program {
    units: usize,
    states: usize,
}

impl Program {
    fn of(pattern: &Hir, alphabet: &mut Alphabet) -> Self {
        match pattern.kind() {
            HirKind::Empty | HirKind::Look(_) => Self { units: 1, states: 1 },
            HirKind::Literal(literal) => {
                literal.0.iter().for_each(|byte| alphabet.add(*byte, *byte));
                Self { units: literal.0.len() * UNITS_A_LITERAL, states: literal.0.len() }
            }
            HirKind::Class(class) => Self::of_class(class, alphabet),
            HirKind::Capture(inner) => {
                Self::of(&inner.sub, alphabet).plus(Self { units: 2, states: 2 })
            }
            HirKind::Repetition(repetition) => {
                let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
                let once = Self::of(&repetition.sub, alphabet).plus(Self { units: 2, states: 1 });
                once.times(times as usize)
            }
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                let one = Self { units: 1, states: 1 };
                parts.iter().fold(one, |sum, part| sum.plus(Self::of(part, alphabet)))
            }
        }
    }

    fn of_class(class: &Class, alphabet: &mut Alphabet) -> Self {
        let mut ranges = 0;
        match class {
            Class::Bytes(class) => {
                for range in class.ranges() {
                    alphabet.add(range.start(), range.end());
                    ranges += 1;
                }
            }
            Class::Unicode(class) => {
                let sequences = class
                    .ranges()
                    .iter()
                    .flat_map(|range| Utf8Sequences::new(range.start(), range.end()));
                for sequence in sequences {
                    sequence.as_slice().iter().for_each(|part| alphabet.add(part.start, part.end));
                    ranges += sequence.len();
                }
            }
        }
        // Ranges of one byte share a state.
        Self { units: ranges * UNITS_A_RANGE, states: 1 + ranges / 4 }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            units: self.units.saturating_add(other.units),
            states: self.states.saturating_add(other.states),
        }
    }

    fn times(self, times: usize) -> Self {
        Self { units: self.units.saturating_mul(times), states: self.states.saturating_mul(times) }
    }
}

/// Beginnings of the byte ranges that a pattern tells apart.
struct Alphabet([bool; 257]);

impl Alphabet {
    fn add(&mut self, first: u8, last: u8) {
        self.0[usize::from(first)] = true;
        self.0[usize::from(last) + 1] = true;
    }

    /// Returns the number of entries in a state's table, which is a power of two.
    fn classes(&self) -> usize {
        let beginnings = self.0.iter().filter(|begins| **begins).count();
        (beginnings + 2).next_power_of_two()
    }
}

/// Pattern that can be weighed: its look-around became plain groups, and its back-references were removed.
struct Plain {
    text: String,
    /// Number of groups that looked around, and of back-references.
    dropped: usize,
    /// False if the pattern begins with `^`, looks ahead from there, and has nothing but linear parts after that.
    rereads: bool,
}

impl Plain {
    fn of(pattern: &str) -> Self {
        let text = String::with_capacity(pattern.len());
        let mut plain = Self { text, dropped: 0, rereads: !pattern.starts_with('^') };
        let mut at = Position { depth: 0, is_class: false, looks_from_start: true };
        let mut rest = pattern;
        while let Some(first) = rest.chars().next() {
            let opening = opening(rest).filter(|_| !at.is_class);
            let back_reference = back_reference(rest).filter(|_| !at.is_class);
            let length = match first {
                '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
                _ => first.len_utf8(),
            };
            if let Some(opening) = opening {
                plain.dropped += 1;
                plain.rereads |= at.depth > 0 || !at.looks_from_start;
                plain.text.push_str("(?:");
                at.depth += 1;
                rest = &rest[opening..];
            } else if let Some(length) = back_reference {
                plain.dropped += 1;
                plain.rereads = true;
                rest = &rest[length..];
            } else {
                plain.rereads |= first == '|' && at.depth == 0 && !at.is_class;
                at.pass(first, rest.len() == pattern.len());
                plain.text.push_str(&rest[..length]);
                rest = &rest[length..];
            }
        }
        plain
    }
}

/// Position of a pattern's next character.
struct Position {
    /// Number of groups around it.
    depth: usize,
    is_class: bool,
    /// True if there was nothing but `^` and groups that look around before it.
    looks_from_start: bool,
}

impl Position {
    fn pass(&mut self, character: char, is_first: bool) {
        self.looks_from_start &= self.depth > 0 || (is_first && character == '^');
        match character {
            ']' if self.is_class => self.is_class = false,
            _ if self.is_class => {}
            '[' => self.is_class = true,
            '(' => self.depth += 1,
            ')' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// Returns the length in bytes of a back-reference, by number or name.
fn back_reference(rest: &str) -> Option<usize> {
    let escaped = rest.strip_prefix('\\')?;
    match escaped.chars().next()? {
        '1'..='9' => Some(2),
        'k' => Some(rest.find('>').map_or(2, |end| end + 1)),
        _ => None,
    }
}

/// Returns the length in bytes of the opening of a group that looks around.
fn opening(rest: &str) -> Option<usize> {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().find(|o| rest.starts_with(**o)).map(|o| o.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weigh(text: &str) -> Weight {
        Weight::of(text, UNITS_MAX).expect("not heavy").expect("a pattern")
    }

    #[test]
    fn patterns_weigh_at_least_what_their_engine_reports() {
        let long = "[a-z]{3}x|".repeat(200);
        let patterns = [
            "^[a-z]+$",
            r"^\d{4}-\d{2}-\d{2}$",
            "^([a-z]+)-([0-9]+)$",
            r"^(\p{L})(\p{N})$",
            r"\p{L}{20}",
            r"(?i)^(arn:aws:[a-z0-9-]+:([a-z0-9-]*):([0-9]{12}):(.+))$",
            "(((a{4}){4}){4}){4}",
            &long,
        ];
        for pattern in patterns {
            let translated = jsonschema_regex::to_rust_regex(pattern).expect("a pattern");
            let engine = regex_automata::meta::Regex::new(&translated).expect("a pattern");
            let weight = weigh(pattern);
            let said = engine.memory_usage();
            assert!(weight.bytes >= said, "{pattern:?}: {} < {said}", weight.bytes);
        }
    }

    #[test]
    fn repetitions_and_classes_are_written_out() {
        assert!(weigh("^a{100}$").units > 100);
        for heavy in [r"^\p{L}{200}$", "((a{100}){100}){100}", r"\d".repeat(4_000).as_str()] {
            assert!(Weight::of(heavy, UNITS_MAX).expect_err("heavy").contains("units"), "{heavy}");
        }
        assert!(Weight::of(&"a".repeat(9_000), UNITS_MAX).expect_err("long").contains("8192"));
        assert_eq!(Weight::of("a(", UNITS_MAX), Ok(None));
        assert!(
            Weight::of("(?=a)(?>b)", UNITS_MAX).expect_err("no ECMAScript").contains("ECMA-262")
        );
    }

    #[test]
    fn looking_ahead_from_the_start_reads_a_text_a_fixed_number_of_times() {
        for pattern in [r"^(?!\s*$).+", r"^(?=.*[A-Z])(?=.*\d)[\w()|]{8,}$", "^(?=(a|b))c"] {
            let weight = weigh(pattern);
            assert!(weight.looks_around && !weight.rereads, "{pattern}");
        }
        let rereading = [
            "(?!x)y",
            "^a(?=b)",
            "^(?=a)|b",
            r"^(a)\1$",
            "^((?=a)b)*$",
            "^(?=a(?!b))c",
            "^.*(?<=a)",
        ];
        for pattern in rereading {
            let weight = weigh(pattern);
            assert!(weight.looks_around && weight.rereads, "{pattern}");
        }
        assert!(!weigh("^[(?=]+$").looks_around);
    }
}
