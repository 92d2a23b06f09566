//! The authorization server of an MCP server: RFC 9728 names it, RFC 8414 or OpenID Connect describes it.

use serde::{Deserialize, Deserializer, de};
use url::Url;

use super::challenge::Challenge;
use super::client::{AuthClient, check_scheme, shown, unavailable};
use super::{CredentialError, OAuthClient};

const RESOURCE: &str = "oauth-protected-resource";

/// Authorization server of an MCP server.
#[derive(Debug, Clone)]
pub(crate) struct Discovered {
    pub(crate) server: ServerMetadata,
    /// Resource that tokens are for (RFC 8707).
    pub(crate) resource: String,
    /// Scopes to ask for.
    pub(crate) scopes: Vec<String>,
}

/// Metadata of an authorization server.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ServerMetadata {
    pub(crate) issuer: String,
    #[serde(default, deserialize_with = "optional_url")]
    pub(crate) authorization_endpoint: Option<Url>,
    #[serde(deserialize_with = "url")]
    pub(crate) token_endpoint: Url,
    #[serde(default, deserialize_with = "optional_url")]
    pub(crate) registration_endpoint: Option<Url>,
    #[serde(default, deserialize_with = "optional_url")]
    pub(crate) revocation_endpoint: Option<Url>,
    #[serde(default)]
    pub(crate) scopes_supported: Vec<String>,
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub(crate) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

/// Metadata of a protected resource.
#[derive(Debug, Deserialize)]
struct ResourceMetadata {
    resource: Option<String>,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    let text = String::deserialize(deserializer)?;
    Url::parse(&text).map_err(de::Error::custom)
}

fn optional_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| Url::parse(&text).map_err(de::Error::custom)).transpose()
}

/// Finds the authorization server of an MCP server. The operator's issuer goes before the server's word.
pub(crate) async fn discover(
    client: &AuthClient,
    server: &Url,
    settings: &OAuthClient,
    challenge: &Challenge,
) -> Result<Discovered, CredentialError> {
    let described = resource_metadata(client, server, challenge).await?;
    let named = described.as_ref().and_then(|found| found.authorization_servers.first().cloned());
    // Servers of 2025-03-26 are their own authorization servers.
    let issuer = settings.issuer.clone().or(named);
    let issuer = issuer.unwrap_or_else(|| server.origin().ascii_serialization());
    let metadata = server_metadata(client, &issuer).await?;
    let resource = described.as_ref().and_then(|found| found.resource.clone());
    let scopes = if !settings.scopes.is_empty() {
        settings.scopes.clone()
    } else if !challenge.scopes.is_empty() {
        challenge.scopes.clone()
    } else {
        described.map(|found| found.scopes_supported).unwrap_or_default()
    };
    let resource = resource.unwrap_or_else(|| canonical(server));
    Ok(Discovered { server: metadata, resource, scopes })
}

/// Gets the metadata of an issuer.
pub(crate) async fn server_metadata(
    client: &AuthClient,
    issuer: &str,
) -> Result<ServerMetadata, CredentialError> {
    let url = Url::parse(issuer)
        .map_err(|error| unavailable(&format!("the issuer {issuer:?} is no URL: {error}")))?;
    check_scheme(&url)?;
    for place in metadata_places(&url) {
        let Some(metadata) = client.document::<ServerMetadata>(&place).await? else { continue };
        if !is_same_issuer(&metadata.issuer, issuer) {
            return Err(unavailable(&format!(
                "{} says that it is the issuer {:?}, which is not {issuer:?}",
                shown(&place),
                metadata.issuer
            )));
        }
        return Ok(metadata);
    }
    Err(unavailable(&format!("{} publishes no metadata of an authorization server", shown(&url))))
}

/// Returns whether two issuers are the same. A bare origin may end with a slash, which libraries of servers add.
pub(crate) fn is_same_issuer(one: &str, other: &str) -> bool {
    let bare = |issuer: &str| {
        let is_origin = Url::parse(issuer).is_ok_and(|url| url.path() == "/");
        if is_origin { issuer.trim_end_matches('/').to_owned() } else { issuer.to_owned() }
    };
    bare(one) == bare(other)
}

async fn resource_metadata(
    client: &AuthClient,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<ResourceMetadata>, CredentialError> {
    let told = challenge.resource_metadata.as_ref().map(|told| {
        server.join(told).map_err(|error| unavailable(&format!("resource_metadata: {error}")))
    });
    let places = match told {
        Some(told) => vec![told?],
        None => vec![well_known(server, RESOURCE, true), well_known(server, RESOURCE, false)],
    };
    for place in places {
        let Some(metadata) = client.document::<ResourceMetadata>(&place).await? else { continue };
        if let Some(resource) = &metadata.resource
            && !covers(resource, server)
        {
            return Err(unavailable(&format!(
                "{} describes {resource:?}, which is not {}",
                shown(&place),
                shown(server)
            )));
        }
        return Ok(Some(metadata));
    }
    Ok(None)
}

/// Returns whether a resource is the server or lies above it at the same origin.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let above = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(above);
    resource.origin() == server.origin()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the URL of a server as a resource: without what is no part of it.
fn canonical(server: &Url) -> String {
    let mut url = server.clone();
    url.set_fragment(None);
    url.set_query(None);
    let text = url.to_string();
    if url.path() == "/" { text.trim_end_matches('/').to_owned() } else { text }
}

fn metadata_places(issuer: &Url) -> Vec<Url> {
    let mut places = vec![
        well_known(issuer, "oauth-authorization-server", true),
        well_known(issuer, "openid-configuration", true),
    ];
    let path = issuer.path().trim_end_matches('/');
    if !path.is_empty() {
        let mut behind = issuer.clone();
        behind.set_path(&format!("{path}/.well-known/openid-configuration"));
        places.push(behind);
    }
    places
}

/// Returns the well-known place at an origin, followed by the URL's own path if `has_path`.
fn well_known(url: &Url, name: &str, has_path: bool) -> Url {
    let path = if has_path { url.path().trim_end_matches('/') } else { "" };
    let mut place = url.clone();
    place.set_query(None);
    place.set_fragment(None);
    place.set_path(&format!("/.well-known/{name}{path}"));
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    #[test]
    fn metadata_is_looked_for_where_the_standards_put_it() {
        let places = |issuer| metadata_places(&url(issuer)).iter().map(Url::to_string).collect();
        let bare: Vec<String> = places("https://a.example/");
        assert_eq!(
            bare,
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration"
            ]
        );
        let deep: Vec<String> = places("https://a.example/t/1");
        assert_eq!(
            deep,
            [
                "https://a.example/.well-known/oauth-authorization-server/t/1",
                "https://a.example/.well-known/openid-configuration/t/1",
                "https://a.example/t/1/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn issuers_differ_by_any_character_but_the_slash_of_an_origin() {
        assert!(is_same_issuer("https://a.example", "https://a.example/"));
        assert!(!is_same_issuer("https://a.example/t", "https://a.example/t/"));
        assert!(!is_same_issuer("https://a.example", "https://b.example"));
        assert!(!is_same_issuer("https://a.example", "http://a.example"));
    }

    #[test]
    fn a_resource_covers_what_lies_below_it() {
        let server = url("https://a.example/mcp/x");
        for resource in ["https://a.example", "https://a.example/mcp", "https://a.example/mcp/x"] {
            assert!(covers(resource, &server), "{resource}");
        }
        for resource in ["https://b.example/mcp/x", "https://a.example/mc", "http://a.example", "x"]
        {
            assert!(!covers(resource, &server), "{resource}");
        }
    }
}
