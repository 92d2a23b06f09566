//! A language model behind an OpenAI-compatible endpoint: how it is asked, for how much at once and how patiently,
//! and what no text of its may hold. What is asked, and what of the answers is taken, is the askers' business.

pub mod api_key;
pub mod call_error;
pub mod crew;
pub mod endpoint;
pub mod patience;
pub mod plain;
#[cfg(test)]
pub(crate) mod scripted;

pub use api_key::ApiKey;
pub use call_error::CallError;
pub use crew::{Asker, Crew};
pub use endpoint::{Endpoint, EndpointAddress};
pub use patience::Patience;
