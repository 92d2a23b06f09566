//! Outcome of a registration for each tool. It is stored with the request id, so that a repeated request gets the same
//! answer.

use serde::{Deserialize, Serialize};

use super::check::Rejection;
use super::vetting::Vetted;
use toolgate_core::safety::Finding;
use toolgate_store::{ContentHash, StoredTool, ToolRecord};

/// Kind of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutcomeKind {
    /// New tool that was stored.
    Accepted,
    /// Tool that is the same as before.
    Unchanged,
    /// Tool that replaced another version.
    Changed,
    /// Tool that was stored, but is neither shown nor callable until approved.
    Quarantined,
    /// Tool that was not stored.
    Rejected,
    /// Tool that was removed from the catalog.
    Removed,
}

/// Outcome for one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// MCP name, as far as it could be read.
    pub name: String,
    /// Kind of the outcome.
    pub kind: OutcomeKind,
    /// Name that the model sees. Empty if the tool was rejected.
    pub model_name: String,
    /// Hash of the previous definition.
    pub old_hash: Option<ContentHash>,
    /// Hash of the new definition.
    pub new_hash: Option<ContentHash>,
    /// Field at fault. Empty unless the tool was rejected.
    pub field: String,
    /// Explanation of the mistake and of the expected input. Empty unless the tool was rejected or quarantined.
    pub problem: String,
    /// Findings in the tool's texts. A tool may have findings and still be accepted.
    #[serde(default)]
    pub findings: Vec<String>,
}

/// Maximum findings of one tool in an answer, and maximum bytes of each.
const FINDINGS_MAX: usize = 5;
const FINDING_MAX: usize = 480;

/// Maximum characters of a rejected tool's name in an answer, and of the explanation.
const NAME_MAX: usize = 128;
const PROBLEM_MAX: usize = 2_048;

impl Outcome {
    /// Returns the outcome of storing `new`, which replaces `old` if there was one.
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

    /// Returns the outcome with the tool's findings. For a quarantined tool it also holds the reason.
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

    /// Adds a finding if there is room for it.
    pub(super) fn add(&mut self, finding: &Finding) {
        if self.findings.len() < FINDINGS_MAX {
            let mut text = finding.to_string();
            text.truncate(text.floor_char_boundary(FINDING_MAX));
            self.findings.push(text);
        }
    }

    /// Returns the outcome of removing `old`.
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

/// Returns true if the records differ at most in the spelling of the definition's JSON. The stored text is kept then.
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
