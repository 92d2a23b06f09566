//! Comparison of a checked body with the stored server, which gives the change to commit. Pure: it uses neither store
//! nor encoder.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::check::Rejection;
use super::outcome::{Outcome, is_same};
use super::verify::is_as_registered;
use super::vetting::Vetted;
use toolgate_core::identity::ToolName;
use toolgate_store::{Comparison, ContentHash, ServerRecord, StoredServer, StoredTool, ToolRecord};

/// Treatment of stored tools that the body does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Removes them.
    Replace,
    /// Keeps them.
    Merge,
}

/// Tool of the body after its check.
pub type Checked = Result<ToolRecord, Rejection>;

/// Change that a commit would make.
#[derive(Debug, Default)]
pub struct Plan {
    /// Tools to insert or replace.
    pub upserts: Vec<ToolRecord>,
    /// Tools to remove.
    pub removals: Vec<ToolName>,
    /// Summaries that no shown stored tool has, so that they need an embedding. May hold duplicates.
    pub new_summaries: Vec<String>,
    /// Outcomes to answer with, one for each tool.
    pub outcomes: Vec<Outcome>,
    /// True if the server's own record differs.
    pub server_changed: bool,
    /// Number of upserts that add a tool.
    pub added: usize,
    /// Comparison with other MCP servers' tools that the plan was decided by.
    pub comparison: Option<Comparison>,
}

/// Tools of the body, and the vetting result of each.
pub type Judged<'a> = (&'a [Checked], &'a [Vetted]);

impl Plan {
    /// Compares the body with the stored server and plans the change.
    #[must_use]
    pub fn new(
        server: &ServerRecord,
        (checked, vetted): Judged<'_>,
        stored: Option<&(StoredServer, Vec<StoredTool>)>,
        mode: Mode,
    ) -> Self {
        let stored_tools = stored.map_or(&[][..], |(_, tools)| tools);
        let mut plan = Self {
            server_changed: stored.is_none_or(|(old, _)| old.record != *server),
            ..Self::default()
        };
        let old: HashMap<_, _> = stored_tools.iter().map(|t| (t.record.name.as_str(), t)).collect();
        let shown = stored_tools.iter().filter(|tool| tool.record.status.is_shown());
        let known: HashSet<_> = shown.map(|tool| tool.record.summary.as_str()).collect();
        for (tool, vetted) in checked.iter().zip(vetted) {
            plan.add(tool, vetted, &old, &known);
        }
        if mode == Mode::Replace {
            plan.remove_unnamed(checked, stored_tools);
        }
        plan
    }

    /// Returns true if a commit would change nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.upserts.is_empty() && self.removals.is_empty() && !self.server_changed
    }

    fn add(
        &mut self,
        tool: &Checked,
        vetted: &Vetted,
        old: &HashMap<&str, &StoredTool>,
        known: &HashSet<&str>,
    ) {
        let record = match tool {
            Err(rejection) => return self.outcomes.push(rejection.into()),
            Ok(record) => ToolRecord { status: vetted.status, ..record.clone() },
        };
        let old = old.get(record.name.as_str()).copied();
        self.outcomes.push(Outcome::stored(old, &record).because(vetted));
        // A stored tool that has been damaged is stored again.
        let is_whole = |old: &StoredTool| is_as_registered(&old.record);
        if old.is_some_and(|old| is_same(&old.record, &record) && is_whole(old)) {
            return;
        }
        // Quarantined tools are not embedded.
        if record.status.is_shown() && !known.contains(record.summary.as_str()) {
            self.new_summaries.push(record.summary.clone());
        }
        self.added += usize::from(old.is_none());
        self.upserts.push(record);
    }

    /// Removes stored tools that the body does not name. A rejected tool keeps its stored version: a broken update must
    /// not lose the version that worked.
    fn remove_unnamed(&mut self, checked: &[Checked], stored: &[StoredTool]) {
        let named: HashSet<&str> = checked
            .iter()
            .map(|tool| tool.as_ref().map_or_else(|r| r.name.as_str(), |t| t.name.as_str()))
            .collect();
        let gone = stored.iter().filter(|tool| !named.contains(tool.record.name.as_str()));
        for tool in gone {
            self.removals.push(tool.record.name.clone());
            self.outcomes.push(Outcome::removed(tool));
        }
    }
}

/// Returns SHA-256 of a text that is embedded.
#[must_use]
pub fn text_hash(text: &str) -> ContentHash {
    Sha256::digest(text.as_bytes()).into()
}
