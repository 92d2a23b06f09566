//! The LLM proxy: a base URL in the place of a provider's. Every request goes on to the provider that the operator named.
//!
//! Keys of hosts pass through; they are neither kept nor logged. Nothing here knows the routing plane's inside: it is
//! called by the client library.

mod answer;
mod chat;
mod config;
mod definitions;
mod exchange;
mod gemini;
mod guard;
mod headers;
mod kept;
mod opener;
mod provider;
mod proxy;
mod raw;
mod remembered;
mod responses;
mod savings;
mod sse;
mod stream;
mod toolset;
mod turn;
mod units;
mod upstream;

pub use config::{Config, ConfigError, LlmConfig, StrategyConfig, UpstreamConfig};
pub use provider::Provider;
pub use proxy::{ProxyError, serve};
pub use savings::{Savings, Totals, Usage};
pub use upstream::UpstreamError;
