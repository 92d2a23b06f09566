//! The proxy's file, `llm.toml`.

mod prices;
mod tls;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use url::Url;

use crate::provider::Provider;
use crate::units::{duration, size};

/// Default of `first_decision_timeout`.
const FIRST_DECISION: Duration = Duration::from_millis(150);

pub use prices::{PriceConfig, PricesConfig};
pub use tls::ExtProcTlsConfig;

/// Port of the proxy.
const PORT: u16 = 7090;

/// Content of a proxy's file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The proxy itself.
    pub llm: LlmConfig,
    /// Base URLs of the providers.
    pub upstream: UpstreamConfig,
}

/// Settings of the proxy itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LlmConfig {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Address and port to listen on for Envoy's external processing, if it is served.
    pub ext_proc_listen: Option<SocketAddr>,
    /// TLS of that listener.
    pub ext_proc_tls: ExtProcTlsConfig,
    /// URL by which hosts reach the proxy; empty for an address of this machine.
    pub public_url: String,
    /// Most open connections of hosts. Over HTTP/1.1 each has one request at a time.
    pub max_connections: usize,
    /// Time for the head of a request.
    #[serde(deserialize_with = "duration")]
    pub head_timeout: Duration,
    /// Time for the body of a chat request.
    #[serde(deserialize_with = "duration")]
    pub body_timeout: Duration,
    /// Time for a host to take a piece of its answer.
    #[serde(deserialize_with = "duration")]
    pub write_timeout: Duration,
    /// Most requests under way. A tenant has at most four fifths of them, and less when others have theirs.
    pub max_requests: usize,
    /// Most bytes of chat requests in memory, as they came, with the same shares.
    #[serde(deserialize_with = "size")]
    pub request_memory: usize,
    /// Tenant of hosts, where they show no key.
    pub tenant: String,
    /// Store of API keys that hosts must show one of: a data directory, or the URL of a PostgreSQL database, or `file:` and the
    /// path of a file that holds either. Empty: none is needed.
    pub key_store: String,
    /// Rule for tools in requests.
    pub strategy: StrategyConfig,
    /// Rule for calls that models make.
    pub gate: GateConfig,
    /// Names of tools that may be deferred, with `*` for any characters.
    pub defer: Vec<String>,
    /// Names of tools that are never deferred, with `*` for any characters.
    pub keep: Vec<String>,
    /// Models that get no tools amid a conversation, beside those that are known: parts of names, or whole names with `*` for
    /// any characters, in any case.
    pub no_native_models: Vec<String>,
    /// Prices of models in money.
    pub prices: PricesConfig,
    /// Bytes of definitions of tools that may be deferred; with fewer, `auto` sends all without asking for a price.
    #[serde(deserialize_with = "size")]
    pub defer_above: usize,
    /// Time for the decision on a request; later it is sent as it came.
    #[serde(deserialize_with = "duration")]
    pub decision_timeout: Duration,
    /// The same for the first request with a set of tools; `None` for 150 ms.
    #[serde(deserialize_with = "some_duration")]
    pub first_decision_timeout: Option<Duration>,
    /// Most sets of tools that are known at a time.
    pub max_toolsets: usize,
    /// Most bytes of the definitions of these sets, as they came.
    #[serde(deserialize_with = "size")]
    pub toolset_memory: usize,
    /// Time after which other processes over the same plane take out what this one registered there, if it does not renew it.
    #[serde(deserialize_with = "duration")]
    pub toolset_lease: Duration,
    /// Largest request that is read; larger ones are sent as they come.
    #[serde(deserialize_with = "size")]
    pub max_body: usize,
    /// Time to connect to a provider.
    #[serde(deserialize_with = "duration")]
    pub connect_timeout: Duration,
    /// Time until the head of a provider's answer, from the end of the request on.
    #[serde(deserialize_with = "duration")]
    pub first_byte_timeout: Duration,
    /// Time between two pieces of a provider's answer, and between two of a request that it takes.
    #[serde(deserialize_with = "duration")]
    pub idle_timeout: Duration,
    /// File with certificates (PEM) that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
}

