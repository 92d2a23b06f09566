//! Selection: the active set of a turn, its places and its bounds, from the ranked tools.

pub mod active_set;
pub mod caps;
pub mod choose;
pub mod continuity;
pub(in crate::router) mod decision;
pub mod deferring;
pub mod eviction;
pub mod left_out;
