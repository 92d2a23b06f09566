//! Who may call, how many calls there may be, and the audit trail.

pub mod admission;
pub mod audit;
pub mod auth;
