//! Origins of web pages (RFC 6454), as browsers send them.

use std::fmt;
use std::str::FromStr;

use url::{ParseError, Url};

/// Origin of a web page: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin(String);

impl WebOrigin {
    /// Returns the origin as browsers write it (RFC 6454, section 6.2).
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| match error {
            ParseError::RelativeUrlWithoutBase => "it has no scheme".to_owned(),
            other => other.to_string(),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("its scheme is neither http nor https".into());
        }
        if url.host_str().is_some_and(|host| host.contains('*')) {
            return Err("it names no host; every page is not a choice".into());
        }
        let origin = url.origin().ascii_serialization();
        // The path of a URL without one is `/`.
        if text.ends_with('/') || url.as_str() != format!("{origin}/") {
            return Err("an origin is a scheme, a host and a port, and nothing else".into());
        }
        Ok(Self(origin))
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_as_browsers_write_them() {
        let read = |text: &str| text.parse::<WebOrigin>().map(|origin| origin.0);
        assert_eq!(read("http://localhost:5173").as_deref(), Ok("http://localhost:5173"));
        assert_eq!(read("https://App.Example.com:443").as_deref(), Ok("https://app.example.com"));
        assert_eq!(read("http://[::1]:80").as_deref(), Ok("http://[::1]"));
        assert_eq!(read("http://[::0001]:1").as_deref(), Ok("http://[::1]:1"));
        assert_eq!(read("https://bücher.example").as_deref(), Ok("https://xn--bcher-kva.example"));
        for (wrong, problem) in [
            ("*", "no scheme"),
            ("https://*", "every page is not a choice"),
            ("https://*.example.com", "every page is not a choice"),
            ("app.example.com", "no scheme"),
            ("app.example.com:80", "neither http nor https"),
            ("ftp://a", "neither http nor https"),
            ("https://a/", "and nothing else"),
            ("https://a/b", "and nothing else"),
            ("https://a?b", "and nothing else"),
            ("https://a#b", "and nothing else"),
            ("https://u@a", "and nothing else"),
            ("https://a:b", "invalid port"),
            ("https://a:65536", "invalid port"),
            ("https://a b", "invalid"),
            ("https://", "empty host"),
        ] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.contains(problem), "{wrong}: {error}");
        }
    }
}
