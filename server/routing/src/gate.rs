//! Gate: decides which tools an agent's state allows, and if a call may run. The decisions are deterministic. Ranking
//! and storage are in other modules; nothing here imports `router`.

pub mod calls;
pub mod envelope;
mod event;
pub mod handle;
mod judging;
pub mod key;
pub mod names;
mod request;
pub mod schemas;
mod shown;
pub mod verdict;
pub mod visibility;
pub mod warmer;

pub use request::{Gate, GateQuery, Verdicts};
pub use shown::Evidence;
