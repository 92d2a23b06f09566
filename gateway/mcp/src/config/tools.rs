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
    /// Tools that only read, by the word of the operator: `call_read_tool` calls them, whatever the server says.
    pub read_only: Vec<String>,
}

impl ToolFilter {
    /// Returns true if the tool is let in.
    pub(crate) fn admits(&self, tool: &str) -> bool {
        let is_allowed = self.allow.as_ref().is_none_or(|allow| has(allow, tool));
        is_allowed && !has(&self.deny, tool)
    }

    /// Returns true if the operator says that the tool only reads.
    pub(crate) fn only_reads(&self, tool: &str) -> bool {
        has(&self.read_only, tool)
    }
}

fn has(patterns: &[String], tool: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => tool == pattern,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_tools_allow_and_deny() {
        let filter = ToolFilter {
            allow: Some(vec!["get_*".into(), "x".into()]),
            deny: vec!["get_b*".into()],
            read_only: vec!["get_*".into()],
        };
        assert!(filter.only_reads("get_a") && !filter.only_reads("x"));
        assert!(filter.admits("get_a") && filter.admits("x"));
        assert!(!filter.admits("get_b1") && !filter.admits("y"));
        assert!(ToolFilter::default().admits("anything"));
    }
}
