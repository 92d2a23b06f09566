//! Calls that were observed and wait to be written.

use std::collections::BTreeMap;

use toolgate_core::identity::{TenantId, ToolId};
use toolgate_core::imprint::Imprint;
use toolgate_store::PrincipalKey;

/// Observations that wait, over all tenants, at about 600 bytes each; what comes beyond is dropped.
pub const WAITING_MAX: usize = 16_384;

/// A call that was found right.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The tool that was called.
    pub tool: ToolId,
    /// What was wanted.
    pub imprint: Imprint,
    /// Who called.
    pub principal: PrincipalKey,
    /// When, in milliseconds since 1970 (UTC).
    pub at_ms: i64,
}

/// By tenant and tool, in the order in which they came.
type Grouped = BTreeMap<TenantId, BTreeMap<ToolId, Vec<Observation>>>;

pub(super) fn grouped(observed: Vec<(TenantId, Observation)>) -> Grouped {
    let mut grouped = Grouped::new();
    for (tenant, one) in observed {
        grouped.entry(tenant).or_default().entry(one.tool.clone()).or_default().push(one);
    }
    grouped
}
