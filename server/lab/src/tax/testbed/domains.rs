//! The six MCP servers of the published testbed. Their sizes are the paper's, and their tools combine verbs with
//! objects.

use super::verbs::{
    CAPTURE, COPY, CREATE, DELETE, DOWNLOAD, ERASE, EXPORT, EXTRACT, FETCH, GET, INSERT, LIST,
    MOVE, QUERY_ROWS, READ, SEARCH, UPDATE, Verb, WRITE,
};

/// MCP server of the testbed. It has a tool for each pair of object and verb.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Domain {
    /// Name of the MCP server.
    pub(crate) server: &'static str,
    /// Name in the paper.
    pub(crate) title: &'static str,
    /// Tokens of each definition.
    pub(crate) tokens: u32,
    /// Phrase in descriptions that says where the objects are.
    pub(super) of: &'static str,
    /// Places that a user names.
    pub(crate) places: &'static [&'static str],
    /// Objects of the tools.
    pub(super) objects: &'static [&'static str],
    /// Actions on each object.
    pub(super) verbs: &'static [&'static Verb],
}

/// Testbed of the paper: 120 tools.
pub(crate) const PAPER: [Domain; 6] = [
    Domain {
        server: "github",
        title: "GitHub",
        tokens: 520,
        of: "of a GitHub repository",
        places: &["the auth repository", "our payments repo on GitHub", "the mobile app's repo"],
        objects: &["pull request", "issue", "branch", "release", "workflow run", "review comment"],
        verbs: &[&LIST, &GET, &CREATE, &UPDATE, &DELETE],
    },
    Domain {
        server: "filesystem",
        title: "Filesystem",
        tokens: 180,
        of: "on the local disk",
        places: &["notes/plan.md", "under /var/log", "in my home folder"],
        objects: &["file", "directory"],
        verbs: &[&READ, &WRITE, &COPY, &MOVE, &ERASE],
    },
    Domain {
        server: "database",
        title: "Database",
        tokens: 410,
        of: "in the shop's SQL database",
        places: &["the shop database", "the reporting replica", "our SQL database"],
        objects: &["customer record", "order", "invoice", "product"],
        verbs: &[&QUERY_ROWS, &INSERT, &UPDATE, &DELETE, &EXPORT],
    },
    Domain {
        server: "slack",
        title: "Slack",
        tokens: 290,
        of: "in a Slack workspace",
        places: &["the support channel", "our Slack", "#incidents"],
        objects: &["message", "thread", "channel"],
        verbs: &[&SEARCH, &LIST, &CREATE, &UPDATE, &DELETE],
    },
    Domain {
        server: "web",
        title: "Web",
        tokens: 220,
        of: "of the public web",
        places: &["example.org/pricing", "the competitor's site", "that news site"],
        objects: &["web page", "image"],
        verbs: &[&SEARCH, &FETCH, &EXTRACT, &CAPTURE, &DOWNLOAD],
    },
    Domain {
        server: "jira",
        title: "Jira",
        tokens: 470,
        of: "of a Jira project",
        places: &["the Jira project PAY", "our Jira", "the platform team's project"],
        objects: &["ticket", "epic", "sprint", "worklog", "component", "board", "fix version"],
        verbs: &[&SEARCH, &GET, &CREATE, &UPDATE, &DELETE],
    },
];

impl Domain {
    /// Returns the number of tools.
    pub(crate) fn tools(&self) -> usize {
        self.objects.len() * self.verbs.len()
    }
}
