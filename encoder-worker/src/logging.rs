//! Structured logs on standard error, and spans to a collector. Texts are no part of any event or span.

use clap::ValueEnum;
use toolgate_telemetry::{self as telemetry, LogOptions, Telemetry, TraceOptions};

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

/// Starts logs and spans; a second call has no effect.
pub(super) fn start(format: LogFormat, level: LogLevel, spans: Option<&TraceOptions>) -> Telemetry {
    let level = match level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    };
    // Libraries are logged from level warn on, the crates of this project at the requested level. Targets are matched
    // by prefix.
    let filter = format!("warn,toolgate={level}");
    telemetry::start(&LogOptions { filter, json: format == LogFormat::Json }, spans)
}
