//! Header `authorization` (RFC 6750, section 2.1): one bearer credential, or none.

use std::fmt;

/// Maximum length of a credential in bytes. A signed token with some claims takes about a kilobyte.
pub const CREDENTIAL_MAX: usize = 8 << 10;

/// Content of the header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Authorization<'a> {
    /// The header is missing.
    Absent,
    /// Well-formed credential, not verified yet.
    Bearer(&'a str),
    /// Other scheme, more than one header, or a malformed credential.
    Unusable,
}

impl<'a> Authorization<'a> {
    /// Parses the values of the header.
    pub fn read(mut values: impl Iterator<Item = &'a [u8]>) -> Self {
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => bearer(value).map_or(Self::Unusable, Self::Bearer),
            // A proxy in front of this server might have checked a different header than this server would.
            (Some(_), Some(_)) => Self::Unusable,
        }
    }
}

/// Omits the credential, because it is a secret.
impl fmt::Debug for Authorization<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Absent => "absent",
            Self::Bearer(_) => "bearer (not shown)",
            Self::Unusable => "unusable",
        })
    }
}

fn bearer(value: &[u8]) -> Option<&str> {
    let (scheme, credential) = std::str::from_utf8(value).ok()?.split_once(' ')?;
    let credential = credential.trim_matches(' ');
    // RFC 6750: b64token.
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    let right = scheme.eq_ignore_ascii_case("bearer")
        && (1..=CREDENTIAL_MAX).contains(&credential.len())
        && credential.bytes().all(legal);
    right.then_some(credential)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&str], want: Authorization<'_>) {
        let read = Authorization::read(values.iter().map(|value| value.as_bytes()));
        assert!(read == want, "{values:?}: {read:?}");
    }

    #[test]
    fn one_bearer_credential_or_none() {
        check(&[], Authorization::Absent);
        check(&["Bearer abc.d-e_f~+/="], Authorization::Bearer("abc.d-e_f~+/="));
        check(&["bearer  abc "], Authorization::Bearer("abc"));
        let long = format!("Bearer {}", "a".repeat(CREDENTIAL_MAX));
        check(&[&long], Authorization::Bearer(&long[7..]));
        let longer = format!("{long}a");
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Basic YTpi",
            "abc",
            "Bearer a b",
            "Bearer ä",
            "Bearer a,b",
            &longer,
        ] {
            check(&[wrong], Authorization::Unusable);
        }
        check(&["Bearer a", "Bearer a"], Authorization::Unusable);
        assert_eq!(Authorization::read([&b"Bearer \xff"[..]].into_iter()), Authorization::Unusable);
    }

    #[test]
    fn credentials_are_not_printed() {
        assert!(!format!("{:?}", Authorization::Bearer("s3cret")).contains("s3cret"));
    }
}
