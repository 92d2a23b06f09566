//! Path from intents to an active set: embed, gate, search, choose, promote, account. It does not depend on the wire
//! format.

pub mod allow;
pub mod answers;
mod aside;
pub mod context;
pub mod courtesy;
pub mod intent;
mod outage;
pub mod query;
pub mod ranking;
pub mod route;
pub mod schemas;
pub mod search;
pub mod selection;
mod stages;
pub mod summary_pool;
pub mod tool_attention;

pub use route::Router;
