//! API key of an endpoint. It comes from an environment variable or a file, never from the command line, and is never
//! printed.

use std::fmt;
use std::path::Path;

/// Secret that is sent in one header. `Debug` does not show it.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// Reads the key from an environment variable.
    ///
    /// # Errors
    /// Returns an error if the variable is not set or holds no valid key.
    pub fn from_variable(name: &str) -> Result<Self, String> {
        let text = std::env::var(name).map_err(|error| match error {
            std::env::VarError::NotPresent => format!("{name} is not set"),
            std::env::VarError::NotUnicode(_) => format!("{name} is not UTF-8"),
        })?;
        Self::parse(&text).map_err(|problem| format!("{name} {problem}"))
    }

    /// Reads the key from a file.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or holds no valid key.
    pub fn from_file(path: &Path) -> Result<Self, String> {
        let place = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{place}: cannot be read: {error}"))?;
        Self::parse(&text).map_err(|problem| format!("{place} {problem}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let key = text.trim();
        if key.is_empty() {
            return Err("holds no key".into());
        }
        if !key.chars().all(|letter| letter.is_ascii_graphic()) {
            return Err("holds more than a key: spaces, line breaks or letters beyond ASCII".into());
        }
        Ok(Self(key.to_owned()))
    }

    /// Returns the value of the `Authorization` header.
    pub(super) fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Returns a text with every occurrence of the key replaced by `[key]`.
    pub(super) fn hidden_in(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_never_shown() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let read = |text: &str| {
            std::fs::write(&path, text).expect("written");
            ApiKey::from_file(&path)
        };
        let key = read(" sk-very-secret\n").expect("a key");
        assert_eq!(key.authorization(), "Bearer sk-very-secret");
        assert_eq!(format!("{key:?}"), "ApiKey(..)");
        assert_eq!(key.hidden_in("bad key sk-very-secret!"), "bad key [key]!");
        for text in ["\n", "two words", "line\nbreak", "schlüssel"] {
            let problem = read(text).expect_err(text);
            assert!(problem.contains("key") && !problem.contains("two words"), "{problem}");
        }
        let absent = ApiKey::from_variable("TOOLGATE_NO_SUCH_VARIABLE").expect_err("not set");
        assert_eq!(absent, "TOOLGATE_NO_SUCH_VARIABLE is not set");
        assert!(ApiKey::from_file(&directory.path().join("absent")).is_err());
    }
}
