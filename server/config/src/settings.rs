//! One value per key. Flags win over the environment, the environment over the file, and the file over the default.
//! Every source is checked, so a mistake is found even if another source overrides it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file;
use super::key::{Fallback, Key, KeySpec, OptionalKey};
use super::keys::{ENCODER_MODEL, ENCODER_MODEL_DIR, KEYS, find};
use super::mistake::{ConfigErrors, Mistake, Source};
use super::value::{Raw, Value};
use toolgate_core::nearest::nearest;

/// Variables with the server's prefix that are not keys: those of the command line and of the model hub.
const OTHER_VARIABLES: [&str; 9] = [
    super::load::CONFIG_FILE_ENV,
    "TOOLGATE_ENDPOINT",
    "TOOLGATE_TENANT",
    "TOOLGATE_API_KEY",
    "TOOLGATE_API_KEY_FILE",
    "TOOLGATE_CA_FILE",
    "TOOLGATE_CLIENT_CERT",
    "TOOLGATE_CLIENT_KEY",
    "TOOLGATE_MODEL_HUB",
];
const PREFIX: &str = "TOOLGATE_";

/// Prefixes of variables for encoder workers, which inherit the environment of the server that starts them.
const WORKER_VARIABLES: [&str; 2] = ["TOOLGATE_WORKER_", "TOOLGATE_FAULT"];

/// All inputs of a configuration.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Configuration file, if there is one.
    pub file: Option<SourceFile>,
    /// Environment variables. An empty value counts as absent.
    pub environment: BTreeMap<String, String>,
    /// Values from the command line. The last value of a key wins.
    pub flags: Vec<FlagValue>,
}

/// Text and path of a configuration file.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Path under which mistakes are reported.
    pub path: PathBuf,
    /// Text in TOML.
    pub text: String,
}

/// Value of one key from the command line.
#[derive(Debug, Clone)]
pub struct FlagValue {
    /// Flag as the user knows it, such as `--listen`.
    pub flag: String,
    /// Name of the key.
    pub key: String,
    /// Value as given.
    pub value: String,
}

/// Value of a key with its source.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Key that the value belongs to.
    pub key: &'static KeySpec,
    /// Effective value of the key.
    pub value: Value,
    /// Source of the value.
    pub source: Source,
}

/// One setting per key, in the order of [`KEYS`].
#[derive(Debug, Clone)]
pub struct Settings(Vec<Setting>);

/// Value that one source gives to one key.
pub(super) struct Said {
    pub(super) source: Source,
    pub(super) key: String,
    pub(super) raw: Raw,
}

/// Merges the sources. Returns the settings together with the oddities that were found.
pub(super) fn gather(inputs: &Inputs) -> Result<(Settings, Vec<Mistake>), ConfigErrors> {
    let mut mistakes = Vec::new();
    let mut warnings = Vec::new();
    let mut said = Vec::new();
    if let Some(file) = &inputs.file {
        said.extend(file::read(file, &mut mistakes));
    }
    said.extend(read_environment(&inputs.environment, &mut mistakes, &mut warnings));
    said.extend(inputs.flags.iter().map(|flag| Said {
        source: Source::Flag(flag.flag.clone()),
        key: flag.key.clone(),
        raw: Raw::Untyped(flag.value.clone()),
    }));
    let mut settings = Settings::defaults();
    for one in said {
        if let Err(mistake) = settings.apply(one, &inputs.environment) {
            mistakes.push(mistake);
        }
    }
    settings.place_defaults(&inputs.environment, &mut mistakes);
    mistakes.sort_by_key(|mistake| mistake.source.line());
    ConfigErrors::unless_empty(mistakes)?;
    Ok((settings, warnings))
}

