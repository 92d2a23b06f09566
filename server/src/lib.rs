//! The routing plane as a library: everything that the `toolgate` binary runs. Arrows between the
//! modules point one way (ARCHITECTURE.md, "Inside the server"); tonic and prost stay in `api`.

pub mod admin;
pub mod api;
pub mod calibrate;
pub mod catalog;
pub mod cli;
pub mod condition;
pub mod config;
pub mod deferral;
pub mod encoder;
pub mod error;
pub mod eval;
pub mod gate;
pub mod identity;
pub mod imprint;
pub mod lint;
pub mod logging;
pub mod memory;
pub mod nearest;
pub mod packs;
pub mod plane;
pub mod policy;
pub mod precondition;
pub mod router;
pub mod schema;
pub mod serve;
pub mod shard;
pub mod state;
pub mod store;
pub mod summarize;
pub mod tax;
pub mod telemetry;
pub mod tokens;
pub mod usage;
pub mod workers;
