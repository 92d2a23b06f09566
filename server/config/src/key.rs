//! What a configuration key is: its name, type, range, default and doc. The keys themselves are in `table`.

use std::fmt::Display;
use std::time::Duration;

use super::units::{format_duration, format_size};

/// One key of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// `section.name`, as in the file and after `--set`.
    pub name: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// What it is when nobody says.
    pub default: Fallback,
    /// What a value means, for people who run the server. Whole sentences.
    pub doc: &'static str,
}

/// A key's value when no source gives one.
#[derive(Debug, Clone, Copy)]
pub enum Fallback {
    /// This text, in the grammar of environment variables.
    Text(&'static str),
    /// No value.
    Absent,
    /// `toolgate` under the user's data directory.
    DataDirectory,
    /// The default encoder's folder under the user's cache directory.
    ModelDirectory,
}

/// A key's type and range; bounds are inclusive.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// An IP address and port.
    Address,
    /// A whole number.
    Count {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// Bytes, written with a binary unit.
    Size {
        /// The least, in bytes.
        min: u64,
        /// The most, in bytes.
        max: u64,
    },
    /// A span of time, written with a unit.
    Duration {
        /// The least.
        min: Duration,
        /// The most.
        max: Duration,
    },
    /// A decimal number.
    Decimal {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// `true` or `false`.
    Flag,
    /// A path; `~/` stands for the home directory.
    Path,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Some of these words, in a list.
    Words(&'static [&'static str]),
    /// Client certificates with tenant and roles, in a list.
    Certificates,
    /// A key in base64, never printed.
    Secret,
    /// The URL of a database, never printed.
    StoreUrl,
    /// Any text, taken as it is.
    Text,
    /// A device of the encoder.
    Device,
    /// Devices of the encoder, in a list.
    Devices,
    /// Addresses of encoder workers, in a list.
    Workers,
    /// A mode of deferral.
    Mode,
    /// Tenants with modes of deferral, in a list.
    TenantModes,
    /// Tenants, in a list.
    Tenants,
    /// Patterns of names, in a list.
    Patterns,
    /// Origins of web pages, in a list.
    Origins,
}

impl Key {
    /// The environment variable that sets this key.
    #[must_use]
    pub fn env(&self) -> String {
        // `toolgate model fetch` and the encoder know the model directory by this name.
        if self.name == "encoder.model_dir" {
            return "TOOLGATE_MODEL_DIR".into();
        }
        format!("TOOLGATE_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// The part of the name before the dot.
    #[must_use]
    pub fn section(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(section, _)| section)
    }

    /// The part of the name after the dot.
    #[must_use]
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, name)| name)
    }
}

impl Kind {
    /// What would be right, in words, with an example.
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

    /// The range in words; empty for types without one.
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

    /// Whether a value is quoted in TOML.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        !matches!(self, Self::Count { .. } | Self::Decimal { .. } | Self::Flag) && !self.is_list()
    }

    /// Whether a value is an array in TOML, and is written with commas elsewhere.
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
