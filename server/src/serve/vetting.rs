//! Safety rules that registrations are checked against. The file of the configuration is read again on SIGHUP.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::ServeError;
use toolgate_app::telemetry::Metrics;
use toolgate_config::SafetyConfig;
use toolgate_core::live::Live;
use toolgate_core::safety::{Rules, Scanner};
use toolgate_routing::catalog::vetting::Vetting;

/// Builds the vetting of registrations, or returns `None` if it is turned off.
pub(super) fn vetting(
    config: &SafetyConfig,
    metrics: &Metrics,
) -> Result<Option<Vetting>, ServeError> {
    let Some(scanner) = scanner(config).map_err(ServeError::Rules)? else { return Ok(None) };
    Ok(Some(Vetting {
        scanner: Arc::new(Live::new(scanner)),
        untrusted_by_default: config.untrusted_by_default,
        metrics: metrics.safety(),
    }))
}

/// Returns the scanner with the operator's rules, or `None` if nothing is to be scanned. Blocks on the file system.
pub(crate) fn scanner(config: &SafetyConfig) -> Result<Option<Scanner>, String> {
    if !config.scan {
        return Ok(None);
    }
    let rules = config.rules_file.as_deref().map_or_else(|| Ok(Rules::shipped()), read_rules);
    rules.map(|rules| Some(Scanner::new(rules)))
}

/// Applies the rules of the file again on each hangup, until `over`. Tools that are already registered are not checked
/// again.
pub(super) async fn follow(
    vetting: Option<Vetting>,
    config: SafetyConfig,
    mut hangups: watch::Receiver<()>,
    over: CancellationToken,
) {
    let (Some(vetting), Some(path)) = (vetting, config.rules_file) else { return };
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            Ok(()) = hangups.changed() => {}
        }
        let file = path.clone();
        // Compiling patterns keeps a core busy for a while.
        match tokio::task::spawn_blocking(move || read_rules(&file)).await {
            Ok(Ok(rules)) => {
                vetting.scanner.replace(Scanner::new(rules));
                info!(
                    "the rules of safety.rules_file are read again: new registrations are held against them"
                );
            }
            Ok(Err(problem)) => {
                error!(problem, "safety.rules_file has mistakes: the rules before stay");
            }
            Err(problem) => error!(%problem, "safety.rules_file can't be read again"),
        }
    }
}

/// Reads a file of rules and adds the shipped rules. Blocks on the file system.
pub(crate) fn read_rules(path: &Path) -> Result<Rules, String> {
    let named = |problem: String| format!("{}: {problem}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    Rules::with(&text).map_err(|mistakes| {
        let all: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        named(all.join("; "))
    })
}
