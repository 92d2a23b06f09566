//! The gRPC face: the only module that knows tonic and prost. Messages are parsed into domain values
//! here, limits are checked, errors become statuses in one place.

mod catalog_service;
mod edge;
mod fields;
mod listing;
mod precondition;
mod register;
mod render;
mod render_catalog;
mod request;
mod router_service;
mod server;
mod status;
mod unserved;
mod usage_service;

pub use server::{ApiConfig, serve};
