//! Structured logs on standard error, and spans that go to a collector. No event or span contains arguments or results
//! of calls. Intents have events of their own, which are logged only where that is turned on; no span contains them.

use toolgate_telemetry::{self as telemetry, DEGRADED, INTENTS, LogOptions, Telemetry};

use toolgate_config::{LogConfig, LogFormat, LogLevel, TelemetryConfig};

/// Part of the filter that has all audited changes.
const AUDITED: &str = ",toolgate::audit=info";

/// Starts logging and the export of spans. A second call changes nothing.
#[must_use]
pub fn start(config: LogConfig, spans: &TelemetryConfig) -> Telemetry {
    start_with(filter(config), config, spans)
}

/// Starts them beside a program that writes on the same screen: it has audited changes from `info` on alone.
#[must_use]
pub fn start_beside_program(config: LogConfig, spans: &TelemetryConfig) -> Telemetry {
    let is_told = matches!(config.level, LogLevel::Info | LogLevel::Debug | LogLevel::Trace);
    let filter = filter(config);
    let filter = if is_told { filter } else { filter.replace(AUDITED, "") };
    start_with(filter, config, spans)
}

fn start_with(filter: String, config: LogConfig, spans: &TelemetryConfig) -> Telemetry {
    let log = LogOptions { filter, json: config.format == LogFormat::Json };
    telemetry::start(&log, spans.traces.as_ref())
}

/// Returns the log filter: libraries from `warn` on, this program from the configured level on, and audited changes at
/// every level.
#[must_use]
pub fn filter(config: LogConfig) -> String {
    let level = name(config.level);
    let intents = if config.intents { "info" } else { "off" };
    // Targets match by prefix, so `toolgate` covers every crate of this workspace.
    format!("warn,toolgate={level}{AUDITED},{DEGRADED}=off,{INTENTS}={intents}")
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
