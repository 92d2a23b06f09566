//! The routing plane as a library: everything that the `toolgate` binary runs. Arrows between the
//! modules point one way (ARCHITECTURE.md, "Inside the server"); tonic and prost stay in `api`.

pub mod config;
pub mod error;
pub mod identity;
pub mod precondition;
pub mod state;
pub mod store;
