//! Key of stored credentials: `gateway.credential_key`.

use std::path::PathBuf;

use toolgate_upstream::Secret;

use super::values::resolved;
use super::{Config, ConfigError};

/// Bytes of the key of stored credentials.
const KEY_LEN: usize = 32;

impl Config {
    /// Returns the keys of stored credentials, one a line; `None` for a file of their own.
    ///
    /// # Errors
    /// [`ConfigError::Server`] if it is not there, or no key.
    pub fn credential_key(&self) -> Result<Option<Secret>, ConfigError> {
        let Some(place) = &self.gateway.credential_key else { return Ok(None) };
        let wrong = |problem: &str| ConfigError::Invalid {
            path: PathBuf::from("gateway.credential_key"),
            problem: problem.to_owned(),
        };
        if !place.starts_with("env:") && !place.starts_with("file:") {
            return Err(wrong("must be \"env:NAME\" or \"file:PATH\""));
        }
        let key = resolved("", place).map_err(|error| match error {
            ConfigError::Server { problem, .. } => wrong(&problem),
            error => error,
        })?;
        let is_key = |line: &str| hex::decode(line.trim()).is_ok_and(|key| key.len() == KEY_LEN);
        if key.trim().lines().all(is_key) && !key.trim().is_empty() {
            return Ok(Some(Secret::new(key)));
        }
        Err(wrong(
            "must have 64 hexadecimal digits, as `openssl rand -hex 32` writes them, or several such lines",
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn keys_of_credentials_are_checked() {
        for (text, told) in
            [("plain", "env:NAME"), ("env:PATH", "64 hex"), ("env:TOOLGATE_NO", "not set")]
        {
            let text = format!("[gateway]\ncredential_key = \"{text}\"");
            let config = Config::parse(&text, Path::new("gateway.toml")).expect("a configuration");
            let problem = config.credential_key().expect_err("a mistake").to_string();
            assert!(problem.contains(told), "{problem}");
        }
    }
}
