//! Safety of texts that MCP servers write: how they are read, what is found in them, and what that means for a tool.
//! Pure: no store, no encoder, no clock. Nothing here acts on what the texts say.

pub mod characters;
pub mod decision;
pub mod decode;
pub mod finding;
pub mod identifiers;
pub mod imitation;
pub mod likeness;
pub mod marks;
pub mod pieces;
pub mod reading;
pub mod rename;
pub mod rule_file;
pub mod rules;
pub mod scan;
pub mod survey;

pub use decision::{QuarantineReason, Tier};
pub use finding::{Finding, Severity};
pub use rules::Rules;
pub use scan::{Beside, Scanner};
