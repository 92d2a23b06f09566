//! Client of a language model behind an OpenAI-compatible endpoint: calls, concurrency, retries, and checks for hidden
//! characters in its text. The modules that ask decide on the prompts and on the answers that they accept.

pub mod api_key;
pub mod call_error;
pub mod endpoint;
pub mod plain;
pub mod retry;
#[cfg(test)]
pub(crate) mod scripted;
pub mod worker_pool;

pub use api_key::ApiKey;
pub use call_error::CallError;
pub use endpoint::{Endpoint, EndpointAddress};
pub use retry::RetryPolicy;
pub use worker_pool::{Asker, WorkerPool};
