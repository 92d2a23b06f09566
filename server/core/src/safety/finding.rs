//! Findings in a tool's texts: the place, the reason and the fix. An excerpt shows the text as it was read, escaped, so
//! that it does no harm where it is shown.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Maximum length of an excerpt in characters, before it is escaped.
const EXCERPT_MAX: usize = 96;
/// Maximum number of characters of an excerpt before the match.
const BEFORE: usize = 24;

/// Severity of a finding, least severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Odd, but mostly honest.
    Low,
    /// Unnecessary for an honest tool, though some honest tools have it.
    Medium,
    /// Hardly ever honest.
    High,
}

impl Severity {
    /// All severities, least severe first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// Returns the name of the severity, as in reports and rule files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Finding in a tool's texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Id of the rule that found it.
    pub rule: Arc<str>,
    /// Severity of the finding.
    pub severity: Severity,
    /// Place of the text, such as `tools[3].inputSchema.properties.x.description`.
    pub field: String,
    /// Match with a little text around it.
    pub excerpt: String,
    /// Reason why the match matters.
    pub why: Arc<str>,
    /// Advice on what would be right.
    pub right: Arc<str>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, severity, field, excerpt, why, right } = self;
        write!(f, "{rule} ({}) at {field}: {why}", severity.as_str())?;
        if !excerpt.is_empty() {
            write!(f, " Found: \"{excerpt}\".")?;
        }
        write!(f, " {right}")
    }
}

/// Returns the part of `text` around the bytes `start..end`, in printable characters.
#[must_use]
pub fn excerpt(text: &str, start: usize, end: usize) -> String {
    let start = text.floor_char_boundary(start.min(text.len()));
    let from = text[..start].char_indices().rev().take(BEFORE).last().map_or(start, |(at, _)| at);
    let kept = text[from..].char_indices().nth(EXCERPT_MAX);
    let to = kept.map_or(text.len(), |(at, _)| from + at);
    // The match is shown to its end, unless that is too far.
    let to = to.min(text.ceil_char_boundary(end.max(start).saturating_add(BEFORE).min(text.len())));
    let cut = |is_cut: bool| if is_cut { "..." } else { "" };
    format!("{}{}{}", cut(from > 0), escaped(&text[from..to]), cut(to < text.len()))
}

/// Returns the text with everything that is not plainly printable written as escapes.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(c.escape_default()),
            ' '..='~' => out.push(c),
            c if c.is_alphanumeric() => out.push(c),
            c => out.extend(c.escape_default()),
        }
    }
    out
}

/// Sorts findings, most severe first.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        b.severity.cmp(&a.severity).then_with(|| (&a.rule, &a.field).cmp(&(&b.rule, &b.field)))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_harmless() {
        assert_eq!(excerpt("Do it", 0, 2), "Do it");
        let long = format!("{} here {}", "a".repeat(100), "b".repeat(100));
        let cut = excerpt(&long, 101, 105);
        assert!(cut.starts_with("...aaaa") && cut.ends_with("bbb..."), "{cut}");
        assert!(cut.contains(" here ") && cut.len() < 110, "{cut}");
        assert_eq!(escaped("\u{1b}[31m\"\u{202e}é日\n"), "\\u{1b}[31m\\\"\\u{202e}é日\\n");
        assert_eq!(excerpt("日本語", 1, 99), "日本語");
        assert_eq!(excerpt("", 5, 9), "");
    }

    #[test]
    fn the_worst_come_first() {
        let finding = |rule: &str, severity| Finding {
            rule: rule.into(),
            severity,
            field: String::new(),
            excerpt: String::new(),
            why: "".into(),
            right: "".into(),
        };
        let mut findings = [
            finding("b", Severity::Low),
            finding("c", Severity::High),
            finding("a", Severity::Low),
        ];
        sort(&mut findings);
        assert_eq!(findings.map(|finding| finding.rule.to_string()), ["c", "a", "b"]);
    }
}
