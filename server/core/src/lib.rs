//! Domain without a runtime: identities, errors, conditions, policies, schemas and the reading of texts.

pub mod condition;
pub mod deferral;
pub mod error;
mod glob;
pub mod identity;
pub mod live;
pub mod mcp_server;
pub mod method;
pub mod metrics;
pub mod nearest;
pub mod policy;
pub mod precondition;
pub mod quantized_embedding;
pub mod role;
pub mod safety;
pub mod schema;
pub mod state;
pub mod tokens;
