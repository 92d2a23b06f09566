//! Kinds of keys together with the types as which the program reads their values. A key's type can't differ from its
//! kind, because both come from here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_core::deferral::{Mode, Pattern};
use toolgate_core::identity::TenantId;
use toolgate_encoder::Device;

use super::certificate_rule::CertificateRule;
use super::choice::Choice;
use super::gpus::Gpus;
use super::key::Kind;
use super::origin::WebOrigin;
use super::secret::SecretKey;
use super::store_url::StoreUrl;
use super::value::Value;
use super::worker_address::WorkerAddress;

/// Kind of a key whose value the program reads as a `T`.
pub(crate) struct TypedKind<T> {
    pub(crate) kind: Kind,
    /// Returns the value as a `T`; `None` if it is of another kind, or absent.
    pub(crate) read: fn(&Value) -> Option<T>,
}

impl<T> Clone for TypedKind<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TypedKind<T> {}

pub(crate) const ADDRESS: TypedKind<SocketAddr> = TypedKind {
    kind: Kind::Address,
    read: |value| match value {
        Value::Address(address) => Some(*address),
        _ => None,
    },
};

pub(crate) const FLAG: TypedKind<bool> = TypedKind {
    kind: Kind::Flag,
    read: |value| match value {
        Value::Flag(flag) => Some(*flag),
        _ => None,
    },
};

pub(crate) const PATH: TypedKind<PathBuf> = TypedKind {
    kind: Kind::Path,
    read: |value| match value {
        Value::Path(path) => Some(path.clone()),
        _ => None,
    },
};

pub(crate) const TEXT: TypedKind<String> = TypedKind {
    kind: Kind::Text,
    read: |value| match value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    },
};

pub(crate) const SECRET: TypedKind<SecretKey> = TypedKind {
    kind: Kind::Secret,
    read: |value| match value {
        Value::Secret(key) => Some(key.clone()),
        _ => None,
    },
};

pub(crate) const DATABASE_URL: TypedKind<StoreUrl> = TypedKind {
    kind: Kind::StoreUrl,
    read: |value| match value {
        Value::StoreUrl(url) => Some(url.clone()),
        _ => None,
    },
};

pub(crate) const DEVICE: TypedKind<Device> = TypedKind {
    kind: Kind::Device,
    read: |value| match value {
        Value::Device(device) => Some(*device),
        _ => None,
    },
};

pub(crate) const DEVICES: TypedKind<Vec<Device>> = TypedKind {
    kind: Kind::Devices,
    read: |value| match value {
        Value::Devices(devices) => Some(devices.clone()),
        _ => None,
    },
};

pub(crate) const GPUS: TypedKind<Gpus> = TypedKind {
    kind: Kind::Gpus,
    read: |value| match value {
        Value::Gpus(gpus) => Some(*gpus),
        _ => None,
    },
};

pub(crate) const WORKERS: TypedKind<Vec<WorkerAddress>> = TypedKind {
    kind: Kind::Workers,
    read: |value| match value {
        Value::Workers(workers) => Some(workers.clone()),
        _ => None,
    },
};

pub(crate) const MODE: TypedKind<Mode> = TypedKind {
    kind: Kind::Mode,
    read: |value| match value {
        Value::Mode(mode) => Some(*mode),
        _ => None,
    },
};

pub(crate) const TENANT_MODES: TypedKind<Vec<(TenantId, Mode)>> = TypedKind {
    kind: Kind::TenantModes,
    read: |value| match value {
        Value::TenantModes(modes) => Some(modes.clone()),
        _ => None,
    },
};

pub(crate) const TENANTS: TypedKind<Vec<TenantId>> = TypedKind {
    kind: Kind::Tenants,
    read: |value| match value {
        Value::Tenants(tenants) => Some(tenants.clone()),
        _ => None,
    },
};

pub(crate) const PATTERNS: TypedKind<Vec<Pattern>> = TypedKind {
    kind: Kind::Patterns,
    read: |value| match value {
        Value::Patterns(patterns) => Some(patterns.clone()),
        _ => None,
    },
};

pub(crate) const ORIGINS: TypedKind<Vec<WebOrigin>> = TypedKind {
    kind: Kind::Origins,
    read: |value| match value {
        Value::Origins(origins) => Some(origins.clone()),
        _ => None,
    },
};

pub(crate) const CERTIFICATES: TypedKind<Vec<CertificateRule>> = TypedKind {
    kind: Kind::Certificates,
    read: |value| match value {
        Value::Certificates(rules) => Some(rules.clone()),
        _ => None,
    },
};

/// Whole number that a count or a size is read as.
pub(crate) trait Whole: Sized {
    /// Converts the number. One that the type cannot hold becomes the greatest that it can.
    fn saturating(number: u64) -> Self;
}

impl Whole for u32 {
    fn saturating(number: u64) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }
}

impl Whole for u64 {
    fn saturating(number: u64) -> Self {
        number
    }
}

impl Whole for usize {
    fn saturating(number: u64) -> Self {
        // Ranges stay below 2^50. A 32-bit machine cannot use what it cannot hold.
        Self::try_from(number).unwrap_or(Self::MAX)
    }
}

/// Returns the kind of whole numbers from `min` to `max`.
pub(crate) const fn count<T: Whole>(min: u64, max: u64) -> TypedKind<T> {
    TypedKind { kind: Kind::Count { min, max }, read: whole }
}

/// Returns the kind of sizes from `min` to `max` bytes.
pub(crate) const fn size<T: Whole>(min: u64, max: u64) -> TypedKind<T> {
    TypedKind { kind: Kind::Size { min, max }, read: whole }
}

/// Returns the kind of spans of time from `min` to `max` milliseconds.
pub(crate) const fn span(min: u64, max: u64) -> TypedKind<Duration> {
    TypedKind {
        kind: Kind::Duration { min: Duration::from_millis(min), max: Duration::from_millis(max) },
        read: |value| match value {
            Value::Duration(duration) => Some(*duration),
            _ => None,
        },
    }
}

/// Returns the kind of decimal numbers from `min` to `max`.
pub(crate) const fn decimal(min: f64, max: f64) -> TypedKind<f64> {
    TypedKind {
        kind: Kind::Decimal { min, max },
        read: |value| match value {
            Value::Decimal(number) => Some(*number),
            _ => None,
        },
    }
}

/// Returns the kind of one of the words of `T`.
pub(crate) const fn choice<T: Choice>() -> TypedKind<T> {
    const { assert!(T::WORDS.len() == T::VALUES.len(), "each word has a value") }
    TypedKind {
        kind: Kind::Choice(T::WORDS),
        read: |value| match value {
            Value::Choice(word) => T::named(word),
            _ => None,
        },
    }
}

/// Returns the kind of lists of words of `T`. They are read in the order of `T`, each once.
pub(crate) const fn words<T: Choice>() -> TypedKind<Vec<T>> {
    const { assert!(T::WORDS.len() == T::VALUES.len(), "each word has a value") }
    TypedKind {
        kind: Kind::Words(T::WORDS),
        read: |value| match value {
            Value::Words(words) => {
                let chosen =
                    T::WORDS.iter().zip(T::VALUES).filter(|(word, _)| words.contains(word));
                Some(chosen.map(|(_, value)| *value).collect())
            }
            _ => None,
        },
    }
}

fn whole<T: Whole>(value: &Value) -> Option<T> {
    match value {
        Value::Count(number) | Value::Size(number) => Some(T::saturating(*number)),
        _ => None,
    }
}
