//! Patterns of models and hosts: `*` stands for any letters, and case does not matter.

use std::fmt;

use crate::glob::Glob;

/// Pattern for the name of a model or host, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Glob);

impl Pattern {
    /// Creates a pattern from its text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Glob::of_stars(&text.trim().to_lowercase()))
    }

    /// Returns true if the whole of `text` matches the pattern.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.0.matches(&text.to_lowercase(), &mut 0)
    }

    /// Returns true if `text` matches the pattern. A pattern without `*` may match any part of the text.
    #[must_use]
    pub fn is_within(&self, text: &str) -> bool {
        if self.0.has_wildcard() {
            self.matches(text)
        } else {
            text.to_lowercase().contains(&self.0.to_string())
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Returns the host of a URL or of `host:port`; `None` if it has none.
#[must_use]
pub fn host_of(url: &str) -> Option<&str> {
    let rest = url.trim().split_once("://").map_or(url.trim(), |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(address) => address.split_once(']')?.0,
        None => host.split_once(':').map_or(host, |(host, _)| host),
    };
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, whole, within) in [
            ("haiku", "claude-Haiku-3", false, true),
            ("haiku", "HAIKU", true, true),
            ("*haiku*", "claude-haiku-3", true, true),
            ("claude-*-3", "claude-haiku-3", true, true),
            ("claude-*-3", "claude-haiku-4", false, false),
            ("a*b*c", "abxbc", true, true),
            ("a*a", "a", false, false),
            ("*", "", true, true),
            ("*.openai.azure.com", "x.openai.azure.com", true, true),
            ("*.openai.azure.com", "x.openai.azure.com.evil", false, false),
        ] {
            let parsed = Pattern::new(pattern);
            assert_eq!(parsed.matches(text), whole, "{pattern} {text}");
            assert_eq!(parsed.is_within(text), within, "{pattern} {text}");
        }
    }

    #[test]
    fn hosts_are_taken_out_of_urls() {
        for (url, host) in [
            ("https://api.anthropic.com/v1", Some("api.anthropic.com")),
            ("http://u:p@proxy.example:8080?x", Some("proxy.example")),
            ("https://api.anthropic.com@proxy.example", Some("proxy.example")),
            ("https://proxy.example\\@api.anthropic.com", Some("proxy.example")),
            ("localhost:4000", Some("localhost")),
            ("https://[::1]:4000/", Some("::1")),
            ("https:///v1", None),
            ("", None),
        ] {
            assert_eq!(host_of(url), host, "{url}");
        }
    }
}
