//! MCP servers in the configuration files of their hosts: read from them, and a gateway written into them.

mod address;
mod carried;
mod found;
mod host;
mod json;
mod mcp_json;
mod plain;
mod reference;
mod toml_text;

pub use found::{
    AskedValue, FoundServer, GatewayEntry, HostFile, Place, ReadError, Surroundings, entries,
    files, read,
};
pub use host::{Host, Scope, Target};
pub use mcp_json::McpJson;

/// Name of the gateway's entry. Hosts put it before each tool's name, so it is short.
pub const ENTRY: &str = "tg";

/// Error of an edit of a host's file. The file is as it was.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is neither JSON nor TOML. Holds the parser's words.
    #[error("it can't be edited in place ({0})")]
    Unreadable(String),
    /// The place of the entry holds something else.
    #[error("`{0}` is written in a way that can't be edited in place")]
    Shape(String),
}
