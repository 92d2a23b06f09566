//! Origins of web pages (RFC 6454), as browsers send them.

use std::fmt;
use std::str::FromStr;

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
        let (scheme, host) = text.split_once("://").ok_or("it has no scheme")?;
        let default_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return Err("its scheme is neither http nor https".into()),
        };
        if host.contains(['/', '?', '#']) {
            return Err("an origin ends with its host and port".into());
        }
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
        if host.is_empty() || !host.bytes().all(is_plain) {
            return Err("it names no host; every page is not a choice".into());
        }
        let host = host.strip_suffix(default_port).unwrap_or(host);
        Ok(Self(format!("{scheme}://{}", host.to_ascii_lowercase())))
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
        for wrong in ["*", "https://*", "app.example.com", "ftp://a", "https://a/", "https://"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
