//! What the tests of this folder share: a plane on a real store, an encoder that can be told to fail,
//! and short spellings of what the plane is asked.

pub mod ask;
pub mod catalog;
pub mod encoder;
pub mod world;

pub use ask::{ask, call, found, granted, look_for, model_names, options, reached, shown};
pub use catalog::{ToolText, server, tool};
pub use encoder::Mode;
pub use world::{Setup, World, tenant};
