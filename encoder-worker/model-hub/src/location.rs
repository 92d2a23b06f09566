//! Locations of models on this machine.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::known::KnownModel;

/// Environment variable that names the model directory itself.
pub const MODEL_DIR_ENV: &str = "TOOLGATE_MODEL_DIR";

/// Returns the folder of all models, relative to the user's cache directory.
pub(super) fn models_in_cache() -> &'static Path {
    Path::new("toolgate/models")
}

/// Returns the model directory: `$TOOLGATE_MODEL_DIR`, or else the default model's directory in the cache
/// ([`KnownModel::directory`]). Returns `None` when there is no home directory either.
#[must_use]
pub fn default_model_dir() -> Option<PathBuf> {
    named(env::var_os(MODEL_DIR_ENV)).or_else(|| KnownModel::default().directory())
}

pub(super) fn model_dir_in_cache(model: KnownModel) -> Option<PathBuf> {
    choose(model, env::var_os("XDG_CACHE_HOME"), env::home_dir())
}

fn named(value: Option<OsString>) -> Option<PathBuf> {
    value.filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn choose(model: KnownModel, cache: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    named(cache)
        // The XDG specification says to ignore a relative path.
        .filter(|path| path.is_absolute())
        .or_else(|| home.map(|home| home.join(".cache")))
        .map(|cache| cache.join(model.place_in_cache()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cache: Option<&str>, home: Option<&str>, want: Option<&str>) {
        for model in KnownModel::ALL {
            let chosen = choose(model, cache.map(Into::into), home.map(Into::into));
            assert_eq!(chosen, want.map(|want| Path::new(want).join(model.name())));
        }
    }

    #[test]
    fn the_first_usable_place_is_chosen() {
        let cached = "/c/toolgate/models";
        let at_home = "/h/.cache/toolgate/models";
        check(Some("/c"), Some("/h"), Some(cached));
        check(Some("/c"), None, Some(cached));
        check(Some("relative"), Some("/h"), Some(at_home));
        check(None, Some("/h"), Some(at_home));
        check(None, None, None);
        assert_eq!(named(Some("/m".into())), Some(PathBuf::from("/m")));
        assert_eq!(named(Some("".into())), None);
    }
}
