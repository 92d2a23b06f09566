//! The MCP gateway: an MCP server that stands for many. A host sees a few tools that search and call; the tools behind
//! them are found by the routing plane, and each call is judged by its Gate.
//!
//! [`Config`] is the gateway's file, [`Gateway`] the servers behind it, [`serve`] and [`serve_stdio`] its faces.

mod arguments;
mod asking;
mod audit;
mod authentication;
mod called;
mod caller;
mod calling;
mod changing;
mod checking;
mod config;
mod connecting;
mod cutting;
mod definitions;
mod discovering;
mod elicited;
mod face;
mod followed;
mod following;
mod gateway;
mod gathered;
mod hearing;
mod history;
mod host;
mod http;
mod keeping;
mod listings;
mod lists;
mod live;
mod looks;
mod metrics;
mod mirrored;
mod parked;
mod passing;
mod placed;
mod raw;
mod reading;
mod registering;
mod registrations;
mod relayed;
mod repeated;
mod replicas;
mod results;
mod revisions;
mod sealed;
mod sessions;
mod suspects;
mod tasks;
mod units;
mod vetting;
mod watching;
mod whole;

pub use authentication::{
    AcceptedConnection, Authentication, HostPeer, PresentedCredentials, Refusal,
};
pub use caller::Caller;
pub use checking::{Mistake, mistakes};
pub use config::{
    Auth, AuthConfig, AuthMethod, Config, ConfigError, EntryFile, MissingValue, OAuthConfig,
    ServerConfig, ShownNames, TlsConfig, line_of,
};
pub use gateway::{Gateway, GatewayChange, LeavingOverview, Overview, Seen, ServerOverview};
pub use http::{GatewayError, serve, serve_stdio};
pub use registrations::Registrations;
pub use replicas::Replica;
pub use sealed::{SealingKeyError, SealingKeys};
pub use sessions::EndedSessions;
pub use watching::WatchedFile;
