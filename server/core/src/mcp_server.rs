//! What a registrant says about an MCP server: how it is reached, and how far its texts are trusted. Both are closed
//! sets with numbers, which stores and exports keep.

use serde::{Deserialize, Serialize};

/// Way to reach an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "i32", into = "i32")]
pub enum TransportHint {
    /// Not said.
    #[default]
    Unspecified = 0,
    /// Standard input and output of a process.
    Stdio = 1,
    /// MCP's streamable HTTP.
    StreamableHttp = 2,
    /// None: the tools are built into the agent, and no MCP server offers them.
    BuiltIn = 3,
}

/// Trust in the texts of an MCP server, as its registrant says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "i32", into = "i32")]
pub enum TrustTier {
    /// Not said: as far as the stored MCP server's texts, or as the configuration says.
    #[default]
    Unspecified = 0,
    /// Third-party texts. A changed definition waits for approval.
    Untrusted = 1,
    /// Usual checks.
    Standard = 2,
    /// Texts of the tenant's own MCP servers.
    Trusted = 3,
}

impl TransportHint {
    /// All transport hints.
    pub const ALL: [Self; 4] =
        [Self::Unspecified, Self::Stdio, Self::StreamableHttp, Self::BuiltIn];

    /// Returns the number in stores, exports and the API.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }
}

impl TrustTier {
    /// All trust tiers.
    pub const ALL: [Self; 4] = [Self::Unspecified, Self::Untrusted, Self::Standard, Self::Trusted];

    /// Returns the number in stores, exports and the API.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }
}

impl From<i32> for TransportHint {
    /// Returns the hint with this number. An unknown number, which a newer version may have stored, is unspecified.
    fn from(number: i32) -> Self {
        Self::ALL.into_iter().find(|hint| hint.number() == number).unwrap_or_default()
    }
}

impl From<i32> for TrustTier {
    /// Returns the tier with this number. An unknown number, which a newer version may have stored, is unspecified.
    fn from(number: i32) -> Self {
        Self::ALL.into_iter().find(|tier| tier.number() == number).unwrap_or_default()
    }
}

impl From<TransportHint> for i32 {
    fn from(hint: TransportHint) -> Self {
        hint.number()
    }
}

impl From<TrustTier> for i32 {
    fn from(tier: TrustTier) -> Self {
        tier.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_again() {
        for (number, hint) in (0..).zip(TransportHint::ALL) {
            assert_eq!((hint.number(), TransportHint::from(number)), (number, hint));
            assert_eq!(serde_json::to_string(&hint).expect("JSON"), number.to_string());
        }
        for (number, tier) in (0..).zip(TrustTier::ALL) {
            assert_eq!((tier.number(), TrustTier::from(number)), (number, tier));
            assert_eq!(serde_json::to_string(&tier).expect("JSON"), number.to_string());
        }
        for unknown in [-1, 4, i32::MAX, i32::MIN] {
            assert_eq!(TransportHint::from(unknown), TransportHint::Unspecified);
            let tier: TrustTier = serde_json::from_str(&unknown.to_string()).expect("a tier");
            assert_eq!(tier, TrustTier::Unspecified);
        }
        assert!(serde_json::from_str::<TrustTier>("\"trusted\"").is_err());
    }
}
