//! The decision seam: which tools an agent's state allows, and whether a call may run. Deterministic;
//! ranking and storage live elsewhere.

pub mod calls;
pub mod envelope;
pub mod handle;
pub mod key;
pub mod names;
pub mod schemas;
pub mod standing;
pub mod verdict;
