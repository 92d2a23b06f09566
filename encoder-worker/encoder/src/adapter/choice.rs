//! Choice of a model's adapter.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Choice of a model's adapter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AdapterChoice {
    /// The shipped adapter for these weights, if there is one.
    #[default]
    Auto,
    /// No adapter: the model stays as it is in its directory.
    None,
    /// The adapter in this file.
    File(PathBuf),
}

impl AdapterChoice {
    /// Parses `auto`, `none`, or a path.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        match path.to_str() {
            Some("auto") => Self::Auto,
            Some("none") => Self::None,
            _ => Self::File(path.to_path_buf()),
        }
    }

    /// Returns the path that [`AdapterChoice::of`] reads as this choice.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        match self {
            Self::Auto => Path::new("auto"),
            Self::None => Path::new("none"),
            Self::File(path) => path,
        }
    }
}

impl FromStr for AdapterChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::of(Path::new(text)))
    }
}

impl fmt::Display for AdapterChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().display().fmt(formatter)
    }
}
