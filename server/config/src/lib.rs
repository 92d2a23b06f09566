//! The server's configuration. File, environment and flags are parsed into one typed [`Config`], and all mistakes are
//! reported at once. Parsing depends on its inputs alone; only `load`, `secret` and `store_url` touch files and the
//! process.

mod certificate_rule;
mod check;
mod choice;
mod components;
mod example;
mod file;
mod gpus;
mod key;
pub mod keys;
mod load;
mod mistake;
mod origin;
mod secret;
mod settings;
mod store_url;

#[cfg(test)]
mod tests;
mod typed_kind;
pub mod units;
mod value;
mod worker_address;

use std::path::Path;

pub use certificate_rule::CertificateRule;
pub use components::{
    AdmissionConfig, AuditConfig, AuthConfig, AuthMethod, DeferralConfig, EncoderConfig,
    HandleConfig, JwksPlace, LimitsConfig, LogConfig, LogFormat, LogLevel, MemoryConfig,
    PacksConfig, PoolConfig, RouterConfig, SafetyConfig, ServerConfig, ShardConfig,
    SharedStoreConfig, StoreConfig, TelemetryConfig, TlsConfig, TokenConfig, UsageConfig,
};
pub use example::example;
pub use gpus::Gpus;
pub use key::{Key, KeySpec, Kind, OptionalKey};
pub use keys::KEYS;
pub use load::{CONFIG_FILE_ENV, default_file, load};
pub use mistake::{ConfigErrors, Mistake, Source};
pub use origin::WebOrigin;
pub use secret::{KeyError, KeySource, SecretKey};
pub use settings::{FlagValue, Inputs, Setting, Settings, SourceFile};
pub use store_url::{StoreUrl, StoreUrlError, UrlSource};
pub use value::Value;
pub use worker_address::WorkerAddress;

/// Complete configuration of the server, one struct per component.
#[derive(Debug, Clone)]
pub struct Config {
    /// Listeners, admission control and draining.
    pub server: ServerConfig,
    /// Sizes and counts above which a request is refused.
    pub limits: LimitsConfig,
    /// Storage of the catalog.
    pub store: StoreConfig,
    /// In-process encoder, encoder workers and the settings that both share.
    pub encoder: EncoderConfig,
    /// In-memory indexes.
    pub shard: ShardConfig,
    /// Default settings of Route.
    pub router: RouterConfig,
    /// Packs, which hold words with which people ask for well-known tools.
    pub packs: PacksConfig,
    /// Memory of past tool calls.
    pub memory: MemoryConfig,
    /// Handling of texts that MCP servers write.
    pub safety: SafetyConfig,
    /// Settings of deferral.
    pub deferral: DeferralConfig,
    /// Signing of active-set handles.
    pub handle: HandleConfig,
    /// Settings of the usage ledger.
    pub usage: UsageConfig,
    /// Authentication.
    pub auth: AuthConfig,
    /// TLS on the gRPC port; `None` when it is off.
    pub tls: Option<TlsConfig>,
    /// Audit events of changes.
    pub audit: AuditConfig,
    /// Settings of the log.
    pub log: LogConfig,
    /// Export of traces.
    pub telemetry: TelemetryConfig,
}

/// Configuration together with the source of each value.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// Typed configuration.
    pub config: Config,
    /// Value and source of every key, in the order of [`KEYS`].
    pub settings: Settings,
    /// Oddities that do not stop the server.
    pub warnings: Vec<Mistake>,
}

impl Config {
    /// Parses all sources. Flags win over the environment, the environment over the file, and the file over the
    /// defaults.
    ///
    /// # Errors
    /// Returns every mistake of every source, including those in overridden values.
    pub fn parse(inputs: &Inputs) -> Result<Parsed, ConfigErrors> {
        let (settings, warnings) = settings::gather(inputs)?;
        check::check(&settings)?;
        Ok(Parsed { config: Self::from(&settings), settings, warnings })
    }

    /// Returns the defaults, with the data and model directories below `directory`. For tests and tools that must not
    /// touch the user's own directories.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        let mut settings = Settings::defaults();
        settings.place_directories(directory);
        Self::from(&settings)
    }
}

impl From<&Settings> for Config {
    fn from(settings: &Settings) -> Self {
        Self {
            server: settings.into(),
            limits: settings.into(),
            store: settings.into(),
            encoder: settings.into(),
            shard: settings.into(),
            router: settings.into(),
            packs: settings.into(),
            memory: settings.into(),
            safety: settings.into(),
            deferral: settings.into(),
            handle: settings.into(),
            usage: settings.into(),
            auth: settings.into(),
            tls: settings.into(),
            audit: settings.into(),
            log: settings.into(),
            telemetry: settings.into(),
        }
    }
}
