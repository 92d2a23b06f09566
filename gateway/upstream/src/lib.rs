//! Connections to MCP servers: processes that speak MCP on their standard streams, and servers behind a URL over Streamable
//! HTTP or the older HTTP+SSE, of the revision 2026-07-28 (`server/discover`) and of those before it (`initialize`).
//!
//! [`Upstream`] says where a server is, [`Connection`] speaks with it, [`Fleet`] keeps many of them running. Definitions of
//! tools and the results of requests are kept as the server wrote them, byte for byte, so that nothing depends on which fields a
//! library knows.

mod connection;
mod credentials;
mod eras;
mod error;
mod events;
mod fleet;
mod http;
mod lines;
mod listening;
mod opened;
mod parameters;
mod private_files;
mod probing;
mod process;
mod processes;
mod question;
mod running_tasks;
mod sandbox;
mod sse;
mod tap;
mod target;

pub use connection::{
    Change, Completion, Connection, ConnectionOwner, ListChange, ServerIdentity, ServerMessage,
};
pub use credentials::{
    Authorization, CredentialError, CredentialStore, KeyId, KeyUse, Login, LoginClient,
    OAuthClient, Owner, Requester, Sealing, Secret, is_safe, log_out,
};
pub use eras::Eras;
pub use error::UpstreamError;
pub use fleet::{
    Entry, Fleet, KeptList, Leaving, Limits, Listing, Pauses, PerUser, Request, RequestError, Sent,
    ServerState, ServerStatus, Start, Watching,
};
pub use http::plain_client;
pub use parameters::HeaderParameters;
pub use private_files::replace_private;
pub use processes::{Processes, StartedProcess, Supervisor, supervise};
pub use question::{Asker, NoAnswer, Question};
pub use sandbox::{Sandbox, SandboxError, SandboxHelper, run_sandboxed};
pub use target::{Endpoint, Launch, Upstream};
