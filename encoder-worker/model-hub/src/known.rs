//! Models that can be fetched by name.

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use super::location::{model_dir_in_cache, models_in_cache};
use super::manifest::ModelManifest;

/// Model that can be fetched by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KnownModel {
    /// The default: small, fast, trained on English.
    #[default]
    AllMiniLmL6V2,
    /// Trained on a hundred languages.
    MultilingualE5Small,
}

impl KnownModel {
    /// Every model, the default first.
    pub const ALL: [Self; 2] = [Self::AllMiniLmL6V2, Self::MultilingualE5Small];

    /// Names of [`KnownModel::ALL`].
    pub const NAMES: [&str; 2] = ["all-MiniLM-L6-v2", "multilingual-e5-small"];

    /// Returns the model's name, which is also the name of its directory.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllMiniLmL6V2 => Self::NAMES[0],
            Self::MultilingualE5Small => Self::NAMES[1],
        }
    }

    /// Returns the model with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// Returns its files and their sources.
    #[must_use]
    pub fn manifest(self) -> ModelManifest {
        match self {
            Self::AllMiniLmL6V2 => ModelManifest::all_minilm_l6_v2(),
            Self::MultilingualE5Small => ModelManifest::multilingual_e5_small(),
        }
    }

    /// Returns the command that fetches it.
    #[must_use]
    pub fn fetch_command(self) -> String {
        if self == Self::default() {
            return "toolgate model fetch".into();
        }
        format!("toolgate model fetch --model {self}")
    }

    /// Returns its path in the user's cache directory: `$XDG_CACHE_HOME`, or `.cache` in the home directory. Returns
    /// `None` when there is no home directory either.
    #[must_use]
    pub fn directory(self) -> Option<PathBuf> {
        model_dir_in_cache(self)
    }

    /// Returns its path relative to the user's cache directory.
    #[must_use]
    pub fn place_in_cache(self) -> PathBuf {
        models_in_cache().join(self.name())
    }
}

impl fmt::Display for KnownModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl ValueEnum for KnownModel {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::AllMiniLmL6V2 => "the default: small and fast, trained on English",
            Self::MultilingualE5Small => "for other languages too; slower, and larger in memory",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_name_what_is_fetched() {
        for (model, name) in KnownModel::ALL.into_iter().zip(KnownModel::NAMES) {
            assert_eq!((model.name(), KnownModel::named(name)), (name, Some(model)));
            let manifest = model.manifest();
            assert_eq!(manifest.name, name);
            assert_eq!(manifest.files.last().map(|file| &*file.path), Some("model.safetensors"));
            assert!(manifest.files.iter().all(|file| file.sha256.len() == 64 && file.bytes > 0));
        }
        assert_eq!(KnownModel::named("e5"), None);
        let commands = KnownModel::ALL.map(KnownModel::fetch_command);
        let other = "toolgate model fetch --model multilingual-e5-small";
        assert_eq!(commands, ["toolgate model fetch", other]);
    }
}
