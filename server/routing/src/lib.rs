//! Core of the server: catalogs, utterance packs, embedding, shards, Gate, Route, feedback and usage.

pub mod catalog;
pub mod encoder;
pub mod gate;
pub mod memory;
pub mod packs;
pub mod router;
pub mod shard;
#[cfg(test)]
mod test_catalog;
pub mod usage;
