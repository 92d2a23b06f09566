//! gRPC's form of what this crate refuses: status codes, details and trailers. Nothing else here knows them.

mod refused;
mod undecoded;

pub(crate) use refused::{answer, answer_in_place_of, body_of, is_native, trailers};
pub use undecoded::{ExplainUndecoded, Explained};
