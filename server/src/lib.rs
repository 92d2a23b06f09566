//! What the `toolgate` program runs: its command line, and how the service starts, reloads and stops.

pub mod admin;
pub mod cli;
pub mod serve;
pub mod workers;
