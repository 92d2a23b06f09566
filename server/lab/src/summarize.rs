//! Summaries rewritten by a language model: what it is asked, what of its answers is taken, and whether tools are
//! found better by them.

pub mod answer;
pub mod measure;
pub mod prompt;
pub mod rewrite;
#[cfg(test)]
mod tests;

pub use measure::{Tried, measure};
pub use rewrite::{Rewritten, rewrite};
