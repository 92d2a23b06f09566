//! Authentication, admission of calls, and the audit trail.

pub mod admission;
pub mod audit;
pub mod auth;
