//! Finding of a rule about a tool: the problem and its remedy.

use serde::Serialize;
use serde_json::Value;

use super::tool::Tool;

/// Code of a problem. The order is the order in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// A registration would reject the tool.
    Rejected,
    /// The MCP server has another tool of this name.
    DuplicateName,
    /// The tool's own words do not find it.
    Unfindable,
    /// Another tool has almost the same text.
    NearTwin,
    /// The description is missing.
    EmptyDescription,
    /// The description is machine-made, or says no more than the name.
    MachineMadeDescription,
    /// The text of the summary is shared with many other tools.
    Boilerplate,
    /// The description has too few words to search for.
    TooShort,
    /// Some parameters lack a description.
    MissingParameterDescription,
    /// The first sentence is longer than a summary.
    SummaryCut,
}

impl Code {
    /// All codes, in their order.
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

    /// Returns the code as it appears in reports.
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

/// Severity of a finding, least severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information only.
    Note,
    /// The tool is harder to find or to use.
    Warning,
    /// The tool can't be registered or can't be found.
    Error,
}

impl Severity {
    /// Returns the severity as it appears in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Problem of one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Code of the problem.
    pub code: Code,
    /// Severity of the problem.
    pub severity: Severity,
    /// Name of the MCP server in its file.
    pub server: String,
    /// Name of the tool.
    pub tool: String,
    /// Description of the problem.
    pub problem: String,
    /// Advice on how to fix the problem.
    pub remedy: String,
    /// Figures behind the finding, which depend on the code; null if there are none.
    pub evidence: Value,
}

impl Finding {
    /// Creates a warning about a tool.
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

    /// Returns the finding with another severity.
    pub(super) fn at(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// Returns the finding with a remedy.
    pub(super) fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }

    /// Returns the finding with evidence.
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
