//! Intent packs: example requests for the tools of popular MCP servers. A tool with such requests is found by them too.
//! Its row in the dense index is the mean of its summary and the requests, kinds of requests are held beside it, and the
//! word index holds their words.

mod attached;
pub mod document;
mod everyday;
mod kinds;
mod lines;
pub mod lint;
mod means;
mod registry;
mod shipped;

pub use attached::{Attached, Mixed};
pub use document::{Mistake, Pack};
pub use lines::Lines;
pub use means::MEANS_FILE;
pub use registry::Packs;
