//! Where models are kept on this machine.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// Environment variable that names the model directory itself.
pub const MODEL_DIR_ENV: &str = "TOOLGATE_MODEL_DIR";

const CACHE_PLACE: &str = "toolgate/models/all-MiniLM-L6-v2";

/// The model directory: `$TOOLGATE_MODEL_DIR`, else `toolgate/models/all-MiniLM-L6-v2` under
/// `$XDG_CACHE_HOME`, else under `.cache` in the home directory. `None` when there is no home
/// directory either.
#[must_use]
pub fn default_model_dir() -> Option<PathBuf> {
    choose(env::var_os(MODEL_DIR_ENV), env::var_os("XDG_CACHE_HOME"), env::home_dir())
}

fn choose(
    explicit: Option<OsString>,
    cache: Option<OsString>,
    home: Option<PathBuf>,
) -> Option<PathBuf> {
    let named = |value: Option<OsString>| value.filter(|path| !path.is_empty()).map(PathBuf::from);
    named(explicit).or_else(|| {
        named(cache)
            // The XDG specification: a relative path is to be ignored.
            .filter(|path| path.is_absolute())
            .or_else(|| home.map(|home| home.join(".cache")))
            .map(|cache| cache.join(CACHE_PLACE))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(explicit: Option<&str>, cache: Option<&str>, home: Option<&str>, want: Option<&str>) {
        let chosen = choose(explicit.map(Into::into), cache.map(Into::into), home.map(Into::into));
        assert_eq!(chosen, want.map(PathBuf::from));
    }

    #[test]
    fn the_first_usable_place_is_chosen() {
        let cached = Some("/c/toolgate/models/all-MiniLM-L6-v2");
        let at_home = Some("/h/.cache/toolgate/models/all-MiniLM-L6-v2");
        check(Some("/m"), Some("/c"), Some("/h"), Some("/m"));
        check(None, Some("/c"), Some("/h"), cached);
        check(Some(""), Some("/c"), None, cached);
        check(None, Some("relative"), Some("/h"), at_home);
        check(None, None, Some("/h"), at_home);
        check(None, None, None, None);
    }
}
