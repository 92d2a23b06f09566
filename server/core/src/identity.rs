//! Names as parsed values. A `TenantId`, `ServerName` or `ToolName` that exists is valid, so no other code checks it
//! again. The name that a model sees is derived here and nowhere else.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, FieldViolation};

/// Maximum length of a tool's name that providers accept.
pub const MODEL_NAME_MAX: usize = 64;
const SERVER_NAME_MAX: usize = 64;
const TOOL_NAME_MAX: usize = 128;
const TENANT_MAX: usize = 64;

/// Tenant, the unit of isolation. It is the first argument of everything that touches stored or cached content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantId(String);

impl TenantId {
    /// Description of a valid tenant name, for error messages.
    pub const RIGHT: &str = "1 to 64 characters of [A-Za-z0-9._@-], not only dots";

    /// Parses 1 to 64 characters of `[A-Za-z0-9._@-]`, so that domains, e-mail addresses and identifiers of identity
    /// providers are valid tenants. Upper and lower case differ. A name of dots alone is refused, because it would lead
    /// to another folder where an operator keeps files by tenant.
    ///
    /// # Errors
    /// Returns [`Error::InvalidFields`] for the field `tenant`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '@' | '-');
        let only_dots = text.chars().all(|c| c == '.');
        if only_dots || text.len() > TENANT_MAX || !text.chars().all(legal) {
            return Err(invalid("tenant", text, Self::RIGHT));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the identifier as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Name of an MCP server within a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(String);

impl ServerName {
    /// Parses 1 to 64 characters of `[A-Za-z0-9_-]`. `__` is refused, because it separates the parts of a model-facing
    /// name.
    ///
    /// # Errors
    /// Returns [`Error::InvalidFields`] for the field `server`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let right = "1 to 64 characters of [A-Za-z0-9_-], without \"__\"";
        if text.is_empty() || text.len() > SERVER_NAME_MAX || text.contains("__") {
            return Err(invalid("server", text, right));
        }
        if !text.chars().all(is_model_char) {
            return Err(invalid("server", text, right));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// MCP name of a tool within its MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

impl ToolName {
    /// Parses 1 to 128 characters, without control characters and without white space at either end. MCP allows fewer
    /// characters, but real catalogs hold names with spaces and dots, and hiding a tool is worse.
    ///
    /// # Errors
    /// Returns [`Error::InvalidFields`] for the field `name`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let right = "1 to 128 characters, none of them a control character, no space around it";
        let length = text.chars().count();
        if length == 0 || length > TOOL_NAME_MAX || text.trim() != text {
            return Err(invalid("name", text, right));
        }
        if text.chars().any(char::is_control) {
            return Err(invalid("name", text, right));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Short form of a [`ToolId`] for places where its text is too long.
pub type ToolKey = [u8; 16];

/// Identity of a tool within a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolId {
    /// MCP server that owns the tool.
    pub server: ServerName,
    /// MCP name of the tool.
    pub name: ToolName,
}

impl ToolId {
    /// Returns the name that the model sees, `mcp__{server}__{tool}`, at most 64 characters of `[A-Za-z0-9_-]`. A name
    /// that had to be changed or cut ends in a hash of the identity, so that it is stable and differs from similar
    /// names.
    #[must_use]
    pub fn model_name(&self) -> String {
        let whole = format!("mcp__{}__{}", self.server.as_str(), self.name.as_str());
        if whole.len() <= MODEL_NAME_MAX && whole.chars().all(is_model_char) {
            return whole;
        }
        let hash = short_hash(&format!("{}/{}", self.server.as_str(), self.name.as_str()));
        let legal = whole.chars().map(|c| if is_model_char(c) { c } else { '_' });
        let kept: String = legal.take(MODEL_NAME_MAX - hash.len() - 1).collect();
        format!("{kept}_{hash}")
    }

    /// Returns 128 bits that stand for this identity: the first half of SHA-256 of `{server}/{name}`.
    #[must_use]
    pub fn key(&self) -> ToolKey {
        let digest: [u8; 32] = Sha256::digest(self.to_string().as_bytes()).into();
        digest.first_chunk().copied().unwrap_or_default()
    }

    /// Returns the resource name, `tenants/{tenant}/servers/{server}/tools/{name}`.
    #[must_use]
    pub fn resource_name(&self, tenant: &TenantId) -> String {
        let tenant = tenant.as_str();
        let server = self.server.as_str();
        let name = self.name.as_str();
        format!("tenants/{tenant}/servers/{server}/tools/{name}")
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.server.as_str(), self.name.as_str())
    }
}

impl TryFrom<String> for ServerName {
    type Error = Error;
    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> Self {
        name.0
    }
}

impl TryFrom<String> for ToolName {
    type Error = Error;
    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0
    }
}

fn is_model_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn short_hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    hex::encode(&digest[..4])
}

fn invalid(field: &str, text: &str, right: &str) -> Error {
    let shown: String = text.chars().take(80).collect();
    Error::InvalidFields(vec![FieldViolation::new(field, format!("{shown:?} must be {right}"))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(server: &str, tool: &str) -> ToolId {
        let server = ServerName::parse(server).expect("a server name");
        ToolId { server, name: ToolName::parse(tool).expect("a tool name") }
    }

    #[test]
    fn model_name_keeps_legal_names_and_hashes_the_rest() {
        assert_eq!(id("git", "git_status").model_name(), "mcp__git__git_status");
        let dotted = id("git", "git.status").model_name();
        assert!(dotted.starts_with("mcp__git__git_status_"), "{dotted}");
        assert_ne!(dotted, id("git", "git/status").model_name());
    }

    #[test]
    fn long_names_are_cut_to_64_and_stay_apart() {
        let a = format!("{}a", "x".repeat(100));
        let b = format!("{}b", "x".repeat(100));
        let a = id("s", &a).model_name();
        let b = id("s", &b).model_name();
        assert_eq!((a.len(), b.len()), (MODEL_NAME_MAX, MODEL_NAME_MAX));
        assert_ne!(a, b);
    }

    #[test]
    fn illegal_names_are_refused() {
        for text in
            ["", ".", "..", "a/b", "a\\b", "a:b", "a=b", "a,b", "a b", "a\0", "ä", &"a".repeat(65)]
        {
            assert!(TenantId::parse(text).is_err(), "{text:?}");
        }
        for text in
            ["a", "Acme", "acme.example", "team_1@acme.example", "0f8f-4e", ".a", &"a".repeat(64)]
        {
            assert!(TenantId::parse(text).is_ok(), "{text:?}");
        }
        for text in ["", "a__b", "a b", "a.b", &"a".repeat(65)] {
            assert!(ServerName::parse(text).is_err(), "{text:?}");
        }
        for text in ["", " a", "a\n", "a\u{7}b", &"a".repeat(129)] {
            assert!(ToolName::parse(text).is_err(), "{text:?}");
        }
    }
}