/// Rule for tools in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StrategyConfig {
    /// The cheapest strategy that the API and the model take; pass where that costs no more, and where the host defers by itself.
    Auto,
    /// Requests are sent as they come.
    Pass,
    /// The envelope wherever a tool may be deferred and the host does not defer by itself.
    Envelope,
    /// Tools are added amid the conversation where the API and the model take that, else the envelope.
    Native,
    /// The tools of a turn are sent, and no others.
    Cut,
}

/// Rule for calls that models make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GateConfig {
    /// Calls are not looked at.
    Off,
    /// Counts what Gate says of calls, and changes nothing.
    Observe,
    /// The model is told what Gate refuses, and goes on; the host does not see the refused call.
    Enforce,
}

/// Base URLs of the providers. What a host asks for is sent there and nowhere else.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamConfig {
    /// Place of Anthropic's API.
    #[serde(deserialize_with = "url")]
    pub anthropic: Url,
    /// Place of OpenAI's API, or of a server that copies it, without `/v1`.
    #[serde(deserialize_with = "url")]
    pub openai: Url,
    /// Place of Gemini's API.
    #[serde(deserialize_with = "url")]
    pub gemini: Url,
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    let text = String::deserialize(deserializer)?;
    Url::parse(&text).map_err(|error| de::Error::custom(format!("{text:?} is no URL: {error}")))
}

/// Error of a proxy's file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("{path} can't be read: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is no valid configuration. Holds the problem, with its line.
    #[error("{path}: {problem}")]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
}

impl Default for LlmConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT),
            ext_proc_listen: None,
            ext_proc_tls: ExtProcTlsConfig::default(),
            public_url: String::new(),
            max_connections: 256,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(2 * 60),
            write_timeout: Duration::from_secs(2 * 60),
            max_requests: 256,
            request_memory: 128 << 20,
            tenant: "default".to_owned(),
            key_store: String::new(),
            strategy: StrategyConfig::Auto,
            gate: GateConfig::Observe,
            defer: vec!["mcp_*".to_owned()],
            keep: Vec::new(),
            no_native_models: Vec::new(),
            prices: PricesConfig::default(),
            defer_above: 4 << 10,
            decision_timeout: Duration::from_millis(30),
            first_decision_timeout: None,
            max_toolsets: 64,
            toolset_memory: 64 << 20,
            toolset_lease: Duration::from_secs(5 * 60),
            max_body: 8 << 20,
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(10 * 60),
            idle_timeout: Duration::from_secs(10 * 60),
            ca_file: None,
        }
    }
}

impl LlmConfig {
    /// Returns the time for the decision on the first request with a set of tools.
    pub(crate) fn first_decision_limit(&self) -> Duration {
        self.first_decision_timeout.unwrap_or(FIRST_DECISION)
    }

    /// Returns what is wrong with the listener for Envoy.
    fn ext_proc_problem(&self) -> Option<&'static str> {
        let tls = &self.ext_proc_tls;
        let is_of_others = |listen: SocketAddr| !listen.ip().is_loopback();
        if self.ext_proc_listen.is_none() && *tls != ExtProcTlsConfig::default() {
            return Some("llm.ext_proc_tls needs llm.ext_proc_listen");
        }
        if self.ext_proc_listen.is_some_and(is_of_others) && !tls.is_mutual() {
            return Some(
                "llm.ext_proc_listen is no address of this machine alone: set cert_file, key_file and client_ca_file of \
                 llm.ext_proc_tls, because requests carry keys",
            );
        }
        tls.problem()
    }
}

impl Default for UpstreamConfig {
    fn default() -> Self {
        let known = |url: &str| Url::parse(url).expect("a constant that is a URL");
        Self {
            anthropic: known("https://api.anthropic.com"),
            openai: known("https://api.openai.com"),
            gemini: known("https://generativelanguage.googleapis.com"),
        }
    }
}

impl UpstreamConfig {
    /// Returns the base URL of a provider.
    #[must_use]
    pub fn of(&self, provider: Provider) -> &Url {
        match provider {
            Provider::Anthropic => &self.anthropic,
            Provider::OpenAi => &self.openai,
            Provider::Gemini => &self.gemini,
        }
    }

