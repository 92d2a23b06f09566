//! What findings and changes mean for a tool, by how far its MCP server's texts are trusted. Nothing else decides
//! whether a tool is quarantined.

use super::finding::{Finding, Severity};

/// How far an MCP server's texts are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Third-party texts.
    Untrusted,
    /// The usual checks.
    Standard,
    /// The tenant's own servers.
    Trusted,
}

/// Why a tool is quarantined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Because {
    /// Of what was found in its texts.
    Findings,
    /// Its definition is another one than before.
    Changed,
    /// Its MCP server had no such tool when it was first registered.
    Added,
    /// It was quarantined, and nobody has approved it since.
    Waiting,
}

/// What is known of a tool from before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Its MCP server was not registered.
    NoServer,
    /// Its MCP server had no such tool.
    NoTool,
    /// It said something else.
    Otherwise,
    /// It said the same, and was shown.
    Shown,
    /// It said the same, and was quarantined.
    Quarantined,
    /// It said the same, and somebody has approved that.
    Approved,
}

impl Tier {
    /// The tier of the wire's number of `TrustTier`; what is not said is the standard.
    #[must_use]
    pub fn of(number: i32) -> Self {
        match number {
            1 => Self::Untrusted,
            3 => Self::Trusted,
            _ => Self::Standard,
        }
    }

    /// As settings write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Standard => "standard",
            Self::Trusted => "trusted",
        }
    }

    /// The least severity that quarantines a tool; `None` when none does.
    #[must_use]
    pub fn bar(self) -> Option<Severity> {
        match self {
            Self::Untrusted => Some(Severity::Medium),
            Self::Standard => Some(Severity::High),
            Self::Trusted => None,
        }
    }

    /// Why a tool is quarantined; `None` when it is shown.
    ///
    /// A third party's tools are shown when its MCP server is registered for the first time and nothing is found in
    /// them. What it says otherwise, or besides, later on waits: whoever relied on the first texts never saw these.
    #[must_use]
    pub fn quarantine(self, before: Before, findings: &[Finding]) -> Option<Because> {
        if before == Before::Approved {
            return None;
        }
        let bar = self.bar()?;
        if findings.iter().any(|finding| finding.severity >= bar) {
            return Some(Because::Findings);
        }
        match (self, before) {
            (Self::Untrusted, Before::Otherwise) => Some(Because::Changed),
            (Self::Untrusted, Before::NoTool) => Some(Because::Added),
            (Self::Untrusted, Before::Quarantined) => Some(Because::Waiting),
            _ => None,
        }
    }
}

impl Because {
    /// As metrics and logs write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Findings => "findings",
            Self::Changed => "changed",
            Self::Added => "added",
            Self::Waiting => "waiting",
        }
    }

    /// The same in a sentence.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Findings => "its texts hold what must be reviewed first",
            Self::Changed => "its definition changed, and its MCP server is untrusted",
            Self::Added => "its MCP server is untrusted, and was first registered without it",
            Self::Waiting => "it was quarantined before, and nobody has approved it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: Severity) -> Vec<Finding> {
        let text = || "".into();
        let field = String::new();
        let excerpt = String::new();
        vec![Finding { rule: text(), severity, field, excerpt, why: text(), right: text() }]
    }

    #[test]
    fn tiers_decide() {
        use {Because as B, Before as F, Severity as S, Tier as T};
        for (tier, before, severity, wanted) in [
            (T::Trusted, F::NoServer, Some(S::High), None),
            (T::Trusted, F::Quarantined, Some(S::High), None),
            (T::Standard, F::NoServer, Some(S::High), Some(B::Findings)),
            (T::Standard, F::Shown, Some(S::High), Some(B::Findings)),
            (T::Standard, F::NoServer, Some(S::Medium), None),
            (T::Standard, F::Otherwise, None, None),
            (T::Standard, F::NoTool, None, None),
            (T::Standard, F::Quarantined, None, None),
            (T::Standard, F::Approved, Some(S::High), None),
            (T::Untrusted, F::NoServer, None, None),
            (T::Untrusted, F::NoServer, Some(S::Low), None),
            (T::Untrusted, F::NoServer, Some(S::Medium), Some(B::Findings)),
            (T::Untrusted, F::Otherwise, None, Some(B::Changed)),
            (T::Untrusted, F::NoTool, None, Some(B::Added)),
            (T::Untrusted, F::Shown, None, None),
            (T::Untrusted, F::Shown, Some(S::Medium), Some(B::Findings)),
            (T::Untrusted, F::Quarantined, None, Some(B::Waiting)),
            (T::Untrusted, F::Approved, Some(S::High), None),
        ] {
            let findings = severity.map(finding).unwrap_or_default();
            let got = tier.quarantine(before, &findings);
            assert_eq!(got, wanted, "{tier:?} {before:?} {severity:?}");
        }
    }

    #[test]
    fn numbers_of_the_wire_are_tiers() {
        let tiers = [0, 1, 2, 3, 9].map(|number| Tier::of(number).as_str());
        assert_eq!(tiers, ["standard", "untrusted", "standard", "trusted", "standard"]);
    }
}
