//! Compiled rules: the shipped ones, with an operator's rules over them. The patterns of one rule form one set and are
//! matched together. One set of all patterns would need automata beyond all bounds for texts that are made for it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::finding::{Finding, Severity, excerpt};
use super::pieces::Part;
use super::reading::Reading;
pub use super::rule_file::{Detector, RuleMistake};
use super::rule_file::{Document, RuleText};

/// Shipped rules as YAML text.
pub const SHIPPED: &str = include_str!("rules.yaml");

/// Maximum size of one compiled pattern, and of one rule's compiled patterns together, in bytes.
const PATTERN_SIZE: usize = 1 << 20;
const SET_SIZE: usize = 8 << 20;
/// Maximum size of the cache for matching a text against one rule, in bytes.
const DFA_SIZE: usize = 1 << 20;
/// Maximum nesting of groups within a pattern.
const NESTING: u32 = 32;
/// Maximum number of matches of one pattern in one text that are looked at.
const PLACES_MAX: usize = 32;
/// Distance from a match, in bytes, within which an `unless` counts.
const AROUND: usize = 80;

/// Compiled rule.
#[derive(Debug)]
pub struct Rule {
    /// Id of the rule.
    pub id: Arc<str>,
    /// Severity of its findings.
    pub severity: Severity,
    /// Reason why a finding matters.
    pub why: Arc<str>,
    /// Advice on what would be right.
    pub right: Arc<str>,
    parts: Vec<Part>,
    /// All patterns together. `patterns` has each of them, in the same order.
    set: RegexSet,
    patterns: Vec<Pattern>,
    unless: Vec<Pattern>,
    lines: bool,
}

/// Pattern of a rule. It is compiled when a text first needs it, which few texts do.
#[derive(Debug)]
struct Pattern {
    text: String,
    case: bool,
    regex: OnceLock<Regex>,
}

impl Pattern {
    fn regex(&self) -> &Regex {
        let compile = || {
            compiled(&self.text, self.case)
                .expect("own patterns are compiled at once, shipped ones by a test")
        };
        self.regex.get_or_init(compile)
    }

    /// Compiles the pattern now.
    fn check(&self) -> Result<(), String> {
        if self.regex.get().is_none() {
            let _set_by_another = self.regex.set(compiled(&self.text, self.case)?);
        }
        Ok(())
    }
}

/// All compiled rules.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
    detectors: HashMap<Detector, usize>,
}

impl Rules {
    /// Returns the rules that come with the program.
    ///
    /// # Panics
    /// Never: a test compiles them.
    #[must_use]
    pub fn shipped() -> Self {
        Self::with("").expect("the shipped rules are right")
    }

    /// Returns the shipped rules with an operator's file over them. An empty file changes nothing.
    ///
    /// # Errors
    /// Returns the mistakes in the file.
    pub fn with(file: &str) -> Result<Self, Vec<RuleMistake>> {
        let shipped = Document::parse(SHIPPED)?;
        let own = if file.trim().is_empty() { Document::default() } else { Document::parse(file)? };
        let own_ids: HashSet<String> = own.rules.iter().map(|rule| rule.value.id.clone()).collect();
        Self::compile(merged(shipped, own)?, &own_ids)
    }

