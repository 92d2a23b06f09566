//! Keys of a gateway that runs as several replicas.

use std::path::PathBuf;

use url::Url;

use super::values::resolved;
use super::{Config, ConfigError};
use crate::sealed::SealingKeys;

impl Config {
    /// Returns the keys of what hosts carry for the gateway; `None` if the file names none.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] if they are not there, or no keys.
    pub fn sealing_keys(&self) -> Result<Option<SealingKeys>, ConfigError> {
        const KEY: &str = "gateway.sealing_key";
        let Some(place) = &self.gateway.sealing_key else { return Ok(None) };
        if !place.starts_with("env:") && !place.starts_with("file:") {
            return Err(wrong(KEY, "must be \"env:NAME\" or \"file:PATH\"".to_owned()));
        }
        let keys = SealingKeys::parse(&value(KEY, place)?);
        let problem = "must have 64 hexadecimal digits, as `openssl rand -hex 32` writes them, or several such lines";
        keys.map(Some).map_err(|_error| wrong(KEY, problem.to_owned()))
    }

    /// Returns the URL by which other replicas reach this one, without a slash at the end; `None` if they can't.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] if it is no such URL.
    pub fn replica_url(&self) -> Result<Option<String>, ConfigError> {
        const KEY: &str = "gateway.replica_url";
        let Some(place) = &self.gateway.replica_url else { return Ok(None) };
        let text = value(KEY, place)?;
        let url = Url::parse(&text).map_err(|error| wrong(KEY, format!("is no URL: {error}")))?;
        let is_origin = url.path() == "/" && url.query().is_none() && url.username().is_empty();
        if !matches!(url.scheme(), "http" | "https") || !is_origin {
            let problem =
                "must be http:// or https://, an address and a port: \"http://${POD_IP}:7080\"";
            return Err(wrong(KEY, problem.to_owned()));
        }
        Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
    }

    /// Returns the URL of the database that replicas share; `None` if the file names none.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] if it is not there, or no such URL.
    pub fn store_url(&self) -> Result<Option<String>, ConfigError> {
        const KEY: &str = "gateway.store_url";
        let Some(place) = &self.gateway.store_url else { return Ok(None) };
        let url = value(KEY, place)?;
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Some(url));
        }
        Err(wrong(KEY, "must begin with postgres://".to_owned()))
    }
}

fn value(key: &str, place: &str) -> Result<String, ConfigError> {
    let value = resolved("", place).map_err(|error| match error {
        ConfigError::Server { problem, .. } => wrong(key, problem),
        error => error,
    });
    value.map(|value| value.trim().to_owned())
}

fn wrong(key: &str, problem: String) -> ConfigError {
    ConfigError::Invalid { path: PathBuf::from(key), problem }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(settings: &str) -> Config {
        let text = format!("[gateway]\n{settings}");
        Config::parse(&text, Path::new("gateway.toml")).expect("a configuration")
    }

    #[test]
    fn the_url_of_a_replica_is_an_address() {
        let url = |text: &str| config(&format!("replica_url = \"{text}\"")).replica_url();
        let told = url("http://10.0.0.3:7080/").expect("a URL");
        assert_eq!(told.as_deref(), Some("http://10.0.0.3:7080"));
        for wrong in ["10.0.0.3:7080", "ftp://a", "http://a/mcp", "http://u@a", "http://a?x"] {
            let error = url(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with("gateway.replica_url: "), "{error}");
        }
        assert_eq!(config("").replica_url().expect("none"), None);
    }

    #[test]
    fn sealing_keys_stand_elsewhere() {
        let folder = std::env::temp_dir().join(format!("toolgate-sealing-{}", std::process::id()));
        std::fs::write(&folder, format!("{}\n{}\n", "a".repeat(64), "b".repeat(64)))
            .expect("a file");
        let keys = config(&format!("sealing_key = \"file:{}\"", folder.display()));
        assert!(keys.sealing_keys().expect("keys").is_some());
        std::fs::write(&folder, "abc").expect("a file");
        for wrong in [&format!("file:{}", folder.display()), &"a".repeat(64), "file:/nowhere"] {
            let keys = config(&format!("sealing_key = \"{wrong}\"")).sealing_keys();
            assert!(matches!(keys, Err(ConfigError::Invalid { .. })), "{wrong}");
        }
        std::fs::remove_file(&folder).expect("the file");
        assert!(config("").sealing_keys().expect("none").is_none());
    }

    #[test]
    fn the_shared_store_is_a_database_of_many() {
        let store = |url: &str| config(&format!("store_url = \"{url}\"")).store_url();
        assert!(store("postgres://u@h/d").expect("a URL").is_some());
        assert!(store("/var/lib/toolgate").is_err());
        assert_eq!(config("").store_url().expect("none"), None);
    }
}
