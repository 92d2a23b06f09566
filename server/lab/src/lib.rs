//! The laboratory: evaluation, calibration, packs and the linter. Nothing that serves calls imports it.

pub mod calibrate;
pub mod eval;
pub mod language_model;
pub mod lint;
pub mod pack_build;
pub mod pack_trial;
pub mod summarize;
pub mod tax;
