//! Generation of packs by a language model: the prompt, the checks on answers, and the YAML output. Texts of tools are
//! untrusted data. They reach a pack only as a request that passes the checks.

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
