//! Summaries rewritten by a language model: the prompt, the checks on answers, and a comparison of how well the old and
//! the new summaries find tools.

pub mod answer;
pub mod measure;
pub mod prompt;
pub mod rewrite;
#[cfg(test)]
mod tests;

pub use measure::{Tried, measure};
pub use rewrite::{Rewritten, rewrite};
