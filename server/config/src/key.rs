//! Declaration of a configuration key: name, type, range, default and documentation. The keys themselves are in `keys`.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::time::Duration;

use super::typed_kind::{PATH, TypedKind};
use super::units::{format_duration, format_size};
use super::value::Value;

/// Configuration key that always has a value, which the program reads as a `T`.
#[derive(Debug)]
pub struct Key<T> {
    /// Description of the key, whatever its type is.
    pub spec: KeySpec,
    read: fn(&Value) -> Option<T>,
}

/// Configuration key without a default. The program reads it as an `Option<T>`, which is `None` if no source sets it.
#[derive(Debug)]
pub struct OptionalKey<T> {
    /// Description of the key, whatever its type is.
    pub spec: KeySpec,
    read: fn(&Value) -> Option<T>,
}

/// Description of a configuration key, whatever the type of its value is.
#[derive(Debug, Clone, Copy)]
pub struct KeySpec {
    /// Name as `section.name`, as in the file and after `--set`.
    pub name: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// Value when no source gives one.
    pub default: Fallback,
    /// Meaning of a value in whole sentences, for people who run the server.
    pub doc: &'static str,
    /// True if a new value takes effect on SIGHUP. Other keys take effect at the next start.
    pub is_live: bool,
    /// Environment variable, if it is not the one that the name gives.
    variable: Option<&'static str>,
}

/// Value of a key when no source gives one.
#[derive(Debug, Clone, Copy)]
pub enum Fallback {
    /// Text in the grammar of environment variables.
    Text(&'static str),
    /// No value.
    Absent,
    /// Directory `toolgate` under the user's data directory.
    DataDirectory,
    /// Folder of the default encoder under the user's cache directory.
    ModelDirectory,
}

/// Type and range of a key; bounds are inclusive.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// IP address and port.
    Address,
    /// Whole number.
    Count {
        /// Lower bound.
        min: u64,
        /// Upper bound.
        max: u64,
    },
    /// Size in bytes, written with a binary unit.
    Size {
        /// Lower bound in bytes.
        min: u64,
        /// Upper bound in bytes.
        max: u64,
    },
    /// Span of time, written with a unit.
    Duration {
        /// Lower bound.
        min: Duration,
        /// Upper bound.
        max: Duration,
    },
    /// Decimal number.
    Decimal {
        /// Lower bound.
        min: f64,
        /// Upper bound.
        max: f64,
    },
    /// `true` or `false`.
    Flag,
    /// Path; `~/` stands for the home directory.
    Path,
    /// One of the listed words.
    Choice(&'static [&'static str]),
    /// List of some of the listed words.
    Words(&'static [&'static str]),
    /// List of client certificates with tenant and roles.
    Certificates,
    /// Key in base64, never printed.
    Secret,
    /// URL of a database, never printed.
    StoreUrl,
    /// Any text, taken unchanged.
    Text,
    /// Device of the encoder.
    Device,
    /// List of encoder devices.
    Devices,
    /// GPUs on which the server starts workers.
    Gpus,
    /// List of encoder workers' addresses.
    Workers,
    /// Mode of deferral.
    Mode,
    /// List of tenants with modes of deferral.
    TenantModes,
    /// List of tenants.
    Tenants,
    /// List of name patterns.
    Patterns,
    /// List of web page origins.
    Origins,
}

impl<T> Key<T> {
    /// Declares a key. `default` is in the grammar of environment variables.
    pub(crate) const fn new(
        name: &'static str,
        kind: TypedKind<T>,
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        let spec = KeySpec::new(name, kind.kind, Fallback::Text(default), doc);
        Self { spec, read: kind.read }
    }

    /// Makes a new value take effect on SIGHUP.
    pub(crate) const fn live(mut self) -> Self {
        self.spec.is_live = true;
        self
    }

    /// Returns the value of this key. Panics if `value` is of another kind than the key.
    pub(crate) fn read(&self, value: &Value) -> T {
        (self.read)(value).expect("every source's value was parsed as the key's kind")
    }
}

impl Key<PathBuf> {
    /// Declares a key for a directory whose default depends on the user.
    pub(crate) const fn directory(
        name: &'static str,
        default: Fallback,
        doc: &'static str,
    ) -> Self {
        let spec = KeySpec::new(name, PATH.kind, default, doc);
        Self { spec, read: PATH.read }
    }

    /// Names the environment variable that sets the key, if it is not the one that the name gives.
    pub(crate) const fn with_variable(mut self, variable: &'static str) -> Self {
        self.spec.variable = Some(variable);
        self
    }
}

