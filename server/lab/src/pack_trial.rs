//! Trial of packs: the ranks that their requests give to their tools in the router's own ranking. A request is never
//! tested while it is part of its tool's index, because that would measure nothing.

mod bed;
mod by_server;
mod hits;
mod known;
mod left_out;
mod measure;
mod misplaced;
mod requests;
#[cfg(test)]
mod tests;

pub use bed::{Bed, Placed};
pub use by_server::Query;
pub use hits::{CUTS, Group};
pub use left_out::left_one_out;
pub use measure::{Folds, Measured, measure};
pub use misplaced::{Limits, Misplaced, misplaced};
pub use requests::{Request, Requests};
