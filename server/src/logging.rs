//! Structured logs on standard error. Intents, arguments and results are no part of any event.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::config::{LogConfig, LogFormat, LogLevel};

/// Starts logging; a second call changes nothing.
pub fn start(config: LogConfig) {
    let level = name(config.level);
    // Libraries are heard when they warn; we are heard at the level asked for.
    // Changes are told whatever the level.
    let filter = format!(
        "warn,toolgate={level},toolgate_server={level},toolgate_serving={level},toolgate::audit=info"
    );
    let filter = EnvFilter::new(filter);
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // It would say on standard error that standard error is closed, and panic.
    let builder = builder.log_internal_errors(false);
    let started = match config.format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => builder.with_ansi(false).try_init(),
    };
    drop(started);
}

fn name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    }
}
