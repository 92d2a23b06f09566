//! Structured logs on standard error, and spans that go to a collector. No event or span contains arguments or results
//! of calls. Intents have events of their own, which are logged only where that is turned on; no span contains them.

use toolgate_telemetry::{self as telemetry, DEGRADED, INTENTS, LogOptions, Telemetry};

use toolgate_config::{LogConfig, LogFormat, LogLevel, TelemetryConfig};

/// Part of the filter that has all audited changes.
const AUDITED: &str = ",toolgate::audit=info";

/// Target of the MCP library about connections of servers that ended. The gateway says what becomes of each.
const CONNECTIONS: &str = "rmcp::transport::worker";

/// Starts logging and the export of spans. A second call changes nothing.
#[must_use]
pub fn start(config: LogConfig, spans: &TelemetryConfig) -> Telemetry {
    start_with(filter(config), config, spans)
}

/// Starts them on a screen that a person reads for something else: audited changes are on it only if the level or the format asks
/// for them.
#[must_use]
pub fn start_on_screen(config: LogConfig, spans: &TelemetryConfig) -> Telemetry {
    start_with(filter_on_screen(config), config, spans)
}

fn filter_on_screen(config: LogConfig) -> String {
    let is_detailed = matches!(config.level, LogLevel::Info | LogLevel::Debug | LogLevel::Trace);
    let is_asked_for = is_detailed || config.format == LogFormat::Json;
    let filter = filter(config);
    if is_asked_for { filter } else { filter.replace(AUDITED, "") }
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
    format!("warn,{CONNECTIONS}=off,toolgate={level}{AUDITED},{DEGRADED}=off,{INTENTS}={intents}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_has_audited_changes_only_if_they_are_asked_for() {
        let has_them = |level, format| {
            let config = LogConfig { level, format, intents: false };
            assert!(filter(config).contains(AUDITED), "{level:?}: a log has them at each level");
            filter_on_screen(config).contains(AUDITED)
        };
        assert!(!has_them(LogLevel::Error, LogFormat::Text));
        assert!(!has_them(LogLevel::Warn, LogFormat::Text));
        assert!(has_them(LogLevel::Warn, LogFormat::Json));
        assert!(has_them(LogLevel::Info, LogFormat::Text));
        assert!(has_them(LogLevel::Trace, LogFormat::Text));
    }
}
