//! Observed calls that wait to be written.

use std::collections::BTreeMap;

use toolgate_core::identity::{TenantId, ToolId};
use toolgate_core::quantized_embedding::QuantizedEmbedding;
use toolgate_store::PrincipalKey;

/// Maximum observations that wait, over all tenants, at about 600 bytes each. More are dropped.
pub const WAITING_MAX: usize = 16_384;

/// Call that Gate allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Tool that was called.
    pub tool: ToolId,
    /// QuantizedEmbedding of the intent.
    pub intent_embedding: QuantizedEmbedding,
    /// Principal of the caller.
    pub principal: PrincipalKey,
    /// Time of the call, in milliseconds since 1970 (UTC).
    pub at_ms: i64,
}

/// Observations by tenant and tool, each list in order of arrival.
type Grouped = BTreeMap<TenantId, BTreeMap<ToolId, Vec<Observation>>>;

pub(super) fn grouped(observed: Vec<(TenantId, Observation)>) -> Grouped {
    let mut grouped = Grouped::new();
    for (tenant, one) in observed {
        grouped.entry(tenant).or_default().entry(one.tool.clone()).or_default().push(one);
    }
    grouped
}
