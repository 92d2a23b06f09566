//! Search index of one tenant, held in memory. It works with slots (row numbers), vectors, words and bitmaps. The
//! layers above decide how slots are filled and who may see them.

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
pub use words::{Reach, WordHit, WordIndex};
