//! Packs written by a language model: what it is asked for a tool, what of its answers is taken, and how a pack is
//! written down. A tool's texts are data: nothing that they say reaches a pack but as a request that passes the checks.

mod ask;
mod claims;
mod draft;
mod prompt;
mod siblings;
#[cfg(test)]
mod tests;
mod wanted;
mod yaml;

pub use ask::{Asking, Written, write};
pub use claims::Claims;
pub use siblings::Siblings;
pub use wanted::Wanted;
pub use yaml::{Voices, to_yaml};