impl<T> OptionalKey<T> {
    /// Declares a key without a default.
    pub(crate) const fn new(name: &'static str, kind: TypedKind<T>, doc: &'static str) -> Self {
        let spec = KeySpec::new(name, kind.kind, Fallback::Absent, doc);
        Self { spec, read: kind.read }
    }

    /// Makes a new value take effect on SIGHUP.
    pub(crate) const fn live(mut self) -> Self {
        self.spec.is_live = true;
        self
    }

    /// Returns the value of this key; `None` if it is absent.
    pub(crate) fn read(&self, value: &Value) -> Option<T> {
        (self.read)(value)
    }
}

impl<T> Display for Key<T> {
    /// Writes the name of the key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.spec.name)
    }
}

impl<T> Display for OptionalKey<T> {
    /// Writes the name of the key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.spec.name)
    }
}

impl KeySpec {
    const fn new(name: &'static str, kind: Kind, default: Fallback, doc: &'static str) -> Self {
        Self { name, kind, default, doc, is_live: false, variable: None }
    }

    /// Returns the environment variable that sets this key.
    #[must_use]
    pub fn env(&self) -> String {
        self.variable.map_or_else(
            || format!("TOOLGATE_{}", self.name.replace('.', "_").to_uppercase()),
            str::to_owned,
        )
    }

    /// Returns the part of the name before the dot.
    #[must_use]
    pub fn section(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(section, _)| section)
    }

    /// Returns the part of the name after the dot.
    #[must_use]
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, name)| name)
    }
}

impl Kind {
    /// Returns a description of a valid value, with an example.
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Self::Address => "an IP address and port such as \"127.0.0.1:7070\"".into(),
            Self::Count { .. } => format!("a whole number {}", self.range()),
            Self::Size { .. } => format!("a size {} such as \"4MiB\"", self.range()),
            Self::Duration { .. } => {
                format!("a duration {} such as \"250ms\" or \"10s\"", self.range())
            }
            Self::Decimal { .. } => format!("a number {}", self.range()),
            Self::Flag => "true or false".into(),
            Self::Path => "a path".into(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Words(words) => format!("a list of {}", words.join(", ")),
            Self::Certificates => {
                "a list such as \"spiffe://example.org/ns/ops/sa/a=acme:agent+catalog-writer\""
                    .into()
            }
            Self::Secret => "at least 32 random bytes in base64 (`openssl rand -base64 32`)".into(),
            Self::StoreUrl => "a URL such as \"postgres://user@host/database\"".into(),
            Self::Text => "a text".into(),
            Self::Device => "a device: auto, cpu, cuda:0, cuda:1, ...".into(),
            Self::Devices => "a list of devices, each cpu, cuda:0, cuda:1, ...".into(),
            Self::Gpus => "auto, require, off or a whole number from 0 to 64".into(),
            Self::Workers => "a list of addresses such as \"10.0.0.7:7080\" or \
                              \"dns://workers.example:7080\""
                .into(),
            Self::Mode => "a mode: always, auto, auto:N with N from 0 to 100, or off".into(),
            Self::TenantModes => "a list of tenant=mode such as \"acme=auto:20\"".into(),
            Self::Tenants => "a list of tenants such as \"acme\"".into(),
            Self::Patterns => "a list of patterns such as \"*.example.com\"".into(),
            Self::Origins => "a list of origins such as \"https://app.example.com\"".into(),
        }
    }

    /// Returns the range in words; empty for types without one.
    #[must_use]
    pub fn range(&self) -> String {
        match self {
            Self::Count { min, max } => between(min, max),
            Self::Size { min, max } => between(format_size(*min), format_size(*max)),
            Self::Duration { min, max } => between(format_duration(*min), format_duration(*max)),
            Self::Decimal { min, max } => between(min, max),
            _ => String::new(),
        }
    }

    /// Returns true if the value is never printed, neither in messages nor by `toolgate config show`.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self, Self::Secret | Self::StoreUrl)
    }

    /// Returns true if the value is quoted in TOML.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        !matches!(self, Self::Count { .. } | Self::Decimal { .. } | Self::Flag) && !self.is_list()
    }

    /// Returns true if the value is an array in TOML. Other sources separate its items by commas.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(
            self,
            Self::Devices
                | Self::Workers
                | Self::TenantModes
                | Self::Tenants
                | Self::Patterns
                | Self::Origins
                | Self::Words(_)
                | Self::Certificates
        )
    }
}

fn between(min: impl Display, max: impl Display) -> String {
    format!("from {min} to {max}")
}
