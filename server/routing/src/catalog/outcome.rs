//! What a registration did, tool by tool; serialised with the request id so that a repeated request gets
//! the same answer.

use serde::{Deserialize, Serialize};

use super::check::Rejection;
use super::vetting::Vetted;
use toolgate_core::safety::Finding;
use toolgate_store::{ContentHash, StoredTool, ToolRecord};

/// What was done to a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutcomeKind {
    /// New, and stored.
    Accepted,
    /// The same as before.
    Unchanged,
    /// Stored in place of another version.
    Changed,
    /// Stored, but neither shown nor callable until approved.
    Quarantined,
    /// Not stored.
    Rejected,
    /// No longer in the catalog.
    Removed,
}

/// What became of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its MCP name, as far as it could be read.
    pub name: String,
    /// What was done.
    pub kind: OutcomeKind,
    /// The name the model sees; empty when rejected.
    pub model_name: String,
    /// The hash before.
    pub old_hash: Option<ContentHash>,
    /// The hash now.
    pub new_hash: Option<ContentHash>,
    /// The field at fault; empty unless rejected.
    pub field: String,
    /// What was wrong and what would be right; empty unless rejected or quarantined.
    pub problem: String,
    /// What was found in its texts, whether or not it was accepted all the same.
    #[serde(default)]
    pub findings: Vec<String>,
}

/// Findings of one tool that an answer has, and bytes of each.
const FINDINGS_MAX: usize = 5;
const FINDING_MAX: usize = 480;

/// Characters of a rejected tool's name, and of what was wrong with it, that are told.
const NAME_MAX: usize = 128;
const PROBLEM_MAX: usize = 2_048;

impl Outcome {
    /// The outcome of storing `new` where `old` was.
    #[must_use]
    pub fn stored(old: Option<&StoredTool>, new: &ToolRecord) -> Self {
        let kind = match old {
            _ if !new.status.is_shown() => OutcomeKind::Quarantined,
            None => OutcomeKind::Accepted,
            Some(old) if is_same(&old.record, new) => OutcomeKind::Unchanged,
            Some(_) => OutcomeKind::Changed,
        };
        Self {
            name: new.name.as_str().to_owned(),
            kind,
            model_name: new.model_name.clone(),
            old_hash: old.map(|old| old.record.hash),
            new_hash: Some(new.hash),
            field: String::new(),
            problem: String::new(),
            findings: Vec::new(),
        }
    }

    /// The same with what was found in the tool, and why it waits for approval where it does.
    #[must_use]
    pub fn because(self, vetted: &Vetted) -> Self {
        let problem = match vetted.because {
            Some(because) => format!("waits for approval: {}", because.sentence()),
            None => self.problem,
        };
        let mut outcome = Self { problem, ..self };
        vetted.findings.iter().for_each(|finding| outcome.add(finding));
        outcome
    }

    /// Adds what was found, while there is room for it.
    pub(super) fn add(&mut self, finding: &Finding) {
        if self.findings.len() < FINDINGS_MAX {
            let mut text = finding.to_string();
            text.truncate(text.floor_char_boundary(FINDING_MAX));
            self.findings.push(text);
        }
    }

    /// The outcome of removing `old`.
    #[must_use]
    pub fn removed(old: &StoredTool) -> Self {
        Self {
            name: old.record.name.as_str().to_owned(),
            kind: OutcomeKind::Removed,
            model_name: old.record.model_name.clone(),
            old_hash: Some(old.record.hash),
            new_hash: None,
            field: String::new(),
            problem: String::new(),
            findings: Vec::new(),
        }
    }
}

/// Whether nothing but the spelling of the definition's JSON differs: what was registered first stays then.
pub(super) fn is_same(old: &ToolRecord, new: &ToolRecord) -> bool {
    let respelt = ToolRecord {
        definition: old.definition.clone(),
        schema_tokens: old.schema_tokens,
        ..new.clone()
    };
    *old == respelt
}

impl From<&Rejection> for Outcome {
    fn from(rejection: &Rejection) -> Self {
        Self {
            name: rejection.name.chars().take(NAME_MAX).collect(),
            kind: OutcomeKind::Rejected,
            model_name: String::new(),
            old_hash: None,
            new_hash: None,
            field: rejection.field.clone(),
            problem: rejection.problem.chars().take(PROBLEM_MAX).collect(),
            findings: Vec::new(),
        }
    }
}
