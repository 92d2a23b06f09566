//! The LLM proxy: a base URL in the place of a provider's. Every request goes on to the provider that the operator named.
//!
//! Keys of hosts pass through; they are neither kept nor logged. Nothing here knows the routing plane's inside: it is
//! called by the client library.

mod answer;
mod chat;
mod config;
mod exchange;
mod gate;
mod guard;
mod headers;
mod held;
mod metrics;
mod opener;
mod provider;
mod proxy;
mod raw;
mod refusals;
mod remembered;
mod savings;
mod serving;
mod sse;
mod stream;
mod tenant;
mod toolset;
mod turn;
mod units;
mod upstream;

pub use config::{Config, ConfigError, GateConfig, LlmConfig, StrategyConfig, UpstreamConfig};
pub use provider::Provider;
pub use proxy::{Plane, ProxyError, serve};
pub use savings::{ModelTotals, Savings, Totals, Usage};
pub use tenant::{Authentication, Caller, PresentedKey, Refusal};
pub use upstream::UpstreamError;
