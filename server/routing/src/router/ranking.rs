//! Ranking: how near each allowed tool is to the intents, and which are near enough.

pub mod background;
pub mod blend;
pub mod cut;
pub mod fit;
pub(in crate::router) mod fuse;
pub mod learned;
pub mod level;
pub(in crate::router) mod names;
pub(in crate::router) mod parts;
pub mod pool;
pub mod rank;
pub mod recall;
pub mod recent;
mod reserved;
