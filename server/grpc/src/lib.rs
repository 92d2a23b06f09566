//! The gRPC face, and the web's ways to it: the only module that knows tonic and prost. Messages are parsed into domain values
//! here, limits are checked, errors become statuses in one place.

mod approve;
mod bounded;
mod catalog_service;
mod edge;
mod fields;
mod guard;
mod listing;
mod memory_service;
mod policy_service;
mod precondition;
mod register;
mod render;
mod render_catalog;
mod request;
mod router_service;
mod server;
mod state;
mod status;
mod tenanted;
mod unserved;
mod usage_service;
mod watch;
mod web;

pub use server::{ApiConfig, serve};
