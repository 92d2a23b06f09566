//! What a rule has to say of a tool: what is wrong, and what would be right.

use serde::Serialize;
use serde_json::Value;

use super::tool::Tool;

/// What is wrong, in a word. The order is the order of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// A registration would not take the tool.
    Rejected,
    /// The MCP server has another tool of this name.
    DuplicateName,
    /// Its own words don't bring it up.
    Unfindable,
    /// Another tool reads almost the same.
    NearTwin,
    /// There is no description.
    EmptyDescription,
    /// The description was made by a machine, or tells no more than the name.
    MachineMadeDescription,
    /// What stands in the summary stands in many others too.
    Boilerplate,
    /// The description has hardly a word to search by.
    TooShort,
    /// Parameters without a description.
    MissingParameterDescription,
    /// The first sentence is longer than a summary.
    SummaryCut,
}

impl Code {
    /// All of them, in their order.
    pub const ALL: [Self; 10] = [
        Self::Rejected,
        Self::DuplicateName,
        Self::Unfindable,
        Self::NearTwin,
        Self::EmptyDescription,
        Self::MachineMadeDescription,
        Self::Boilerplate,
        Self::TooShort,
        Self::MissingParameterDescription,
        Self::SummaryCut,
    ];

    /// As reports write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "REJECTED",
            Self::DuplicateName => "DUPLICATE_NAME",
            Self::Unfindable => "UNFINDABLE",
            Self::NearTwin => "NEAR_TWIN",
            Self::EmptyDescription => "EMPTY_DESCRIPTION",
            Self::MachineMadeDescription => "MACHINE_MADE_DESCRIPTION",
            Self::Boilerplate => "BOILERPLATE",
            Self::TooShort => "TOO_SHORT",
            Self::MissingParameterDescription => "MISSING_PARAMETER_DESCRIPTION",
            Self::SummaryCut => "SUMMARY_CUT",
        }
    }
}

/// How bad it is; the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Makes the tool harder to find or to use.
    Warning,
    /// The tool can't be had, or not be found.
    Error,
}

impl Severity {
    /// As reports write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What is wrong, in a word.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The MCP server, as its file names it.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
    /// The figures behind it, by code; null when there are none.
    pub evidence: Value,
}

impl Finding {
    /// A warning about a tool.
    pub(super) fn warning(code: Code, tool: &Tool<'_>, problem: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Warning,
            server: tool.server.to_owned(),
            tool: tool.name.to_owned(),
            problem: problem.into(),
            remedy: String::new(),
            evidence: Value::Null,
        }
    }

    /// The same with another severity.
    pub(super) fn at(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// The same with what would be right.
    pub(super) fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }

    /// The same with its figures.
    pub(super) fn evidence(self, evidence: Value) -> Self {
        Self { evidence, ..self }
    }
}

/// Sorts findings by MCP server, tool and code.
pub(super) fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        (&a.server, &a.tool, a.code, &a.problem).cmp(&(&b.server, &b.tool, b.code, &b.problem))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_as_json_writes_them() {
        for code in Code::ALL {
            assert_eq!(serde_json::json!(code), code.as_str());
        }
        assert!(Code::ALL.is_sorted());
        for severity in [Severity::Note, Severity::Warning, Severity::Error] {
            assert_eq!(serde_json::json!(severity), severity.as_str());
        }
    }
}
