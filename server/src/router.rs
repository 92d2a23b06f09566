//! From intents to an active set: embed, gate, search, choose, promote, account. Knows nothing of the
//! wire.

pub mod account;
pub mod allow;
pub mod caps;
pub mod choose;
pub mod event;
pub mod explain;
pub mod lookups;
pub mod pool;
pub mod query;
pub mod rank;
pub mod route;

pub use route::Router;
