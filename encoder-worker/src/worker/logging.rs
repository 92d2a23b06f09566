//! Structured logs on standard error. Texts are no part of any event.

use std::io;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// The form of log records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The least important log records that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// What went wrong.
    Error,
    /// And what is odd.
    Warn,
    /// And what a supervisor wants to know: the addresses, the model, the end.
    Info,
    /// And what happens to single connections and canaries.
    Debug,
    /// Everything.
    Trace,
}

/// Starts logging; a second call changes nothing.
pub(super) fn start(format: LogFormat, level: LogLevel) {
    let level = match level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    };
    // Libraries are heard when they warn; we are heard at the level asked for.
    let filter = format!("warn,toolgate_encoder_worker={level},toolgate_serving={level}");
    let builder = tracing_subscriber::fmt().with_writer(io::stderr);
    // A supervisor that is gone takes standard error with it; saying so there would panic.
    let builder = builder.log_internal_errors(false).with_env_filter(EnvFilter::new(filter));
    let started = match format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => builder.with_ansi(false).try_init(),
    };
    drop(started);
}
