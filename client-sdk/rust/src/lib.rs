//! Rust client of Toolgate: one cheap handle with a method for each RPC. It sets a deadline on every call, retries the
//! calls that may be retried, and returns typed errors. It enforces no policy and caches nothing.
//!
//! Several modules help with a conversation. [`history`] reads the discovered and called tools from its messages, and
//! removes what can't be sent. [`calls`] reads the model's calls. [`rendered_tools`] reads tools that the service
//! rendered for a provider's API, and [`model_request`] the whole request to a model, by a strategy. [`layout`] and [`announce`] keep prompt caches valid. [`tool_error`] and similar
//! functions write texts for the model. None of these makes a call. [`SEARCH_TOOL`] is a search to define for the model; [`Client::answer_search`]
//! runs its calls.
//!
//! The messages are the generated protobuf types in [`v1`]. [`precondition`], [`registration`] and [`intent`] build
//! some of them more easily.
//!
#![doc = include_str!("../README.md")]

mod advice;
mod announcing;
mod answers;
mod call;
pub mod calls;
mod catalog;
mod client;
mod credentials;
mod error;
mod health;
pub mod history;
mod items;
pub mod layout;
mod memory;
mod offering;
mod options;
mod policy;
pub mod precondition;
mod rendering;
mod requests;
mod router;
mod target;
mod throttle;
mod tls;
mod usage;
mod watch;
mod wire;

pub use announcing::{Announcement, announce};
pub use answers::{apply_pool, tool_error, tool_references, tool_result};
pub use client::{Client, DEFAULT_TARGET};
pub use credentials::{Credentials, TokenResult};
pub use error::{CallError, Error, FieldViolation};
pub use health::Health;
pub use items::ItemStream;
pub use offering::{SEARCH_TOOL, SEARCH_TOOL_NAME, SearchAnswer};
pub use options::{ClientOptions, RetryOptions, TraceContext};
pub use prost_types as well_known;
pub use rendering::{ModelRequest, RenderedToolsError, model_request, rendered_tools};
pub use requests::{ToolsList, intent, registration};
pub use tls::{ClientIdentity, TlsOptions};
pub use tonic::Code;
pub use toolgate_llm::render::{UNSUPPORTED_MODELS, can_defer};
pub use toolgate_proto::v1;
pub use toolgate_proto::v1::ErrorReason;

/// Version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
