//! The challenge of a refused request, `WWW-Authenticate`.

use std::collections::HashMap;

/// Parts of a challenge that lead to a token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// URL of the metadata of the resource (RFC 9728).
    pub(crate) resource_metadata: Option<String>,
    /// Scopes that the request needs.
    pub(crate) scopes: Vec<String>,
    /// True if the token is good, but lacks scopes (RFC 6750, section 3.1).
    pub(crate) lacks_scopes: bool,
}

impl Challenge {
    /// Reads the header. What is no challenge for a bearer token is an empty one.
    pub(crate) fn parse(header: &str) -> Self {
        let mut parameters = parameters(header);
        let scope = parameters.remove("scope").unwrap_or_default();
        Self {
            resource_metadata: parameters.remove("resource_metadata"),
            scopes: scope.split_ascii_whitespace().map(str::to_owned).collect(),
            lacks_scopes: parameters.remove("error").as_deref() == Some("insufficient_scope"),
        }
    }
}

/// Returns the parameters of the first challenge for a bearer token, by their names in small letters.
fn parameters(header: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let lower = header.to_ascii_lowercase();
    let Some(start) = lower.find("bearer ") else { return found };
    let mut rest = &header[start + "bearer ".len()..];
    while let Some((name, behind)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',', '\t']);
        // The scheme of another challenge begins.
        if name.contains([' ', ',']) {
            break;
        }
        let (value, behind) = match behind.trim_start().strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let end = behind.find([',', ' ']).unwrap_or(behind.len());
                (behind[..end].to_owned(), &behind[end..])
            }
        };
        found.entry(name.to_ascii_lowercase()).or_insert(value);
        rest = behind;
    }
    found
}

/// Returns a quoted text without its escapes, and what follows its closing quote.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return (value, &text[place + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            character => value.push(character),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let challenge = Challenge::parse(
            r#"Basic realm="x", Bearer error="invalid_token", Scope="a b", resource_metadata="https://x/y?\"z""#,
        );
        assert_eq!(challenge.scopes, ["a", "b"]);
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://x/y?\"z"));
        let bare = Challenge::parse("bearer scope=a, resource_metadata=https://x");
        assert_eq!(bare.resource_metadata.as_deref(), Some("https://x"));
        for nothing in ["", "Basic realm=\"scope=a\"", "Bearer", "Bearer scope=\"", "Bearer ="] {
            assert_eq!(Challenge::parse(nothing), Challenge::default(), "{nothing}");
        }
        let other = Challenge::parse("Bearer error=\"x\", DPoP scope=\"a\"");
        assert!(other.scopes.is_empty());
    }
}
