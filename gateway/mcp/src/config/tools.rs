//! Tools that the gateway knows of a server: `tools` of a server.

use serde::Deserialize;

/// Tools that the gateway knows of a server. A pattern may end with `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolFilter {
    /// Tools that are let in. Absent: all.
    pub allow: Option<Vec<String>>,
    /// Tools that are left out of them.
    pub deny: Vec<String>,
}

impl ToolFilter {
    /// Returns true if the tool is let in.
    pub(crate) fn admits(&self, tool: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => tool == pattern,
        };
        let is_allowed = self.allow.as_ref().is_none_or(|allow| allow.iter().any(matches));
        is_allowed && !self.deny.iter().any(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_tools_allow_and_deny() {
        let filter = ToolFilter {
            allow: Some(vec!["get_*".into(), "x".into()]),
            deny: vec!["get_b*".into()],
        };
        assert!(filter.admits("get_a") && filter.admits("x"));
        assert!(!filter.admits("get_b1") && !filter.admits("y"));
        assert!(ToolFilter::default().admits("anything"));
    }
}
