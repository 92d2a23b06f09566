//! gRPC API of the worker: the only module of this crate that depends on tonic and the messages. Limits are checked
//! here, and errors become statuses in one place.

mod call_error;
mod callers;
mod embeddings;
mod health;
mod request;
mod server;
mod service;
mod status;

pub(super) use server::serve;
pub(super) use service::Face;
