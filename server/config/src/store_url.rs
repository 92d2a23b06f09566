//! The URL of a shared store. It is a secret, because it may hold a password. Never printed.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Schemes with which a URL may begin.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// URL of a PostgreSQL database. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

/// Source of a URL.
#[derive(Debug, Clone)]
pub enum UrlSource {
    /// URL in the configuration itself.
    Given(StoreUrl),
    /// File in which the operator keeps the URL.
    File(PathBuf),
}

/// Failure to obtain the URL.
#[derive(Debug, Error)]
pub enum StoreUrlError {
    /// Text that does not begin like a URL of PostgreSQL.
    #[error("it must begin with postgres:// or postgresql://")]
    Scheme,
    /// File without a URL.
    #[error("{}: no URL of a PostgreSQL database, which begins with postgres://", .0.display())]
    BadFile(PathBuf),
    /// File that cannot be read.
    #[error("{}: the URL of the store cannot be read", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl StoreUrl {
    /// Accepts a text that begins like a URL of PostgreSQL. The driver reads the rest.
    ///
    /// # Errors
    /// Returns an error if the text begins otherwise.
    pub fn parse(text: &str) -> Result<Self, StoreUrlError> {
        let text = text.trim();
        if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            Ok(Self(text.to_owned()))
        } else {
            Err(StoreUrlError::Scheme)
        }
    }

    /// Returns the secret URL, for the driver only.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StoreUrl(..)")
    }
}

impl UrlSource {
    /// Returns the URL. Blocks on the file system.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or holds no URL.
    pub fn load(&self) -> Result<StoreUrl, StoreUrlError> {
        match self {
            Self::Given(url) => Ok(url.clone()),
            Self::File(path) => read(path),
        }
    }
}

fn read(path: &Path) -> Result<StoreUrl, StoreUrlError> {
    let text = fs::read_to_string(path)
        .map_err(|source| StoreUrlError::Io { path: path.to_owned(), source })?;
    StoreUrl::parse(&text).map_err(|_| StoreUrlError::BadFile(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_postgresql_are_taken_and_not_shown() {
        for good in ["postgres://u:secret@h/d", " postgresql:///d?host=/run\n"] {
            let url = StoreUrl::parse(good).expect("a URL");
            assert_eq!(url.expose(), good.trim());
            assert_eq!(format!("{url:?}"), "StoreUrl(..)");
        }
        for bad in ["", "mysql://u:secret@h/d", "h/d", "POSTGRES://h"] {
            let error = StoreUrl::parse(bad).expect_err("no URL").to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_file_is_read_when_it_is_needed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("url");
        let source = UrlSource::File(path.clone());
        assert!(matches!(source.load(), Err(StoreUrlError::Io { .. })));
        fs::write(&path, "secret").expect("written");
        let error = source.load().expect_err("no URL").to_string();
        assert!(error.contains("url") && !error.contains("secret"), "{error}");
        fs::write(&path, "postgres://u@h/d\n").expect("written");
        assert_eq!(source.load().expect("a URL").expose(), "postgres://u@h/d");
    }
}
