//! Registration settings, which are not part of the MCP server's own `tools/list`: preconditions, scopes, summaries.

use clap::ValueEnum;
use serde::Deserialize;
use toolgate_client::v1;

use super::precondition::Condition;

/// Content of the file of `toolgate register --settings`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::cli) struct RegistrationSettings {
    description: Option<String>,
    transport_hint: Option<Transport>,
    trust_tier: Option<Trust>,
    precondition: Option<Condition>,
    required_scopes: Vec<String>,
    tools: Vec<Tool>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Transport {
    Stdio,
    StreamableHttp,
    BuiltIn,
}

/// How far an MCP server's texts are believed.
#[derive(Debug, Clone, Copy, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(in crate::cli) enum Trust {
    /// What is odd about its tools' texts keeps them back until somebody approves them; so do all later changes.
    Untrusted,
    /// What is dangerous keeps them back; the rest is told.
    Standard,
    /// What is found is told, and keeps nothing back.
    Trusted,
}

impl From<Trust> for v1::TrustTier {
    fn from(trust: Trust) -> Self {
        match trust {
            Trust::Untrusted => Self::Untrusted,
            Trust::Standard => Self::Standard,
            Trust::Trusted => Self::Trusted,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    name: String,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    search_hint: String,
    precondition: Option<Condition>,
    #[serde(default)]
    required_scopes: Vec<String>,
    #[serde(default)]
    always_load: bool,
    #[serde(default)]
    critical: bool,
}

impl RegistrationSettings {
    /// Returns true if the settings contain a trust tier for the MCP server.
    pub(in crate::cli) fn names_trust(&self) -> bool {
        self.trust_tier.is_some()
    }

    /// Writes the settings into a request.
    pub(in crate::cli) fn apply_to(self, request: &mut v1::RegisterServerRequest) {
        if let Some(description) = self.description {
            request.description = description;
        }
        if let Some(transport) = self.transport_hint {
            request.set_transport_hint(match transport {
                Transport::Stdio => v1::TransportHint::Stdio,
                Transport::StreamableHttp => v1::TransportHint::StreamableHttp,
                Transport::BuiltIn => v1::TransportHint::BuiltIn,
            });
        }
        if let Some(trust) = self.trust_tier {
            request.set_trust_tier(trust.into());
        }
        request.precondition = self.precondition.map(Into::into);
        request.required_scopes = self.required_scopes;
        request.tool_settings = self.tools.into_iter().map(Into::into).collect();
    }
}

impl From<Tool> for v1::ToolSettings {
    fn from(tool: Tool) -> Self {
        Self {
            name: tool.name,
            summary: tool.summary,
            search_hint: tool.search_hint,
            precondition: tool.precondition.map(Into::into),
            required_scopes: tool.required_scopes,
            always_load: tool.always_load,
            critical: tool.critical,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = r#"
description = "The repository"
transport_hint = "stdio"
trust_tier = "trusted"
required_scopes = ["repo:read"]
[[tools]]
name = "git_commit"
always_load = true
precondition = { all = [{ is_authenticated = "repo:write" }, { not = { milestone_reached = "frozen" } }] }
"#;

    const JSON: &str = r#"{"description": "The repository", "transport_hint": "stdio",
        "trust_tier": "trusted", "required_scopes": ["repo:read"], "tools": [{"name": "git_commit",
        "always_load": true, "precondition": {"all": [{"is_authenticated": "repo:write"},
        {"not": {"milestone_reached": "frozen"}}]}}]}"#;

    #[test]
    fn both_forms_say_the_same() {
        let request = |settings: RegistrationSettings| {
            let mut request = v1::RegisterServerRequest::default();
            settings.apply_to(&mut request);
            request
        };
        let from_toml = request(toml::from_str(TOML).expect("good TOML"));
        let from_json = request(serde_json::from_str(JSON).expect("good JSON"));
        assert_eq!(from_toml, from_json);
        assert_eq!(from_toml.trust_tier(), v1::TrustTier::Trusted);
        assert_eq!(from_toml.transport_hint(), v1::TransportHint::Stdio);
        let tool = &from_toml.tool_settings[0];
        assert!(tool.always_load && tool.precondition.is_some(), "{tool:?}");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("trust = \"x\"", "unknown field `trust`"),
            ("trust_tier = \"high\"", "untrusted"),
            ("[[tools]]\nsummary = \"x\"", "missing field `name`"),
            ("[precondition]\nis_admin = \"x\"", "is_authenticated"),
        ] {
            let error = toml::from_str::<RegistrationSettings>(text).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
