//! How well the tools of a catalog are found by the requests of their packs, by the router's own ranking. A request is
//! never asked while it stands in its tool's row and words itself: that would measure nothing.

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
