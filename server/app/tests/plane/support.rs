//! Shared parts of these tests: a plane on a real store, an encoder that can be made to fail, and short forms of
//! requests.

pub mod ask;
pub mod catalog;
pub mod encoder;
pub mod world;

pub use ask::{ask, call, found, granted, look_for, model_names, options, reached, shown};
pub use catalog::{ToolText, server, tool};
pub use encoder::Mode;
pub use world::{Setup, World, tenant};
