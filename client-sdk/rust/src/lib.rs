//! Rust client of Toolgate: one cheap handle with a method per RPC that the service answers. It sets a
//! deadline on every call, retries what may be retried, and turns failures into typed errors. Beside it,
//! the client of an encoder worker, which servers use. No policy and no caching live here.
//!
//! For a conversation, [`history`] reads from its messages what was discovered and called, and takes out what
//! can't be sent; [`render`] writes tools in the shape of a provider's API; [`layout`] and [`announce`] keep
//! prompt caches. None of them calls anything. [`SEARCH_TOOL`] is a search to define for the model, whose calls
//! [`Client::answer_search`] runs.
//!
//! ```no_run
//! use toolgate_client::{Client, ClientOptions, v1};
//!
//! # async fn example() -> Result<(), toolgate_client::Error> {
//! let client = Client::connect("http://127.0.0.1:7070", ClientOptions::default()).await?;
//! let answer = client.route(v1::RouteRequest {
//!     intents: vec![v1::Intent { text: "what changed in the repo today?".into(), weight: None }],
//!     ..Default::default()
//! }).await?;
//! for tool in answer.active_tools {
//!     println!("{} {:.2}", tool.model_name, tool.overlap);
//! }
//! # Ok(())
//! # }
//! ```

mod advice;
mod announcing;
mod call;
mod catalog;
mod client;
mod encoder;
mod error;
mod health;
pub mod history;
pub mod layout;
mod memory;
mod offering;
mod options;
mod policy;
pub mod render;
mod router;
mod usage;

pub use announcing::{Announcement, announce};
pub use client::Client;
pub use encoder::{EncoderClient, WorkerDescription, WorkerEmbedding};
pub use error::{CallError, Error, FieldViolation};
pub use health::Health;
pub use offering::{SEARCH_TOOL, SEARCH_TOOL_NAME, SearchAnswer};
pub use options::{ClientOptions, EncoderOptions, RetryOptions};
pub use prost_types as well_known;
pub use tonic::Code;
pub use toolgate_proto::v1;
pub use toolgate_proto::v1::ErrorReason;
