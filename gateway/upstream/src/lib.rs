//! Connections to MCP servers: processes that speak MCP on their standard streams, and servers behind a URL, of the
//! revision 2026-07-28 (`server/discover`) and of those before it (`initialize`).
//!
//! [`Upstream`] says where a server is, [`Connection`] speaks with it. Definitions of tools are kept as the server wrote
//! them, byte for byte, so that a registration does not depend on which fields a library knows.

mod connection;
mod error;
mod http;
mod lists;
mod process;
mod target;

pub use connection::{Connection, ServerIdentity};
pub use error::UpstreamError;
pub use target::{Endpoint, Launch, Upstream};
