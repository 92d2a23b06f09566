//! Gate: decides which tools an agent's state allows, and if a call may run. The decisions are deterministic. Ranking
//! and storage are in other modules.

pub mod calls;
pub mod envelope;
pub mod handle;
pub mod key;
pub mod names;
pub mod schemas;
pub mod verdict;
pub mod visibility;