    /// Returns the rules, in the order of their files.
    pub fn all(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Returns what the patterns find in one text, at most one finding per rule. `place` writes the place of the text.
    /// Rules in `known` are skipped.
    pub fn find(
        &self,
        reading: &Reading,
        part: Part,
        place: &dyn Fn() -> String,
        known: &HashSet<Arc<str>>,
    ) -> Vec<Finding> {
        let wanted = |rule: &&Rule| rule.is_for(part) && !known.contains(&rule.id);
        let finding = |rule: &Rule| {
            let (start, end) = rule.first(reading)?;
            Some(rule.finding(place(), excerpt(&reading.flat, start, end)))
        };
        self.rules.iter().filter(wanted).filter_map(finding).collect()
    }

    /// Returns a finding of a detector; `None` if its rule is switched off.
    #[must_use]
    pub fn detected(&self, what: Detector, field: String, excerpt: String) -> Option<Finding> {
        let rule = &self.rules[*self.detectors.get(&what)?];
        Some(rule.finding(field, excerpt))
    }

    /// Compiles the rules; those with these ids are an operator's.
    fn compile(texts: Vec<RuleText>, own: &HashSet<String>) -> Result<Self, Vec<RuleMistake>> {
        let mut rules = Vec::new();
        let mut mistakes = Vec::new();
        let mut detectors = HashMap::new();
        for text in texts {
            if let Some(what) = text.detects {
                detectors.insert(what, rules.len());
            }
            let is_own = own.contains(&text.id);
            match Rule::new(text, is_own) {
                Ok(rule) => rules.push(rule),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        if mistakes.is_empty() { Ok(Self { rules, detectors }) } else { Err(mistakes) }
    }
}

impl Rule {
    /// Creates a rule. Every pattern of an operator's own is compiled at once, so that its mistakes are told.
    fn new(text: RuleText, is_own: bool) -> Result<Self, RuleMistake> {
        let wrong = |problem: String| mistake(&text.id, problem);
        let pattern = |text: String, case| Pattern { text, case, regex: OnceLock::new() };
        let all = |patterns: &[String]| -> Vec<Pattern> {
            patterns.iter().map(|one| pattern(one.clone(), text.case)).collect()
        };
        let patterns = all(&text.patterns);
        let unless = all(&text.unless);
        if is_own {
            patterns.iter().chain(&unless).try_for_each(Pattern::check).map_err(wrong)?;
        }
        let set = RegexSetBuilder::new(text.patterns.iter().map(|one| flagged(one, text.case)))
            .unicode(false)
            .size_limit(SET_SIZE)
            .dfa_size_limit(DFA_SIZE)
            .nest_limit(NESTING)
            .build()
            .map_err(|error| wrong(format!("its patterns together: {error}")))?;
        Ok(Self {
            set,
            patterns,
            unless,
            id: text.id.into(),
            severity: text.severity,
            why: text.why.trim().into(),
            right: text.right.trim().into(),
            parts: text.parts,
            lines: text.lines,
        })
    }

    /// Returns a finding of this rule.
    #[must_use]
    pub fn finding(&self, field: String, excerpt: String) -> Finding {
        Finding {
            rule: Arc::clone(&self.id),
            severity: self.severity,
            field,
            excerpt,
            why: Arc::clone(&self.why),
            right: Arc::clone(&self.right),
        }
    }

    fn is_for(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// Returns the first match that counts, of the first pattern that has one.
    fn first(&self, reading: &Reading) -> Option<(usize, usize)> {
        let text = reading.flat.as_bytes();
        let counts = |start: usize, end: usize| {
            let begins_line = || reading.line_starts().any(|line| line == start);
            let around = &text[start.saturating_sub(AROUND)..(end + AROUND).min(text.len())];
            (!self.lines || begins_line())
                && !self.unless.iter().any(|not| not.regex().is_match(around))
        };
        let matched = self.set.matches(text);
        let places = |at: usize| self.patterns[at].regex().find_iter(text).take(PLACES_MAX);
        let found = matched.iter().flat_map(places).map(|found| (found.start(), found.end()));
        found.into_iter().find(|(start, end)| counts(*start, *end))
    }
}

/// Merges the operator's rules over the shipped ones.
fn merged(shipped: Document, own: Document) -> Result<Vec<RuleText>, Vec<RuleMistake>> {
    let mut texts: Vec<RuleText> = shipped.rules.into_iter().map(|rule| rule.value).collect();
    for rule in own.rules {
        let rule = rule.value;
        match texts.iter_mut().find(|known| known.id == rule.id) {
            Some(known) => *known = rule,
            None => texts.push(rule),
        }
    }
    let is_known = |id: &str| texts.iter().any(|rule| rule.id == id);
    let named = own.off.iter().chain(own.severities.keys());
    let unknown: Vec<_> = named.filter(|id| !is_known(id)).collect();
    if !unknown.is_empty() {
        let problem = |id: &&String| mistake(id, "there is no such rule".to_owned());
        return Err(unknown.iter().map(problem).collect());
    }
    texts.retain(|rule| !own.off.contains(&rule.id));
    for rule in &mut texts {
        rule.severity = own.severities.get(&rule.id).copied().unwrap_or(rule.severity);
    }
    Ok(texts)
}

fn flagged(pattern: &str, case: bool) -> String {
    if case { format!("(?:{pattern})") } else { format!("(?i:{pattern})") }
}

fn compiled(pattern: &str, case: bool) -> Result<Regex, String> {
    RegexBuilder::new(&flagged(pattern, case))
        .unicode(false)
        .size_limit(PATTERN_SIZE)
        .dfa_size_limit(PATTERN_SIZE)
        .nest_limit(NESTING)
        .build()
        .map_err(|error| format!("the pattern {pattern:?}: {error}"))
}

fn mistake(rule: &str, problem: String) -> RuleMistake {
    RuleMistake { rule: rule.to_owned(), line: 0, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_pattern_compiles() {
        let rules = Rules::shipped();
        let patterns = || rules.all().flat_map(|rule| rule.patterns.iter().chain(&rule.unless));
        assert!(patterns().all(|pattern| pattern.regex.get().is_none()), "not before it is needed");
        for pattern in patterns() {
            assert_eq!(pattern.check(), Ok(()));
        }
    }
}
