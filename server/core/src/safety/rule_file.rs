//! Files of rules in YAML. A file is checked as a whole, and every mistake has its place.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::finding::Severity;
use super::pieces::Part;

/// Maximum size of a file in bytes.
const FILE_MAX: usize = 256 << 10;
const RULES_MAX: usize = 256;
const PATTERNS_MAX: usize = 32;
const PATTERN_MAX: usize = 2_048;
const TEXT_MAX: usize = 512;
const ID_MAX: usize = 64;
const MISTAKES_MAX: usize = 16;

/// Detector for something that no pattern can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detector {
    /// Invisible characters within words.
    SplitWords,
    /// Invisible characters elsewhere.
    Invisible,
    /// Text in tag characters.
    Tags,
    /// Text whose direction is turned.
    Turned,
    /// Commands to a terminal.
    Commands,
    /// Letters in a mathematical style.
    Styled,
    /// Words with letters of two scripts that look like one.
    MixedScript,
    /// White space that pushes text out of view.
    Flood,
    /// Encoded words.
    Encoded,
    /// More text than is scanned.
    TooLong,
    /// Name of another MCP server's tool.
    SameName,
    /// Near match of the name of another MCP server's tool.
    NearName,
    /// Near copy of the description of another MCP server's tool.
    NearCopy,
    /// Mention of another MCP server's tool.
    NamesOther,
    /// Order about another MCP server's tool.
    BendsOther,
    /// Near copy of a tool that the same registration removes.
    Renamed,
    /// Request to be in every active set.
    AlwaysLoaded,
    /// Tool that is nearer to everybody's requests than honest tools are.
    NearEverything,
}

/// File of rules.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Document {
    /// Ids of rules that are switched off.
    pub(super) off: Vec<String>,
    /// Severities that replace those of the rules, by rule id.
    pub(super) severities: BTreeMap<String, Severity>,
    pub(super) rules: Vec<Spanned<RuleText>>,
}

/// Rule in its text form.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleText {
    pub(super) id: String,
    pub(super) severity: Severity,
    /// Kinds of texts that the rule is matched against; empty for all.
    #[serde(default)]
    pub(super) parts: Vec<Part>,
    #[serde(default)]
    pub(super) patterns: Vec<String>,
    /// Patterns that make the rule pass over a match with such a text in or near it.
    #[serde(default)]
    pub(super) unless: Vec<String>,
    /// True if upper and lower case differ.
    #[serde(default)]
    pub(super) case: bool,
    /// True if a match must stand at the beginning of a line.
    #[serde(default)]
    pub(super) lines: bool,
    pub(super) detects: Option<Detector>,
    pub(super) why: String,
    pub(super) right: String,
}

/// Mistake in a file of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleMistake {
    /// Id of the rule; empty for the whole file.
    pub rule: String,
    /// Line number, from 1; 0 when it is not known.
    pub line: u64,
    /// Description of the problem and the fix.
    pub problem: String,
}

impl fmt::Display for RuleMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.rule.is_empty() {
            write!(f, "rule {:?}: ", self.rule)?;
        }
        f.write_str(&self.problem)
    }
}

impl Document {
    /// Parses and checks a file.
    pub(super) fn parse(text: &str) -> Result<Self, Vec<RuleMistake>> {
        let whole =
            |line: u64, problem: String| vec![RuleMistake { rule: String::new(), line, problem }];
        if text.len() > FILE_MAX {
            return Err(whole(0, format!("has {} bytes; at most {FILE_MAX}", text.len())));
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: 8, max_aliases: 0, max_documents: 1 },
            with_snippet: false,
            strict_booleans: true,
        };
        let document: Self =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| {
                let error = error.without_snippet();
                let line = error.location().map_or(0, |place| place.line());
                whole(line, error.to_string())
            })?;
        let mistakes = document.mistakes();
        if mistakes.is_empty() { Ok(document) } else { Err(mistakes) }
    }

    fn mistakes(&self) -> Vec<RuleMistake> {
        let mut mistakes = Vec::new();
        if self.rules.len() > RULES_MAX {
            let problem = format!("{} rules; at most {RULES_MAX}", self.rules.len());
            return vec![RuleMistake { rule: String::new(), line: 0, problem }];
        }
        let mut ids = HashSet::new();
        for spanned in &self.rules {
            let rule = &spanned.value;
            let line = spanned.referenced.line();
            let mut problem = |problem: String| {
                mistakes.push(RuleMistake { rule: rule.id.clone(), line, problem });
            };
            if !ids.insert(&rule.id) {
                problem("stands twice".to_owned());
            }
            rule.problems(&mut problem);
        }
        mistakes.truncate(MISTAKES_MAX);
        mistakes
    }
}

impl RuleText {
    fn problems(&self, problem: &mut dyn FnMut(String)) {
        let is_id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.id.is_empty() || self.id.len() > ID_MAX || !self.id.chars().all(is_id) {
            problem(format!("the id must be 1 to {ID_MAX} characters of [a-z0-9-]"));
        }
        let says = |text: &str| !text.trim().is_empty() && text.len() <= TEXT_MAX;
        if !says(&self.why) || !says(&self.right) {
            problem(format!("why and right must be 1 to {TEXT_MAX} bytes"));
        }
        if self.patterns.is_empty() == self.detects.is_none() {
            problem("needs patterns, or else what it detects".to_owned());
        }
        for list in [&self.patterns, &self.unless] {
            if list.len() > PATTERNS_MAX {
                problem(format!("{} patterns; at most {PATTERNS_MAX}", list.len()));
            }
            if list.iter().any(|pattern| pattern.is_empty() || pattern.len() > PATTERN_MAX) {
                problem(format!("a pattern must be 1 to {PATTERN_MAX} bytes"));
            }
        }
    }
}
