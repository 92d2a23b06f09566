//! Rust client of Toolgate: one cheap handle with a method per RPC that the service answers. It sets a
//! deadline on every call, retries what may be retried, and turns failures into typed errors. Beside it,
//! the client of an encoder worker, which servers use. No policy and no caching live here.
//!
//! For a conversation, [`history`] reads from its messages what was discovered and called, and takes out what
//! can't be sent; [`calls`] reads the model's calls; [`render`] writes tools in the shape of a provider's API;
//! [`layout`] and [`announce`] keep prompt caches; [`tool_error`] and its like are for the model. None of them
//! calls anything. [`SEARCH_TOOL`] is a search to define for the model, whose calls [`Client::answer_search`]
//! runs.
//!
//! The messages are those of the wire, in [`v1`]; [`precondition`], [`registration`] and [`intent`] make some of
//! them easier to write.
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
mod encoder;
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
pub mod render;
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
pub use encoder::{EmbedOptions, EncoderClient, TraceContext, WorkerDescription, WorkerEmbedding};
pub use error::{CallError, Error, FieldViolation};
pub use health::Health;
pub use items::ItemStream;
pub use offering::{SEARCH_TOOL, SEARCH_TOOL_NAME, SearchAnswer};
pub use options::{ClientOptions, EncoderOptions, RetryOptions};
pub use prost_types as well_known;
pub use requests::{ToolsList, intent, registration};
pub use tls::{ClientIdentity, TlsOptions};
pub use tonic::Code;
pub use toolgate_proto::v1;
pub use toolgate_proto::v1::ErrorReason;

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
