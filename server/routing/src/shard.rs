//! One tenant's index: what is searched in memory. It deals in slots (row numbers), vectors, words
//! and bitmaps; how a slot came to be, and who may see it, is for the layers above.

pub mod dense;
mod fields;
pub mod freshness;
pub mod names;
pub mod noise;
pub mod pending;
pub mod quarantine;
pub mod requirements;
pub mod ruled;
pub mod shards;
pub mod snapshot;
pub mod tool;
pub mod vectors;
pub mod words;

pub use dense::Dense;
pub use vectors::{EXACT_SELECTIVITY, GRAPH_ABOVE, Hit, IndexError, IndexOptions, VectorIndex};
pub use words::{WordHit, WordIndex};
