//! Answers: what is told of a decision, from its token cost to its event.

pub mod account;
pub mod answer_size;
pub mod conversation;
pub mod event;
pub mod explain;
pub mod listing;
pub mod pending;
pub mod pool;
