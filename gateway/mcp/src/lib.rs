//! The MCP gateway: an MCP server that stands for many. A host sees a few tools that search and call; the tools behind
//! them are found by the routing plane, and each call is judged by its Gate.
//!
//! [`Config`] is the gateway's file, [`Gateway`] the servers behind it, [`serve`] and [`serve_stdio`] its faces.

mod arguments;
mod asking;
mod calling;
mod config;
mod cutting;
mod definitions;
mod discovering;
mod face;
mod following;
mod gateway;
mod gathered;
mod history;
mod http;
mod passing;
mod reading;
mod registering;
mod relayed;
mod results;
mod units;
mod whole;

pub use config::{Auth, Config, ConfigError, OAuthConfig, ServerConfig, ShownNames};
pub use gateway::{Gateway, Overview, Seen, ServerOverview};
pub use http::{GatewayError, serve, serve_stdio};
