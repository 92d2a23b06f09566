//! Summaries rewritten by a language model behind an OpenAI-compatible endpoint: what it is asked, what of its
//! answers is taken, and whether tools are found better by them.

pub mod answer;
pub mod api_key;
pub mod call_error;
pub mod crew;
pub mod endpoint;
pub mod measure;
pub mod patience;
pub mod prompt;
#[cfg(test)]
mod tests;

pub use api_key::ApiKey;
pub use call_error::CallError;
pub use crew::{Crew, Rewritten};
pub use endpoint::{Endpoint, EndpointAddress};
pub use measure::{Tried, measure};
pub use patience::Patience;
