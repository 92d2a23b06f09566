//! Path from intents to an active set: embed, gate, search, choose, promote, account. It does not depend on the wire
//! format.

pub mod account;
pub mod active_set;
pub mod allow;
pub mod answer_size;
mod aside;
pub mod background;
pub mod blend;
pub mod caps;
pub mod choose;
pub mod continuity;
pub mod cut;
mod decision;
pub mod deferring;
pub mod event;
pub mod eviction;
pub mod explain;
pub mod fit;
mod fuse;
pub mod intent;
mod judging;
pub mod learned;
pub mod left_out;
pub mod level;
pub mod listing;
pub mod lookups;
mod names;
mod parts;
pub mod pending;
pub mod pool;
pub mod query;
pub mod rank;
pub mod recall;
pub mod recent;
pub mod route;
pub mod search;
mod stages;
mod warmer;

pub use route::Router;
