//! Logs and spans of a gateway's process, by the keys of the service: `log.*` and `telemetry.*`.

use std::io::IsTerminal as _;
use std::time::Duration;

use toolgate_app::logging;
use toolgate_config::{LogConfig, LogLevel, Parsed, Source, keys};
use toolgate_telemetry::Exporting;

/// Time for the last spans to be sent.
const LAST_SPANS_MAX: Duration = Duration::from_secs(1);

/// Running logs and spans of this process.
pub(in crate::cli) struct GatewayTelemetry(Exporting);

impl GatewayTelemetry {
    /// Starts them as the configuration of a service says, and at a terminal as on a person's screen.
    pub(in crate::cli) fn start(parsed: &Parsed) -> Self {
        if std::io::stderr().is_terminal() {
            return Self::start_beside_program(parsed);
        }
        let telemetry = logging::start(log(parsed), &parsed.config.telemetry);
        Self(telemetry.export())
    }

    /// Starts them for a process that starts a program, whose screen it is wherever standard error goes.
    pub(in crate::cli) fn start_beside_program(parsed: &Parsed) -> Self {
        let telemetry = logging::start_on_screen(log(parsed), &parsed.config.telemetry);
        Self(telemetry.export())
    }

    /// Sends what waits, for a second at most.
    pub(in crate::cli) async fn stop(self) {
        self.0.stop(LAST_SPANS_MAX).await;
    }
}

/// Returns the selection of log records. People read what the gateway says beside them, so only warnings are logged unless
/// somebody sets a level.
fn log(parsed: &Parsed) -> LogConfig {
    let log = parsed.config.log;
    let is_level = |key: &str| key == keys::LOG_LEVEL.spec.name;
    let mut settings = parsed.settings.iter();
    let is_default =
        settings.any(|setting| is_level(setting.key.name) && setting.source == Source::Default);
    if is_default { LogConfig { level: LogLevel::Warn, ..log } } else { log }
}
