//! The LLM proxy: a base URL in the place of a provider's. Every request goes on to the provider that the operator named.
//!
//! Keys of hosts pass through; they are neither kept nor logged. Nothing here knows the routing plane's inside: it is
//! called by the client library.

mod answer;
mod bounded;
mod busy;
mod chat;
mod config;
mod definitions;
mod enclosed;
mod exchange;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod gate;
mod gemini;
mod guard;
mod headers;
mod held;
mod kept;
mod lease;
mod metrics;
mod money;
mod opener;
mod provider;
mod proxy;
mod raw;
mod reasons;
mod refusals;
mod remembered;
mod responses;
mod savings;
mod serving;
mod sse;
mod stored;
mod stream;
mod switch;
mod tenant;
mod thoughts;
mod toolset;
mod turn;
mod undeferred;
mod units;
mod upload;
mod upstream;
mod way;

pub use config::{
    Config, ConfigError, ExtProcTlsConfig, GateConfig, LlmConfig, PriceConfig, PricesConfig,
    StrategyConfig, UpstreamConfig,
};
pub use money::{Cost, Usd};
pub use provider::Provider;
pub use proxy::{CarriedChat, ChatPath, Plane, Proxy, ProxyError};
pub use reasons::meaning_of;
pub use savings::{ModelTotals, Savings, Totals, Usage};
pub use serving::{Pace, Peer, serve_routes};
pub use tenant::{Authentication, Caller, PresentedKey, Refusal};
pub use upstream::UpstreamError;
pub use way::{Answer, Carried, Carrier, Payload, Piece, Pieces};
