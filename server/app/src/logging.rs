//! Structured logs on standard error, and spans to a collector. Arguments and results are no part of any event or span;
//! intents have events of their own, which are logged only where that is turned on, and are in no span.

use toolgate_telemetry::{self as telemetry, INTENTS, LogOptions, Telemetry};

use toolgate_config::{LogConfig, LogFormat, LogLevel, TelemetryConfig};

/// Starts both; a second call changes nothing.
#[must_use]
pub fn start(config: LogConfig, spans: &TelemetryConfig) -> Telemetry {
    let log = LogOptions { filter: filter(config), json: config.format == LogFormat::Json };
    telemetry::start(&log, spans.traces.as_ref())
}

/// What is logged: libraries when they warn, this program at the level asked for, and changes whatever the level.
#[must_use]
pub fn filter(config: LogConfig) -> String {
    let level = name(config.level);
    let intents = if config.intents { "info" } else { "off" };
    // Targets are matched by their beginnings: the first one of ours is that of all our crates.
    format!("warn,toolgate={level},toolgate::audit=info,{INTENTS}={intents}")
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
