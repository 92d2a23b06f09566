//! Result of one check of the doctor.

use serde_json::{Value, json};

use crate::cli::output::{BAD, GOOD, ODD};

/// Severity of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// No problem.
    Ok,
    /// A problem that does not keep a server from working.
    Warn,
    /// A problem that keeps a server from starting or working.
    Fail,
}

/// Result of one check.
#[derive(Debug)]
pub(super) struct Check {
    /// Name of the checked part.
    pub(super) name: &'static str,
    /// Severity of the result.
    pub(super) status: Status,
    /// Description of the result.
    pub(super) detail: String,
    /// Advice for the operator; empty if there is none.
    pub(super) advice: String,
}

impl Check {
    pub(super) fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self::new(name, Status::Ok, detail.into())
    }

    pub(super) fn warn(name: &'static str, detail: impl Into<String>) -> Self {
        Self::new(name, Status::Warn, detail.into())
    }

    pub(super) fn fail(name: &'static str, detail: impl Into<String>) -> Self {
        Self::new(name, Status::Fail, detail.into())
    }

    pub(super) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    fn new(name: &'static str, status: Status, detail: String) -> Self {
        Self { name, status, detail, advice: String::new() }
    }

    pub(super) fn line(&self) -> String {
        let (style, word) = match self.status {
            Status::Ok => (GOOD, "OK  "),
            Status::Warn => (ODD, "WARN"),
            Status::Fail => (BAD, "FAIL"),
        };
        let mut line = format!("{style}{word}{style:#}  {:<14} {}\n", self.name, self.detail);
        if !self.advice.is_empty() {
            line.push_str(&format!("      {:<14} -> {}\n", "", self.advice));
        }
        line
    }

    pub(super) fn as_json(&self) -> Value {
        let status = match self.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "fail",
        };
        json!({ "name": self.name, "status": status, "detail": self.detail, "advice": self.advice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_well() {
        let check = Check::fail("model", "3 files missing").advice("run `toolgate model fetch`");
        let text = anstream::adapter::strip_str(&check.line()).to_string();
        assert_eq!(
            text,
            "FAIL  model          3 files missing\n                     -> run `toolgate model fetch`\n"
        );
        assert_eq!(check.as_json()["status"], "fail");
    }
}
