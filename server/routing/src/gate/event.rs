//! Decision event of a Gate call, in the call's span. It contains no name, argument or state.

use std::time::Duration;

use toolgate_telemetry::DECISIONS;
use tracing::info;

use crate::usage::Amounts;
use toolgate_core::identity::TenantId;
use toolgate_store::Revision;

/// Logs the verdicts of Gate as codes and counts.
pub(super) fn log(tenant: &TenantId, revision: Revision, counted: &Amounts, took: Duration) {
    let refused = || {
        let refused = counted.refused.iter().map(|(code, calls)| format!("{code}:{calls}"));
        refused.collect::<Vec<_>>().join(" ")
    };
    info!(
        target: DECISIONS,
        tenant = tenant.as_str(),
        revision,
        allowed = counted.allowed_calls,
        refused = refused(),
        micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        "gate"
    );
}
