//! The server's configuration: file, environment and flags parsed whole into one typed [`Config`], every
//! mistake reported at once. Pure over its inputs; only `load` and `secret` touch files and the process.

mod certificate_rule;
mod check;
mod components;
mod example;
mod file;
mod key;
mod live_keys;
mod load;
mod mistake;
mod origin;
mod secret;
mod settings;
mod store_url;
mod table;

#[cfg(test)]
mod tests;
mod typed;
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
pub use key::{Key, Kind};
pub use load::{CONFIG_FILE_ENV, default_file, load};
pub use mistake::{ConfigErrors, Mistake, Source};
pub use origin::WebOrigin;
pub use secret::{KeyError, KeySource, SecretKey};
pub use settings::{FlagValue, Inputs, Setting, Settings, SourceFile};
pub use store_url::{StoreUrl, StoreUrlError, UrlSource};
pub use table::KEYS;
pub use value::Value;
pub use worker_address::WorkerAddress;

/// Everything the server can be told, one struct per component.
#[derive(Debug, Clone)]
pub struct Config {
    /// Listening, admission and draining.
    pub server: ServerConfig,
    /// Sizes and counts beyond which a request is refused.
    pub limits: LimitsConfig,
    /// Where the catalog is kept.
    pub store: StoreConfig,
    /// The in-process encoder, the workers, and what both are asked with.
    pub encoder: EncoderConfig,
    /// The in-memory indexes.
    pub shard: ShardConfig,
    /// Defaults of Route.
    pub router: RouterConfig,
    /// What people say who want well-known tools.
    pub packs: PacksConfig,
    /// Memory of what worked.
    pub memory: MemoryConfig,
    /// What is done about texts that MCP servers write.
    pub safety: SafetyConfig,
    /// Whether tools are deferred.
    pub deferral: DeferralConfig,
    /// Signing of active-set handles.
    pub handle: HandleConfig,
    /// The usage ledger.
    pub usage: UsageConfig,
    /// Who may call.
    pub auth: AuthConfig,
    /// TLS on the gRPC port; `None` for none.
    pub tls: Option<TlsConfig>,
    /// Where changes are written down.
    pub audit: AuditConfig,
    /// Logging.
    pub log: LogConfig,
    /// Where spans go.
    pub telemetry: TelemetryConfig,
}

/// A configuration together with where each of its values came from.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The typed configuration.
    pub config: Config,
    /// Every key's value and source, in the order of [`KEYS`].
    pub settings: Settings,
    /// What looks odd but does not stop the server.
    pub warnings: Vec<Mistake>,
}

impl Config {
    /// Parses flags over environment over file over defaults.
    ///
    /// # Errors
    /// Every mistake of every source, those of overridden values included.
    pub fn parse(inputs: &Inputs) -> Result<Parsed, ConfigErrors> {
        let (settings, warnings) = settings::gather(inputs)?;
        check::check(&settings)?;
        Ok(Parsed { config: Self::from(&settings), settings, warnings })
    }

    /// All defaults, with the data and model directories below `directory`: for tests and tools that
    /// must not touch the user's own.
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