impl Settings {
    /// Returns every setting, in the order of [`KEYS`].
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.0.iter()
    }

    /// Returns the defaults. Directories that depend on the user are still absent.
    pub(super) fn defaults() -> Self {
        let default = |key: &&'static KeySpec| Setting {
            key,
            value: match key.default {
                Fallback::Text(text) => Raw::Untyped(text.into())
                    .parse(&key.kind)
                    .expect("the defaults of keys are valid, as a test shows"),
                _ => Value::Absent,
            },
            source: Source::Default,
        };
        Self(KEYS.iter().map(default).collect())
    }

    /// Sets the directories that no source names to places below `directory`.
    pub(super) fn place_directories(&mut self, directory: &Path) {
        for setting in &mut self.0 {
            match (setting.key.default, &setting.value) {
                (Fallback::DataDirectory, Value::Absent) => {
                    setting.value = Value::Path(directory.join("data"));
                }
                (Fallback::ModelDirectory, Value::Absent) => {
                    setting.value = Value::Path(directory.join("model"));
                }
                _ => {}
            }
        }
    }

    /// Returns the setting of a key. Panics if [`KEYS`] lacks the key.
    pub(super) fn get(&self, key: &KeySpec) -> &Setting {
        let found = self.0.iter().find(|setting| setting.key.name == key.name);
        found.expect("KEYS lists every key, as the tests show")
    }

    /// Returns the value of a key.
    pub(super) fn read<T>(&self, key: &Key<T>) -> T {
        key.read(&self.get(&key.spec).value)
    }

    /// Returns the value of a key without a default; `None` if no source sets it.
    pub(super) fn read_optional<T>(&self, key: &OptionalKey<T>) -> Option<T> {
        key.read(&self.get(&key.spec).value)
    }

    /// Returns the keys whose values differ in `other`, in the order of [`KEYS`].
    #[must_use]
    pub fn differing(&self, other: &Self) -> Vec<&'static KeySpec> {
        let both = self.iter().zip(other.iter());
        let differing = both.filter(|(one, other)| !one.value.is(&other.value));
        differing.map(|(one, _)| one.key).collect()
    }

    fn apply(&mut self, said: Said, environment: &BTreeMap<String, String>) -> Result<(), Mistake> {
        let Some(key) = find(&said.key) else {
            return Err(unknown_key(said.source, &said.key));
        };
        let value = said.raw.parse(&key.kind).map_err(|problem| Mistake {
            source: said.source.clone(),
            key: Some(key.name.into()),
            problem,
        })?;
        let value = expand_home(value, environment);
        for setting in self.0.iter_mut().filter(|setting| setting.key.name == key.name) {
            setting.value = value.clone();
            setting.source = said.source.clone();
        }
        Ok(())
    }

    /// Lets a flag choose the model. If a flag sets only one of `encoder.model` and `encoder.model_dir`, the other key
    /// falls back to its default, whatever the environment or the file says.
    fn let_a_flag_choose_the_model(&mut self) {
        let by_flag = |key| matches!(self.get(key).source, Source::Flag(_));
        let loser = match (by_flag(&ENCODER_MODEL.spec), by_flag(&ENCODER_MODEL_DIR.spec)) {
            (true, false) => &ENCODER_MODEL_DIR.spec,
            (false, true) => &ENCODER_MODEL.spec,
            _ => return,
        };
        let defaults = Self::defaults();
        for setting in self.0.iter_mut().filter(|setting| setting.key.name == loser.name) {
            *setting = defaults.get(loser).clone();
        }
    }

    fn place_defaults(
        &mut self,
        environment: &BTreeMap<String, String>,
        mistakes: &mut Vec<Mistake>,
    ) {
        self.let_a_flag_choose_the_model();
        let model = self.read(&ENCODER_MODEL).place_in_cache();
        for setting in &mut self.0 {
            let (variable, home_part, below) = match (setting.key.default, &setting.value) {
                (Fallback::DataDirectory, Value::Absent) => {
                    ("XDG_DATA_HOME", ".local/share", Path::new("toolgate"))
                }
                (Fallback::ModelDirectory, Value::Absent) => {
                    ("XDG_CACHE_HOME", ".cache", model.as_path())
                }
                _ => continue,
            };
            match user_directory(environment, variable, home_part) {
                Some(directory) => setting.value = Value::Path(directory.join(below)),
                None => mistakes.push(Mistake {
                    source: Source::Default,
                    key: Some(setting.key.name.into()),
                    problem: format!(
                        "neither {variable} nor HOME says where it would be: set {}",
                        setting.key.env()
                    ),
                }),
            }
        }
    }
}

/// Returns a directory of the XDG specification, which requires that a relative path is ignored.
pub(super) fn user_directory(
    environment: &BTreeMap<String, String>,
    variable: &str,
    home_part: &str,
) -> Option<PathBuf> {
    let named = environment.get(variable).map(PathBuf::from);
    named.filter(|path| path.is_absolute()).or_else(|| {
        let home = environment.get("HOME").filter(|home| !home.is_empty())?;
        Some(Path::new(home).join(home_part))
    })
}

/// Expands `~` in a path. The shell does this for flags and variables, but not for the file.
fn expand_home(value: Value, environment: &BTreeMap<String, String>) -> Value {
    let Value::Path(path) = &value else {
        return value;
    };
    match (path.strip_prefix("~"), environment.get("HOME")) {
        (Ok(rest), Some(home)) => Value::Path(Path::new(home).join(rest)),
        _ => value,
    }
}

fn read_environment(
    environment: &BTreeMap<String, String>,
    mistakes: &mut Vec<Mistake>,
    warnings: &mut Vec<Mistake>,
) -> Vec<Said> {
    let mut said = Vec::new();
    for (name, value) in environment.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        if let Some(key) = KEYS.iter().find(|key| key.env() == *name) {
            if !value.is_empty() {
                said.push(Said {
                    source: Source::Environment(name.clone()),
                    key: key.name.into(),
                    raw: Raw::Untyped(value.clone()),
                });
            }
        } else if !OTHER_VARIABLES.contains(&name.as_str())
            && !WORKER_VARIABLES.iter().any(|prefix| name.starts_with(prefix))
        {
            unknown_variable(name, mistakes, warnings);
        }
    }
    said
}

/// Records an unknown variable. A near miss of a known name is a mistake. Any other name may belong to another program
/// and only gets a warning: Kubernetes makes variables such as TOOLGATE_PORT for a Service of that name.
fn unknown_variable(name: &str, mistakes: &mut Vec<Mistake>, warnings: &mut Vec<Mistake>) {
    let known: Vec<String> = KEYS.iter().map(|key| key.env()).collect();
    let near = nearest(name, known.iter().map(String::as_str));
    let (list, problem) = match near {
        Some(near) => (mistakes, format!("no such setting; did you mean {near}?")),
        None => (warnings, "no such setting; it has no effect".to_owned()),
    };
    list.push(Mistake { source: Source::Environment(name.into()), key: None, problem });
}

/// Returns the mistake for an unknown key, with the key that was probably meant.
pub(super) fn unknown_key(source: Source, name: &str) -> Mistake {
    let short = name.rsplit('.').next().unwrap_or(name);
    let moved = KEYS.iter().find(|key| key.short_name() == short).map(|key| key.name);
    let near = nearest(name, KEYS.iter().map(|key| key.name)).or(moved);
    Mistake {
        source,
        key: Some(name.into()),
        problem: match near {
            Some(near) => format!("no such key; did you mean {near}?"),
            None => "no such key; `toolgate config example` lists all".into(),
        },
    }
}
