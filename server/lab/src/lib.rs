//! Offline tools: evaluation, calibration, packs and the linter. No code that serves requests depends on this crate.

pub mod calibrate;
pub mod conversations;
pub mod eval;
pub mod language_model;
pub mod lint;
pub mod pack_build;
pub mod pack_trial;
pub mod prices;
mod random;
pub mod summarize;
pub mod tax;
