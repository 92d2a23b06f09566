//! gRPC API, and access to it from the web. Only this crate of the server uses tonic and prost. It parses messages into
//! domain values, checks limits, and maps errors to statuses in one place.

mod answer;
mod approve;
mod bounded;
mod call_tool;
mod catalog_service;
mod conversation;
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
mod strategy;
mod tenanted;
mod tool_format;
mod unserved;
mod usage_service;
mod watch;
mod web;

pub use server::{ApiConfig, serve};
