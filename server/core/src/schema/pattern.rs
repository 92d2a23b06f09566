//! What the patterns of a schema cost, estimated from their syntax before an engine compiles them: engines
//! have limits for one pattern, not for a schema full of them.

use std::collections::HashMap;

use regex_syntax::hir::{Class, Hir, HirKind};
use regex_syntax::utf8::Utf8Sequences;

/// Bytes of one pattern's text, at most.
const LENGTH_MAX: usize = 8 << 10;

/// The most that compiling all patterns of a schema may cost, in units of some 100 ns.
pub(super) const UNITS_MAX: usize = 200_000;

/// Units that any pattern costs: its programs, forward and reverse, and the search for its literals.
const UNITS_A_PATTERN: usize = 700;
/// Units for a byte of a literal, and for one of a class's byte ranges.
const UNITS_A_LITERAL: usize = 4;
const UNITS_A_RANGE: usize = 1;
/// Units for reading a class of Unicode's out of its tables.
const UNITS_A_UNICODE_CLASS: usize = 400;
/// Bytes that one class such as `\s` becomes when the pattern is translated to the engine's syntax.
const TRANSLATED_CLASS: usize = 130;

/// Bytes of a compiled pattern: of any, for each unit, and for each transition of the automaton that finds groups.
const BYTES_A_PATTERN: usize = 12 << 10;
const BYTES_A_UNIT: usize = 24;
const BYTES_A_TRANSITION: usize = 8;
const GROUPED_MAX: usize = 1 << 20;

/// Backtracking steps allowed to a pattern with look-around.
pub(super) const BACKTRACK_MAX: usize = 20_000;

/// Bytes of text times states of the pattern that are matched in about the time of one check.
const STATE_BYTES_A_CHECK: usize = 32;
/// A pattern that backtracks reads a text again, about once for each of so many bytes.
const REREAD_BYTES: usize = 64;

/// The cost of one pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    /// Compiling it, in units of some 100 ns.
    pub(super) units: usize,
    /// Bytes that it holds once it is compiled.
    pub(super) bytes: usize,
    /// States of its automaton, repetitions written out.
    states: usize,
    /// Whether it has look-around or back-references, which the linear engine does not know.
    pub(super) looks_around: bool,
    /// Whether it may read a text more than a fixed number of times.
    rereads: bool,
}

/// Weights by pattern, each distinct one counted once, as the validator compiles it.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    by_text: HashMap<String, Weight>,
    /// All of them together.
    pub(super) sum: Weight,
}

impl Patterns {
    /// Adds a pattern of the schema. What is no regular expression is left to the validator, which refuses it where
    /// it is a pattern indeed and not a part of an example.
    ///
    /// # Errors
    /// It is more than the schema's patterns may cost together, or can't be weighed.
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
    /// Weighs a pattern that may cost `most` units; `None` for what is no regular expression.
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

    /// Checks that matching a text of that many bytes takes.
    pub(super) fn checks(&self, bytes: usize) -> usize {
        let once = bytes.saturating_mul(self.states) / STATE_BYTES_A_CHECK;
        let times = if self.rereads { 1 + bytes.min(BACKTRACK_MAX) / REREAD_BYTES } else { 1 };
        once.saturating_mul(times)
    }

    /// This and another one, as matching a text against both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            states: self.states.saturating_add(other.states),
            rereads: self.rereads | other.rereads,
            ..self
        }
    }
}

/// Units for translating and parsing a pattern. The translation begins anew with each class such as `\d`.
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

/// The last line of a syntax error says what is wrong; the others draw it.
fn not_ecmascript(error: &regex_syntax::Error) -> String {
    let text = error.to_string();
    let problem = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    format!("the pattern is no regular expression of ECMA-262: {problem}")
}

/// A pattern's program, repetitions written out.
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

/// Where the ranges of bytes begin that a pattern tells apart.
struct Alphabet([bool; 257]);

impl Alphabet {
    fn add(&mut self, first: u8, last: u8) {
        self.0[usize::from(first)] = true;
        self.0[usize::from(last) + 1] = true;
    }

    /// Entries of a state's table, which has a power of two of them.
    fn classes(&self) -> usize {
        let beginnings = self.0.iter().filter(|begins| **begins).count();
        (beginnings + 2).next_power_of_two()
    }
}

/// A pattern with its look-around as plain groups and without its back-references, which can be weighed.
struct Plain {
    text: String,
    /// Groups that looked around, and back-references.
    dropped: usize,
    /// False where it begins with `^`, looks ahead from there, and has nothing but linear parts after that.
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

/// Where in a pattern its next character stands.
struct Position {
    /// Groups around it.
    depth: usize,
    is_class: bool,
    /// Whether there was nothing but `^` and groups that look around before it.
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

/// Bytes of a back-reference, by number or name.
fn back_reference(rest: &str) -> Option<usize> {
    let escaped = rest.strip_prefix('\\')?;
    match escaped.chars().next()? {
        '1'..='9' => Some(2),
        'k' => Some(rest.find('>').map_or(2, |end| end + 1)),
        _ => None,
    }
}

/// Bytes of what opens a group that looks around.
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
