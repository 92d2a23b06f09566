//! Decision about a tool's quarantine, from its findings and changes and from its MCP server's trust tier. Nothing else
//! decides whether a tool is quarantined.

use super::finding::{Finding, Severity};
use crate::mcp_server::TrustTier;

/// Trust in the texts of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Third-party texts.
    Untrusted,
    /// Usual checks.
    Standard,
    /// Texts of the tenant's own MCP servers.
    Trusted,
}

/// Reason for a tool's quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuarantineReason {
    /// Findings in the tool's texts.
    Findings,
    /// Change of the tool's definition.
    Changed,
    /// Addition of the tool after its MCP server was first registered.
    Added,
    /// Earlier quarantine without an approval since.
    Waiting,
}

/// State of a tool before its registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// MCP server that was not registered.
    NoServer,
    /// MCP server without such a tool.
    NoTool,
    /// Tool with another definition.
    Otherwise,
    /// Tool with the same definition, which was shown.
    Shown,
    /// Tool with the same definition, which was quarantined.
    Quarantined,
    /// Tool with the same definition, which somebody has approved.
    Approved,
}

impl Tier {
    /// Returns the tier that applies to an MCP server; the standard tier if none is specified.
    #[must_use]
    pub fn of(trust: TrustTier) -> Self {
        match trust {
            TrustTier::Untrusted => Self::Untrusted,
            TrustTier::Unspecified | TrustTier::Standard => Self::Standard,
            TrustTier::Trusted => Self::Trusted,
        }
    }

    /// Returns the name of the tier, as in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Standard => "standard",
            Self::Trusted => "trusted",
        }
    }

    /// Returns the lowest severity that quarantines a tool; `None` if none does.
    #[must_use]
    pub fn bar(self) -> Option<Severity> {
        match self {
            Self::Untrusted => Some(Severity::Medium),
            Self::Standard => Some(Severity::High),
            Self::Trusted => None,
        }
    }

    /// Returns the reason for a tool's quarantine; `None` if the tool is shown.
    ///
    /// Tools of an untrusted MCP server are shown when the server is registered for the first time and nothing is found
    /// in them. Later changes and additions wait for approval, because whoever relied on the first texts never saw
    /// them.
    #[must_use]
    pub fn quarantine(self, before: Before, findings: &[Finding]) -> Option<QuarantineReason> {
        if before == Before::Approved {
            return None;
        }
        let bar = self.bar()?;
        if findings.iter().any(|finding| finding.severity >= bar) {
            return Some(QuarantineReason::Findings);
        }
        match (self, before) {
            (Self::Untrusted, Before::Otherwise) => Some(QuarantineReason::Changed),
            (Self::Untrusted, Before::NoTool) => Some(QuarantineReason::Added),
            (Self::Untrusted, Before::Quarantined) => Some(QuarantineReason::Waiting),
            _ => None,
        }
    }
}

impl QuarantineReason {
    /// Returns the name of the reason, as in metrics and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Findings => "findings",
            Self::Changed => "changed",
            Self::Added => "added",
            Self::Waiting => "waiting",
        }
    }

    /// Returns the reason in a sentence.
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
        use {Before as F, QuarantineReason as B, Severity as S, Tier as T};
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
    fn every_trust_is_a_tier() {
        let tiers = TrustTier::ALL.map(|trust| Tier::of(trust).as_str());
        assert_eq!(tiers, ["standard", "untrusted", "standard", "trusted"]);
    }
}
