//! The library behind the `toolgate` program: the command line, and the start, reload and stop of the service.

pub mod admin;
pub mod cli;
pub mod serve;
pub mod workers;