    /// Returns the base URL of a provider, to be changed.
    pub fn of_mut(&mut self, provider: Provider) -> &mut Url {
        match provider {
            Provider::Anthropic => &mut self.anthropic,
            Provider::OpenAi => &mut self.openai,
            Provider::Gemini => &mut self.gemini,
        }
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`] if it can't be read, or is no valid configuration.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let invalid = |problem: String| ConfigError::Invalid { path: path.to_owned(), problem };
        let config: Self = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        config.problem().map_or(Ok(config), |problem| Err(invalid(problem)))
    }

    /// Returns what is wrong with these settings together, and a remedy.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let llm = &self.llm;
        if !llm.listen.ip().is_loopback() && !llm.public_url.starts_with("https://") {
            return Some(
                "llm.listen is no address of this machine alone: set llm.public_url to the https URL of what ends TLS \
                 before the proxy, because requests carry keys"
                    .to_owned(),
            );
        }
        if let Some(problem) = llm.ext_proc_problem() {
            return Some(problem.to_owned());
        }
        if !llm.public_url.is_empty() && Url::parse(&llm.public_url).is_err() {
            return Some("llm.public_url is no URL".to_owned());
        }
        let at_least_one = [
            llm.max_connections,
            llm.max_toolsets,
            llm.max_requests,
            llm.request_memory,
            llm.toolset_memory,
        ];
        if at_least_one.contains(&0) {
            let keys = "llm.max_connections, max_toolsets, max_requests, request_memory and toolset_memory";
            return Some(format!("{keys} must be at least 1"));
        }
        if [llm.head_timeout, llm.body_timeout, llm.write_timeout].iter().any(Duration::is_zero) {
            let keys = "llm.head_timeout, body_timeout and write_timeout";
            return Some(format!("{keys} must not be 0"));
        }
        if llm.toolset_lease < Duration::from_secs(1) {
            return Some("llm.toolset_lease must be at least 1s".to_owned());
        }
        if llm.tenant.is_empty() {
            return Some("llm.tenant must not be empty".to_owned());
        }
        if let Some(problem) = llm.prices.problem() {
            return Some(problem);
        }
        Provider::ALL.into_iter().find_map(|provider| {
            let url = self.upstream.of(provider);
            problem_of(url).map(|problem| format!("upstream.{} {problem}", provider.name()))
        })
    }
}

/// Returns what is wrong with a base URL.
fn problem_of(url: &Url) -> Option<&'static str> {
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Some("must be an http or https URL");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Some("must have no password in it: keys come from the host");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Some("must end with its path");
    }
    None
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
        config.problem().map_or(Ok(config), Err)
    }

    #[test]
    fn an_empty_file_has_the_defaults() {
        let config = parsed("").expect("valid");
        assert_eq!(config, Config::default());
        assert_eq!(config.upstream.of(Provider::OpenAi).as_str(), "https://api.openai.com/");
    }

    #[test]
    fn keys_are_read() {
        let config = parsed(
            "[llm]\nstrategy = \"cut\"\ngate = \"enforce\"\ndefer_above = \"1KiB\"\ndecision_timeout = \"1s\"\n\
             [upstream]\nopenai = \"http://127.0.0.1:8000/base\"\n",
        )
        .expect("valid");
        assert_eq!(config.llm.strategy, StrategyConfig::Cut);
        assert_eq!(config.llm.gate, GateConfig::Enforce);
        assert_eq!(config.llm.defer_above, 1 << 10);
        assert_eq!(config.llm.decision_timeout, Duration::from_secs(1));
        assert_eq!(config.llm.first_decision_limit(), Duration::from_millis(150));
        let patient = parsed("[llm]\nfirst_decision_timeout = \"2s\"").expect("valid");
        assert_eq!(patient.llm.first_decision_limit(), Duration::from_secs(2));
        assert_eq!(config.upstream.openai.path(), "/base");
    }

    #[test]
    fn the_closest_name_has_the_price() {
        let config = parsed(
            "[llm.prices]\n\"*\" = { input = 1, output = 1 }\n\"claude-*\" = { input = 2, output = 2 }\n\
             \"claude-opus-4-8*\" = { input = 5.0, output = 25.0, cached = 0.25 }\nclaude-opus-4-8 = { input = 4, output = 4 }\n",
        )
        .expect("valid");
        let input = |model: &str| config.llm.prices.of(model).map(|price| price.input);
        for (model, price) in [
            ("claude-opus-4-8", 4.0),
            ("Claude-Opus-4-8-20260101", 5.0),
            ("claude-haiku-9", 2.0),
            ("x-claude-opus-4-8", 1.0),
        ] {
            assert_eq!(input(model), Some(price), "{model}");
        }
        let named = parsed("[llm.prices]\ngpt-5 = { input = 1, output = 10 }").expect("valid");
        assert_eq!(named.llm.prices.of("gpt-5-mini"), None, "a part of a name is no name");
    }

    #[test]
    fn envoy_may_be_elsewhere_where_each_end_shows_a_certificate() {
        let config = parsed(
            "[llm]\next_proc_listen = \"0.0.0.0:7091\"\n[llm.ext_proc_tls]\ncert_file = \"c\"\nkey_file = \"k\"\n\
             client_ca_file = \"a\"\n",
        )
        .expect("valid");
        assert!(config.llm.ext_proc_tls.is_mutual());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, told) in [
            ("[llm]\nlisten = \"0.0.0.0:1\"", "llm.public_url"),
            ("[llm]\nlisten = \"0.0.0.0:1\"\npublic_url = \"http://llm.example\"", "https URL"),
            ("[llm]\next_proc_listen = \"0.0.0.0:1\"", "ext_proc_listen"),
            (
                "[llm]\next_proc_listen = \"0.0.0.0:1\"\next_proc_tls = { cert_file = \"c\", key_file = \"k\" }",
                "client_ca_file",
            ),
            (
                "[llm]\next_proc_listen = \"127.0.0.1:1\"\next_proc_tls = { cert_file = \"c\" }",
                "need each other",
            ),
            (
                "[llm]\next_proc_listen = \"127.0.0.1:1\"\next_proc_tls = { client_ca_file = \"c\" }",
                "needs `cert_file`",
            ),
            (
                "[llm]\next_proc_tls = { cert_file = \"c\", key_file = \"k\" }",
                "needs llm.ext_proc_listen",
            ),
            ("[llm]\nmax_connections = 0", "at least 1"),
            ("[llm]\nrequest_memory = \"0\"", "at least 1"),
            ("[llm]\ntoolset_memory = \"0\"", "toolset_memory"),
            ("[llm]\ntoolset_lease = \"500ms\"", "toolset_lease must be at least 1s"),
            ("[llm]\nhead_timeout = \"0s\"", "head_timeout"),
            ("[llm]\nwrite_timeout = \"0s\"", "must not be 0"),
            ("[llm]\ntenant = \"\"", "llm.tenant"),
            (
                "[llm.prices]\nm = { input = 0, output = 1 }",
                "llm.prices.\"m\".input is 0: it must be",
            ),
            ("[llm.prices]\nm = { input = 1, output = -2.5 }", "llm.prices.\"m\".output is -2.5"),
            ("[llm.prices]\nm = { input = nan, output = 1 }", "llm.prices.\"m\".input is NaN"),
            ("[llm.prices]\nm = { input = inf, output = 1 }", "llm.prices.\"m\".input is inf"),
            ("[llm.prices]\nm = { input = 1, output = 1e7 }", "at most 1000000, in US dollars"),
            (
                "[llm.prices]\n\"a-*\" = { input = 1, output = 5, written = 0 }",
                "llm.prices.\"a-*\".written is 0",
            ),
            (
                "[llm.prices]\nm = { input = 1, output = 5, cached = 2 }",
                "llm.prices.\"m\".cached is more than input",
            ),
            ("[llm.prices]\n\" \" = { input = 1, output = 5 }", "without a model's name"),
            ("[llm.prices]\nm = { input = 1 }", "missing field `output`"),
            ("[llm.prices]\nm = { input = \"1\", output = 1 }", "expected f64"),
            ("[llm.prices]\nm = { input = 1, output = 1, batch = 1 }", "batch"),
            ("[llm]\ngate = \"strict\"", "strict"),
            ("[llm]\nnothing = 1", "nothing"),
            ("[upstream]\nopenai = \"ftp://x\"", "upstream.openai must be"),
            ("[upstream]\ngemini = \"https://a:b@x\"", "password"),
            ("[upstream]\nanthropic = \"https://x/?a=b\"", "end with its path"),
        ] {
            let problem = parsed(text).expect_err(text);
            assert!(problem.contains(told), "{problem}");
        }
    }
}
